// Every maker of shared access signatures, and what a client with nothing but one may do.
import assert from "node:assert/strict";

import { functions } from "../../harness/node/recorder.mjs";
import {
  all, credential, delegationKey, later, ONE_TRY, queueOf, refused, sdk, service,
} from "./world.mjs";

const { AccountSASPermissions, QueueSASPermissions, SASProtocol } = sdk;
const DENIED = "AuthorizationPermissionMismatch";
const READ = QueueSASPermissions.parse("r");

const queueAt = (url) => new sdk.QueueClient(url, undefined, ONE_TRY);
const peek = (url) => () => queueAt(url).peekMessages();
const send = (url) => () => queueAt(url).sendMessage("x");

export async function signatures() {
  const queue = await queueOf("signed");
  await ofQueue(queue);
  await ofAccount(queue);
  await storedPolicy(queue);
  await byHand(queue);
  await byDelegation(queue);
  withoutKey(queue);
  await queue.delete();
}

async function ofQueue(queue) {
  const signed = (options) =>
    queue.generateSasUrl({ permissions: READ, expiresOn: later(), ...options });
  await peek(signed())();
  await refused(403, DENIED, send(signed()));
  await refused(403, "AuthenticationFailed", peek(signed().replace("sig=", "sig=A")));
  await refused(403, "AuthenticationFailed", peek(signed({ expiresOn: later(-60_000) })));
  const tls = signed({ protocol: SASProtocol.Https });
  await refused(403, "AuthorizationProtocolMismatch", peek(tls));
  const elsewhere = signed({ ipRange: { start: "192.0.2.1" } });
  await refused(403, "AuthorizationSourceIPMismatch", peek(elsewhere));
  const text = queue.generateSasStringToSign({ permissions: READ, expiresOn: later() });
  assert.ok(text.includes("/queue/devstoreaccount1/signed"), text);
}

async function ofAccount(queue) {
  const permissions = AccountSASPermissions.parse("rl");
  const url = service.generateAccountSasUrl(later(), permissions, "sco");
  const reader = new sdk.QueueServiceClient(url, undefined, ONE_TRY);
  assert.ok((await all(reader.listQueues())).some((found) => found.name === "signed"));
  await refused(403, DENIED, () => reader.createQueue("more"));
  const text = service.generateSasStringToSign(later(), permissions, "sco");
  assert.ok(text.startsWith("devstoreaccount1\nrl\nq\n"), text);
  const query = functions.generateAccountSASQueryParameters(
    {
      expiresOn: later(),
      permissions,
      services: sdk.AccountSASServices.parse("q").toString(),
      resourceTypes: sdk.AccountSASResourceTypes.parse("s").toString(),
    },
    credential,
  );
  await refused(403, "AuthorizationResourceTypeMismatch", peek(`${queue.url}?${query}`));
  assert.throws(() => functions.generateAccountSASQueryParameters({}, credential));
}

async function storedPolicy(queue) {
  const accessPolicy = { startsOn: later(-60_000), expiresOn: later(), permissions: "r" };
  await queue.setAccessPolicy([{ id: "readers", accessPolicy }]);
  const url = queue.generateSasUrl({ identifier: "readers" });
  await peek(url)();
  await refused(403, DENIED, send(url));
  await queue.setAccessPolicy([]);
  await refused(403, "AuthenticationFailed", peek(url));
}

async function byHand(queue) {
  const values = {
    queueName: queue.name,
    permissions: QueueSASPermissions.parse("ap"),
    expiresOn: later(),
  };
  const query = functions.generateQueueSASQueryParameters(values, credential);
  const url = `${queue.url}?${query}`;
  await send(url)();
  const { receivedMessageItems: got } = await queueAt(url).receiveMessages();
  await queueAt(url).deleteMessage(got[0].messageId, got[0].popReceipt);
  await refused(403, DENIED, peek(url));
  assert.throws(() => functions.generateQueueSASQueryParameters({ queueName: "x" }, credential));
}

/** They are made, and refused: nobody here gives out such a key. */
async function byDelegation(queue) {
  const key = delegationKey("q");
  const options = { permissions: READ, expiresOn: later() };
  const url = queue.generateUserDelegationSasUrl(options, key);
  await refused(403, "AuthenticationFailed", peek(url));
  const text = queue.generateUserDelegationStringToSign(options, key);
  assert.ok(text.includes(key.signedObjectId), text);
}

/** Without the key nothing can be signed. */
function withoutKey(queue) {
  const keyless = new sdk.QueueServiceClient(service.generateAccountSasUrl());
  const itsQueue = keyless.getQueueClient(queue.name);
  const options = { permissions: READ, expiresOn: later() };
  for (const make of [
    () => keyless.generateAccountSasUrl(),
    () => keyless.generateSasStringToSign(),
    () => itsQueue.generateSasUrl(options),
    () => itsQueue.generateSasStringToSign(options),
  ]) {
    assert.throws(make, RangeError);
  }
}
