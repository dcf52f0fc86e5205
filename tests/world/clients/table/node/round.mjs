// The official Node SDK of tables against a running latchfs: every public method, good and bad.
//
// Usage: node round.mjs FACTS, which is JSON.
import assert from "node:assert/strict";

import { play } from "../../harness/node/play.mjs";
import { functions, record } from "../../harness/node/recorder.mjs";
import { all, facts, refused } from "../../harness/node/world.mjs";
import { library, METHODS } from "./methods.mjs";

record(library);

const { AzureNamedKeyCredential, AzureSASCredential, odata } = library.sdk;
const { TableClient, TableServiceClient, TableTransaction } = library.sdk;
const { account, endpoint } = facts;
const credential = new AzureNamedKeyCredential(account, facts.key);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const expiresOn = new Date("2099-01-01T00:00:00Z");
const AWKWARD = ["it's", "% + & = ( ) , : @ $", "a b", "größe", "😀", "{x}", "''", "A'aaa\"", "~"];

const service = new TableServiceClient(endpoint, credential, options);
const table = (name, by = credential) => new TableClient(endpoint, name, by, options);

async function tables() {
  await service.createTable("NodeTable");
  await service.createTable("nodetable"); // The client swallows 409.
  await refused(400, "InvalidResourceName", () => service.createTable("a_b"));
  await refused(400, "OutOfRangeInput", () => service.createTable("ab"));
  await refused(400, "InvalidResourceName", () => service.deleteTable("a_b"));
  await refused(400, "InvalidResourceName", () => table("a_b").createTable());
  await refused(400, "OutOfRangeInput", () => table("ab").deleteTable());
  for (const name of ["nodea", "nodeb", "nodec"]) await service.createTable(name);
  const queryOptions = { filter: odata`TableName ge ${"node"} and TableName lt ${"nodez"}` };
  const pages = await all(service.listTables({ queryOptions }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.length), [2, 1]);
  const half = { queryOptions: { filter: "eq" } };
  await refused(400, "InvalidInput", () => all(service.listTables(half)));
  for (const name of ["nodea", "nodeb", "nodec", "NodeTable"]) await service.deleteTable(name);
  await service.deleteTable("nodea"); // The client swallows 404.
}

