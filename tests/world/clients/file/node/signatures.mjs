// Every maker of shared access signatures, and what a client with nothing but one may do.
import assert from "node:assert/strict";

import { functions } from "../../harness/node/recorder.mjs";
import {
  all, credential, delegationKey, filled, later, ONE_TRY, refused, sdk, service,
} from "./world.mjs";

const { AccountSASPermissions, FileSASPermissions, SASProtocol, ShareSASPermissions } = sdk;
const READ = FileSASPermissions.parse("r");
const LIST = ShareSASPermissions.parse("rl");

const fileAt = (url) => new sdk.ShareFileClient(url, undefined, ONE_TRY);
const textOf = async (url) => String(await fileAt(url).downloadToBuffer());
const write = (url) => () => fileAt(url).uploadRange("x", 0, 1);
const read = (url) => () => fileAt(url).getProperties();

export async function signatures() {
  const { shareClient: share } = await service.createShare("signed");
  const file = await filled(share, "a b.txt", "signed");
  await ofFile(file);
  await ofShare(share, file);
  await ofAccount(file);
  await storedPolicy(share, file);
  await byHand(file);
  await byDelegation(share, file);
  withoutKey(share);
}

async function ofFile(file) {
  const url = file.generateSasUrl({ permissions: READ, expiresOn: later() });
  assert.equal(await textOf(url), "signed");
  await refused(403, "AuthorizationPermissionMismatch", write(url));
  await refused(403, "AuthenticationFailed", read(url.replace("sig=", "sig=A")));
  const text = file.generateSasStringToSign({ permissions: READ, expiresOn: later() });
  assert.ok(text.includes("/file/devstoreaccount1/signed/a b.txt"), text);
  const signed = (options) =>
    file.generateSasUrl({ permissions: READ, expiresOn: later(), ...options });
  await refused(403, "AuthenticationFailed", read(signed({ expiresOn: later(-60_000) })));
  const tls = signed({ protocol: SASProtocol.Https });
  await refused(403, "AuthorizationProtocolMismatch", read(tls));
  const elsewhere = signed({ ipRange: { start: "192.0.2.1" } });
  await refused(403, "AuthorizationSourceIPMismatch", read(elsewhere));
  const shown = await fileAt(signed({ contentType: "text/x-told" })).download();
  assert.equal(shown.contentType, "text/x-told");
  shown.readableStreamBody.destroy();
}

async function ofShare(share, file) {
  const url = share.generateSasUrl({ permissions: LIST, expiresOn: later() });
  const reader = new sdk.ShareClient(url, undefined, ONE_TRY);
  const found = await all(reader.rootDirectoryClient.listFilesAndDirectories());
  assert.deepEqual(
    found.map((item) => item.name),
    ["a b.txt"],
  );
  assert.equal(
    String(await reader.rootDirectoryClient.getFileClient(file.name).downloadToBuffer()),
    "signed",
  );
  await refused(403, "AuthorizationPermissionMismatch", () => reader.createFile("new", 1));
  const text = share.generateSasStringToSign({ permissions: LIST, expiresOn: later() });
  assert.ok(text.startsWith("rl\n"), text);
}

async function ofAccount(file) {
  const permissions = AccountSASPermissions.parse("rl");
  const url = service.generateAccountSasUrl(later(), permissions, "sco");
  const reader = new sdk.ShareServiceClient(url, undefined, ONE_TRY);
  assert.ok((await all(reader.listShares())).some((share) => share.name === "signed"));
  await refused(403, "AuthorizationPermissionMismatch", () => reader.createShare("more"));
  const text = service.generateSasStringToSign(later(), permissions, "sco");
  assert.ok(text.startsWith("devstoreaccount1\nrl\nf\n"), text);
  const query = functions.generateAccountSASQueryParameters(
    {
      expiresOn: later(),
      permissions,
      services: sdk.AccountSASServices.parse("f").toString(),
      resourceTypes: sdk.AccountSASResourceTypes.parse("s").toString(),
    },
    credential,
  );
  const narrow = `${file.url}?${query}`;
  await refused(403, "AuthorizationResourceTypeMismatch", read(narrow));
  assert.throws(() => functions.generateAccountSASQueryParameters({}, credential));
}

async function storedPolicy(share, file) {
  const accessPolicy = { startsOn: later(-60_000), expiresOn: later(), permissions: "r" };
  await share.setAccessPolicy([{ id: "readers", accessPolicy }]);
  const url = file.generateSasUrl({ identifier: "readers" });
  assert.equal(await textOf(url), "signed");
  await refused(403, "AuthorizationPermissionMismatch", write(url));
  await share.setAccessPolicy([]);
  await refused(403, "AuthenticationFailed", read(url));
}

async function byHand(file) {
  const values = {
    shareName: file.shareName,
    filePath: file.path,
    permissions: FileSASPermissions.parse("rw"),
    expiresOn: later(),
  };
  const query = functions.generateFileSASQueryParameters(values, credential);
  const url = `${file.url}?${query}`;
  await write(url)();
  assert.equal(await textOf(url), "xigned");
  assert.throws(() => functions.generateFileSASQueryParameters({ shareName: "x" }, credential));
}

/** They are made, and refused: nobody here gives out such a key. */
async function byDelegation(share, file) {
  const key = delegationKey("f");
  const url = file.generateUserDelegationSasUrl({ permissions: READ, expiresOn: later() }, key);
  await refused(403, "AuthenticationFailed", read(url));
  const wide = share.generateUserDelegationSasUrl({ permissions: LIST, expiresOn: later() }, key);
  assert.ok(wide.includes("skoid="), wide);
  for (const [client, permissions] of [
    [share, LIST],
    [file, READ],
  ]) {
    const options = { permissions, expiresOn: later() };
    const text = client.generateUserDelegationStringToSign(options, key);
    assert.ok(text.includes(key.signedObjectId), text);
  }
}

/** Without the key nothing can be signed. */
function withoutKey(share) {
  const url = service.generateAccountSasUrl();
  const keyless = new sdk.ShareServiceClient(url);
  const [itsShare, options] = [keyless.getShareClient(share.name), { expiresOn: later() }];
  const itsFile = itsShare.rootDirectoryClient.getFileClient("a b.txt");
  for (const make of [
    () => keyless.generateAccountSasUrl(),
    () => keyless.generateSasStringToSign(),
    () => itsShare.generateSasUrl({ ...options, permissions: LIST }),
    () => itsShare.generateSasStringToSign({ ...options, permissions: LIST }),
    () => itsFile.generateSasUrl({ ...options, permissions: READ }),
    () => itsFile.generateSasStringToSign({ ...options, permissions: READ }),
  ]) {
    assert.throws(make, RangeError);
  }
}
