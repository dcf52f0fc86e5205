// Signatures of the account, of containers and of blobs, and what they do not reach.
import assert from "node:assert/strict";

import { functions } from "../../harness/node/recorder.mjs";
import {
  all, containerOf, credential, delegationKey, facts, later, ONE_TRY, refused, sdk, service, textOf,
} from "./world.mjs";

const DENIED = "AuthorizationPermissionMismatch";

export async function signatures() {
  const container = await containerOf("signed");
  const blob = container.getBlockBlobClient("b é");
  await blob.upload("read me", 7);
  await ofTheAccount();
  await ofContainersAndBlobs(container, blob);
  await byFunctions();
  keysOfOthers(container, blob);
  await container.delete();
}

async function ofTheAccount() {
  const permissions = sdk.AccountSASPermissions.parse("rl");
  const url = service.generateAccountSasUrl(later(), permissions, "sco");
  assert.ok(service.generateSasStringToSign(later(), permissions, "sco").includes("rl"));
  const reader = new sdk.BlobServiceClient(url, undefined, ONE_TRY);
  const names = (await all(reader.listContainers())).map(({ name }) => name);
  assert.ok(names.includes("signed"));
  await refused(403, DENIED, () => reader.createContainer("more"));
  const anonymous = new sdk.BlobServiceClient(facts.endpoint, undefined, ONE_TRY);
  assert.throws(() => anonymous.generateAccountSasUrl());
  assert.throws(() => anonymous.generateSasStringToSign());
  assert.throws(() => anonymous.getContainerClient("c").generateSasStringToSign({}));
  assert.throws(() => anonymous.getContainerClient("c").getBlobClient("b").generateSasStringToSign({}));
  await assert.rejects(anonymous.getContainerClient("c").generateSasUrl({}));
  await assert.rejects(anonymous.getContainerClient("c").getBlobClient("b").generateSasUrl({}));
  await refused(401, "NoAuthenticationInformation", () => all(anonymous.listContainers()));
}

async function ofContainersAndBlobs(container, blob) {
  const read = { permissions: sdk.ContainerSASPermissions.parse("rl"), expiresOn: later() };
  assert.ok(container.generateSasStringToSign(read).includes("signed"));
  const reader = new sdk.ContainerClient(await container.generateSasUrl(read), undefined, ONE_TRY);
  assert.equal((await all(reader.listBlobsFlat())).length, 1);
  assert.equal(await textOf(reader.getBlobClient("b é")), "read me");
  await refused(403, DENIED, () => reader.uploadBlockBlob("c", "x", 1));
  const one = { permissions: sdk.BlobSASPermissions.parse("c"), expiresOn: later() };
  assert.ok(blob.generateSasStringToSign(one).includes("signed"));
  const creator = new sdk.BlockBlobClient(await blob.generateSasUrl(one), undefined, ONE_TRY);
  await refused(403, "UnauthorizedBlobOverwrite", () => creator.upload("x", 1));
  await refused(403, DENIED, () => creator.download());
  await container.setAccessPolicy(undefined, [
    { id: "reading", accessPolicy: { permissions: "r", expiresOn: later() } },
  ]);
  const byPolicy = await blob.generateSasUrl({ identifier: "reading" });
  assert.equal(await textOf(new sdk.BlobClient(byPolicy, undefined, ONE_TRY)), "read me");
}

async function byFunctions() {
  const values = {
    containerName: "signed",
    blobName: "b é",
    permissions: sdk.BlobSASPermissions.parse("r"),
    expiresOn: later(),
  };
  const sas = functions.generateBlobSASQueryParameters(values, credential);
  assert.throws(() => functions.generateBlobSASQueryParameters(values, undefined));
  const url = `${facts.endpoint}/signed/b%20%C3%A9?${sas}`;
  assert.equal(await textOf(new sdk.BlobClient(url, undefined, ONE_TRY)), "read me");
  const account = {
    expiresOn: later(),
    permissions: sdk.AccountSASPermissions.parse("r"),
    resourceTypes: "o",
    services: "b",
  };
  const whole = functions.generateAccountSASQueryParameters(account, credential);
  const other = `${facts.endpoint}/signed/b%20%C3%A9?${whole}`;
  assert.equal(await textOf(new sdk.BlobClient(other, undefined, ONE_TRY)), "read me");
  const bad = { ...account, resourceTypes: "z" };
  assert.throws(() => functions.generateAccountSASQueryParameters(bad, credential));
}

/** What is signed with a user's key is made without asking anybody. */
function keysOfOthers(container, blob) {
  const key = delegationKey("b");
  const values = { permissions: sdk.BlobSASPermissions.parse("r"), expiresOn: later() };
  for (const client of [container, blob]) {
    client.generateUserDelegationSasUrl(values, key);
    client.generateUserDelegationSasStringToSign(values, key);
  }
}