async function entities() {
  const rows = table("nodeentities");
  await rows.createTable();
  const given = {
    partitionKey: "p",
    rowKey: "r",
    text: "täxt\n\"quoted\"",
    flag: false,
    small: 5,
    large: 2n ** 53n + 1n,
    fraction: 1.5,
    whole: { type: "Double", value: "3.0" },
    when: new Date("2021-04-08T14:34:34.790Z"),
    guid: { type: "Guid", value: "C0FFEE00-1234-5678-9ABC-DEF012345678" },
    raw: new Uint8Array([0, 255]),
    nothing: null,
  };
  const made = await rows.createEntity(given);
  assert.match(made.etag, /^W\/"datetime'/);
  const got = await rows.getEntity("p", "r");
  assert.equal(got.etag, made.etag);
  assert.deepEqual(
    [got.text, got.flag, got.small, got.large, got.fraction, got.when.getTime()],
    [given.text, false, 5, given.large, 1.5, given.when.getTime()],
  );
  assert.equal(got.guid.value, "c0ffee00-1234-5678-9abc-def012345678");
  assert.deepEqual([...got.raw], [0, 255]);
  assert.ok(!("nothing" in got));
  await refused(409, "EntityAlreadyExists", () => rows.createEntity(given));
  const dashed = { partitionKey: "p", rowKey: "x", "a-b": 1 };
  await refused(400, "PropertyNameInvalid", () => rows.createEntity(dashed));
  const slashed = { partitionKey: "p", rowKey: "a/b" };
  await refused(400, "OutOfRangeInput", () => rows.createEntity(slashed));
  for (const name of AWKWARD) {
    await rows.createEntity({ partitionKey: name, rowKey: name, n: 1 });
    assert.equal((await rows.getEntity(name, name)).rowKey, name);
    const queryOptions = { filter: odata`PartitionKey eq ${name}` };
    const found = await all(rows.listEntities({ queryOptions }));
    assert.equal(found.length, 1, name);
    await rows.deleteEntity(name, name);
  }
  await refused(404, "ResourceNotFound", () => rows.getEntity("p", "none"));
  const none = table("nowhere");
  await refused(404, "TableNotFound", () => none.getEntity("p", "r"));
  await refused(404, "TableNotFound", () => none.createEntity({ partitionKey: "p", rowKey: "r" }));
  await refused(404, "TableNotFound", () => none.upsertEntity({ partitionKey: "p", rowKey: "r" }));
  await refused(404, "TableNotFound", () => all(none.listEntities()));
  const queryOptions = { filter: odata`large eq ${given.large}` };
  const big = await all(rows.listEntities({ queryOptions }));
  assert.equal(big.length, 1);
  await rows.deleteTable();
}

async function conditions() {
  const rows = table("nodeconditions");
  await rows.createTable();
  const row = { partitionKey: "p", rowKey: "r", n: 1, kept: true };
  const { etag } = await rows.createEntity(row);
  const updated = await rows.updateEntity({ ...row, n: 2 }, "Replace", { etag });
  assert.notEqual(updated.etag, etag);
  const stale = () => rows.updateEntity({ ...row, n: 3 }, "Merge", { etag });
  const told = await refused(412, "UpdateConditionNotSatisfied", stale);
  assert.match(told, /changed .* ago by Update Entity/);
  await refused(412, "UpdateConditionNotSatisfied", () => rows.deleteEntity("p", "r", { etag }));
  await rows.updateEntity({ partitionKey: "p", rowKey: "r", n: 4 });
  assert.equal((await rows.getEntity("p", "r")).kept, true);
  await rows.upsertEntity({ partitionKey: "p", rowKey: "r", n: 5 }, "Replace");
  assert.equal((await rows.getEntity("p", "r")).kept, undefined);
  const none = { partitionKey: "p", rowKey: "none" };
  await refused(404, "ResourceNotFound", () => rows.updateEntity(none));
  await rows.deleteEntity("p", "r");
  await refused(404, "ResourceNotFound", () => rows.deleteEntity("p", "r"));
}

async function queries() {
  const rows = table("nodequeries");
  await rows.createTable();
  for (let group = 0; group < 3; group += 1) {
    const transaction = new TableTransaction();
    for (let n = 0; n < 100; n += 1) {
      transaction.createEntity({ partitionKey: "p", rowKey: `${group}-${n}`, n, group });
    }
    await rows.submitTransaction(transaction.actions);
  }
  const pages = await all(rows.listEntities().byPage({ maxPageSize: 120 }));
  assert.deepEqual(pages.map((page) => page.length), [120, 120, 60]);
  const queryOptions = { filter: odata`group eq ${1} and n ge ${90}`, select: ["n"] };
  const found = await all(rows.listEntities({ queryOptions }));
  assert.equal(found.length, 10);
  const nonsense = { queryOptions: { filter: "a b" } };
  await refused(400, "InvalidInput", () => all(rows.listEntities(nonsense)));
}

async function transactions() {
  const rows = table("nodetransactions");
  await rows.createTable();
  const row = (rowKey, more = {}) => ({ partitionKey: "p", rowKey, ...more });
  for (const name of ["b", "c", "d"]) await rows.createEntity(row(name, { n: 0 }));
  const transaction = new TableTransaction();
  transaction.createEntity(row("a"));
  transaction.updateEntity(row("b", { n: 1 }), "Replace");
  transaction.updateEntity(row("c", { n: 1 }), "Merge");
  transaction.deleteEntity("p", "d");
  transaction.upsertEntity(row("it's", { n: 1 }), "Merge");
  transaction.upsertEntity(row("f", { n: 1 }), "Replace");
  const answer = await rows.submitTransaction(transaction.actions);
  assert.equal(answer.status, 202);
  assert.deepEqual(answer.subResponses.map((one) => one.status), Array(6).fill(204));
  assert.ok(answer.subResponses[0].etag && answer.subResponses[5].etag);
  assert.equal(answer.getResponseForEntity("a").rowKey, "a");
  const submitted = (...actions) => () => rows.submitTransaction(actions);
  const twice = submitted(["create", row("x")], ["create", row("a")]);
  const told = await refused(409, "EntityAlreadyExists", twice);
  assert.match(told, /1:The specified entity already exists/);
  const stale = { etag: "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"" };
  const late = submitted(["update", row("a", { n: 2 }), "Merge", stale]);
  await refused(412, "UpdateConditionNotSatisfied", late);
  const many = Array.from({ length: 101 }, (_, n) => ["create", row(String(n))]);
  await refused(400, "InvalidInput", () => rows.submitTransaction(many));
  const same = submitted(["create", row("x")], ["upsert", row("x"), "Merge"]);
  await refused(400, "InvalidDuplicateRow", same);
  // The client itself refuses two partitions.
  const elsewhere = { partitionKey: "q", rowKey: "y" };
  const across = rows.submitTransaction([["create", row("x")], ["create", elsewhere]]);
  await assert.rejects(across, /same partitionKey/);
  const lost = () => table("nowhere").submitTransaction([["create", row("x")]]);
  await refused(404, "TableNotFound", lost);
  assert.equal((await all(rows.listEntities())).length, 5);
}

async function policies() {
  const rows = table("nodepolicies");
  await rows.createTable();
  assert.equal((await rows.getAccessPolicy()).length, 0);
  const start = new Date("2020-01-01T00:00:00Z");
  const accessPolicy = { start, expiry: expiresOn, permission: "r" };
  await rows.setAccessPolicy([{ id: "read", accessPolicy }, { id: "empty" }]);
  const got = [...(await rows.getAccessPolicy())];
  assert.deepEqual(got.map((one) => one.id), ["read", "empty"]);
  assert.equal(got[0].accessPolicy.expiry.getTime(), expiresOn.getTime());
  const six = Array.from({ length: 6 }, (_, n) => ({ id: String(n) }));
  await refused(400, "InvalidXmlDocument", () => rows.setAccessPolicy(six));
  await refused(404, "TableNotFound", () => table("nowhere").getAccessPolicy());
  await refused(404, "TableNotFound", () => table("nowhere").setAccessPolicy([]));
}

async function signatures() {
  const rows = table("nodesigned");
  await rows.createTable();
  for (const name of ["a", "b", "c"]) await rows.createEntity({ partitionKey: "p", rowKey: name });
  const by = (permissions, more = {}) =>
    table(
      "nodesigned",
      new AzureSASCredential(
        functions.generateTableSas("nodesigned", credential, { permissions, expiresOn, ...more }),
      ),
    );
  const range = {
    startPartitionKey: "p", startRowKey: "b", endPartitionKey: "p", endRowKey: "c",
  };
  const ranged = by({ query: true }, range);
  assert.deepEqual((await all(ranged.listEntities())).map((one) => one.rowKey), ["b", "c"]);
  await refused(403, "AuthorizationFailure", () => ranged.getEntity("p", "a"));
  const adder = by({ add: true });
  await refused(403, "AuthorizationPermissionMismatch", () => all(adder.listEntities()));
  const upsert = () => adder.upsertEntity({ partitionKey: "p", rowKey: "d" });
  await refused(403, "AuthorizationPermissionMismatch", upsert);
  await by({ add: true, update: true }).upsertEntity({ partitionKey: "p", rowKey: "d" });
  const sas = functions.generateAccountSas(credential, { expiresOn });
  const everything = new TableServiceClient(endpoint, new AzureSASCredential(sas), options);
  assert.ok((await all(everything.listTables())).length > 0);
}

async function serviceLevel() {
  const metrics = {
    version: "1.0",
    enabled: true,
    includeAPIs: true,
    retentionPolicy: { enabled: true, days: 5 },
  };
  const rule = {
    allowedOrigins: "http://here.example",
    allowedMethods: "GET",
    allowedHeaders: "*",
    exposedHeaders: "*",
    maxAgeInSeconds: 60,
  };
  await service.setProperties({ hourMetrics: metrics, cors: [rule] });
  const got = await service.getProperties();
  assert.equal(got.cors[0].allowedOrigins, "http://here.example");
  assert.equal(got.hourMetrics.includeAPIs, true);
  const many = { cors: Array(6).fill(rule) };
  await refused(400, "InvalidXmlDocument", () => service.setProperties(many));
  await service.setProperties({ cors: [] });
  const secondary = `${endpoint}-secondary`;
  const second = new TableServiceClient(secondary, credential, options);
  assert.equal((await second.getStatistics()).geoReplication.status, "live");
  const wrong = new AzureNamedKeyCredential(account, "d3Jvbmc=");
  const stranger = new TableServiceClient(secondary, wrong, options);
  await refused(403, "AuthenticationFailed", () => stranger.getStatistics());
  await refused(403, "AuthenticationFailed", () => stranger.getProperties());
}

async function building() {
  const text = facts.connection_string;
  const byText = TableServiceClient.fromConnectionString(text, options);
  await byText.createTable("nodebuilt");
  const rows = TableClient.fromConnectionString(text, "nodebuilt", options);
  await rows.createEntity({ partitionKey: "p", rowKey: "r" });
  assert.equal((await all(rows.listEntities())).length, 1);
}

await play(library, METHODS, {}, [
  tables, entities, conditions, queries, transactions, policies, signatures, serviceLevel, building,
]);
