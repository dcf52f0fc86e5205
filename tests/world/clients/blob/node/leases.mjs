// Leases of blobs and containers.
import assert from "node:assert/strict";

import { A, B, containerOf, refused } from "./world.mjs";

export async function leases() {
  const container = await containerOf("leases");
  const blob = container.getBlockBlobClient("b");
  await blob.upload("x", 1);
  for (const leased of [blob, container]) {
    const lease = leased.getBlobLeaseClient(A);
    assert.equal(lease.leaseId, A);
    assert.ok(lease.url.includes("/leases"));
    await refused(400, "InvalidHeaderValue", () => lease.acquireLease(5));
    await lease.acquireLease(15);
    const other = leased.getBlobLeaseClient(B);
    const told = await refused(409, "LeaseAlreadyPresent", () => other.acquireLease(15));
    assert.match(told, /\[latchfs: leased .* by Lease .*acquire.*azsdk-js/);
    await lease.renewLease();
    await refused(409, "LeaseIdMismatchWithLeaseOperation", () => other.renewLease());
    await refused(409, "LeaseIdMismatchWithLeaseOperation", () => other.releaseLease());
    await lease.changeLease(B);
    assert.equal(lease.leaseId, B);
    assert.equal((await lease.breakLease(0)).leaseTime, 0);
    await refused(409, "LeaseNotPresentWithLeaseOperation", () => lease.changeLease(A));
    await lease.releaseLease();
    await refused(409, "LeaseNotPresentWithLeaseOperation", () => lease.breakLease());
  }
  const lease = blob.getBlobLeaseClient(A);
  await lease.acquireLease(-1);
  const told = await refused(412, "LeaseIdMissing", () => blob.upload("y", 1));
  assert.match(told, /\[latchfs: leased .* ago by Lease Blob \(acquire\), client request/);
  await blob.upload("y", 1, { conditions: { leaseId: A } });
  await container.delete();
}
