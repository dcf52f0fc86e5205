// ShareLeaseClient, on a file and on a share.
import assert from "node:assert/strict";

import { filled, GUID, refused, sdk, service } from "./world.mjs";

const OTHER = "99999999-8888-7777-6666-555555555555";

export async function leases() {
  const { shareClient: share } = await service.createShare("leases");
  await ofFile(share);
  await ofShare(share);
}

async function ofFile(share) {
  const file = await filled(share, "leased.txt", "data");
  const lease = file.getShareLeaseClient(GUID);
  assert.deepEqual([lease.leaseId, lease.url], [GUID, file.url]);
  const { etag } = await file.getProperties();
  assert.equal((await lease.acquireLease(-1)).leaseId, GUID);
  const shown = await file.getProperties();
  assert.deepEqual(
    [shown.leaseState, shown.leaseStatus, shown.leaseDuration, shown.etag],
    ["leased", "locked", "infinite", etag],
  );
  const other = new sdk.ShareLeaseClient(file, OTHER);
  await refused(409, "LeaseAlreadyPresent", () => other.acquireLease(-1));
  await refused(412, "LeaseIdMissing", () => file.uploadRange("x", 0, 1));
  await refused(412, "LeaseIdMissing", () => file.delete());
  const wrong = { leaseAccessConditions: { leaseId: OTHER } };
  await refused(412, "LeaseIdMismatchWithFileOperation", () => file.uploadRange("x", 0, 1, wrong));
  await file.uploadRange("D", 0, 1, { leaseAccessConditions: { leaseId: GUID } });
  await refused(409, "LeaseIdMismatchWithLeaseOperation", () => other.releaseLease());
  await lease.changeLease(OTHER);
  assert.equal(lease.leaseId, OTHER);
  const former = file.getShareLeaseClient(GUID);
  await refused(409, "LeaseIdMismatchWithLeaseOperation", () =>
    former.changeLease("12345678-8888-7777-6666-555555555555"),
  );
  await lease.releaseLease();
  await file.uploadRange("d", 0, 1);
  await lease.acquireLease(-1);
  await lease.breakLease();
  assert.equal((await file.getProperties()).leaseState, "broken");
  await lease.releaseLease();
  await refused(409, "LeaseNotPresentWithLeaseOperation", () => lease.breakLease());
}

async function ofShare(share) {
  const lease = share.getShareLeaseClient(GUID);
  await lease.acquireLease(20);
  const shown = await share.getProperties();
  assert.deepEqual([shown.leaseState, shown.leaseDuration], ["leased", "fixed"]);
  await refused(412, "LeaseIdMissing", () => share.delete());
  // Its own test for a file holds for shares alone.
  await assert.rejects(lease.renewLease(), RangeError);
  await lease.changeLease(OTHER);
  const broken = await lease.breakLease({ breakPeriod: 0 });
  assert.ok(broken.leaseTimeInSeconds >= 0);
  await lease.releaseLease();
  assert.equal((await share.getProperties()).leaseState, "available");
  await refused(409, "LeaseNotPresentWithLeaseOperation", () => lease.breakLease());
  await refused(400, "InvalidHeaderValue", () => lease.acquireLease(5));
}
