// Plays every round of the JS client for tables: node round.mjs FACTS, which is JSON.
// Prints `met` when all rounds agreed.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

// The SDK, from where tests/run installs it.
const require = createRequire(new URL("../../../../.cache/node/package.json", import.meta.url));
const {
  AzureNamedKeyCredential,
  AzureSASCredential,
  RestError,
  TableClient,
  TableServiceClient,
  TableTransaction,
  generateAccountSas,
  generateTableSas,
  odata,
} = require("@azure/data-tables");

const { endpoint, account, key } = JSON.parse(process.argv[2]);
const credential = new AzureNamedKeyCredential(account, key);
const options = { allowInsecureConnection: true, retryOptions: { maxRetries: 0 } };
const expiresOn = new Date("2099-01-01T00:00:00Z");
const AWKWARD = ["it's", "% + & = ( ) , : @ $", "a b", "größe", "😀", "{x}", "''", "A'aaa\"", "~"];

// Every public method, with the codes that a round must meet.
const METHODS = {
  TableServiceClient: {
    fromConnectionString: [],
    getStatistics: ["AuthenticationFailed"],
    getProperties: ["AuthenticationFailed"],
    setProperties: ["InvalidXmlDocument"],
    createTable: ["InvalidResourceName", "OutOfRangeInput"],
    deleteTable: ["InvalidResourceName"],
    listTables: ["InvalidInput"],
  },
  TableClient: {
    fromConnectionString: [],
    createTable: ["InvalidResourceName"],
    deleteTable: ["OutOfRangeInput"],
    getEntity: ["ResourceNotFound", "TableNotFound", "AuthorizationFailure"],
    listEntities: ["TableNotFound", "InvalidInput", "AuthorizationPermissionMismatch"],
    createEntity: ["EntityAlreadyExists", "TableNotFound", "PropertyNameInvalid", "OutOfRangeInput"],
    deleteEntity: ["UpdateConditionNotSatisfied", "ResourceNotFound"],
    updateEntity: ["UpdateConditionNotSatisfied", "ResourceNotFound"],
    upsertEntity: ["TableNotFound", "AuthorizationPermissionMismatch"],
    getAccessPolicy: ["TableNotFound"],
    setAccessPolicy: ["InvalidXmlDocument", "TableNotFound"],
    submitTransaction: [
      "EntityAlreadyExists",
      "UpdateConditionNotSatisfied",
      "InvalidInput",
      "InvalidDuplicateRow",
      "TableNotFound",
    ],
  },
  TableTransaction: { createEntity: [], deleteEntity: [], updateEntity: [], upsertEntity: [] },
};
const noted = {};

function note(owner, name, outcome) {
  ((noted[owner] ??= {})[name] ??= new Set()).add(outcome);
}

function codeOf(error) {
  return error.details?.odataError?.code ?? error.code ?? error.details?.errorCode;
}

/** A client whose calls are noted. */
function seen(client) {
  const owner = client.constructor.name;
  return new Proxy(client, {
    get(target, name) {
      const value = target[name];
      if (typeof value !== "function") return value;
      return (...args) => {
        if (name.startsWith("list")) return noting(owner, name, value.apply(target, args));
        const answer = value.apply(target, args);
        if (!(answer instanceof Promise)) {
          note(owner, name, "good");
          return answer;
        }
        return answer.then(
          (result) => (note(owner, name, "good"), result),
          (error) => {
            note(owner, name, codeOf(error));
            throw error;
          },
        );
      };
    },
  });
}

/** A paged listing whose outcome is noted. */
function noting(owner, name, pages) {
  async function* noticed(items) {
    try {
      yield* items;
      note(owner, name, "good");
    } catch (error) {
      note(owner, name, codeOf(error));
      throw error;
    }
  }
  return { all: () => all(noticed(pages)), byPage: (given) => noticed(pages.byPage(given)) };
}

async function all(items) {
  const found = [];
  for await (const item of items) found.push(item);
  return found;
}

async function refused(code, promise, status) {
  const error = await promise.then(
    () => assert.fail(`not refused with ${code}`),
    (error) => error,
  );
  assert.ok(error instanceof RestError, String(error));
  assert.equal(codeOf(error), code, error.message);
  if (status) assert.equal(error.statusCode, status);
  return error;
}

const service = seen(new TableServiceClient(endpoint, credential, options));
const table = (name, by = credential) => seen(new TableClient(endpoint, name, by, options));

async function tables() {
  await service.createTable("NodeTable");
  await service.createTable("nodetable"); // The client swallows 409.
  await refused("InvalidResourceName", service.createTable("a_b"), 400);
  await refused("OutOfRangeInput", service.createTable("ab"), 400);
  await refused("InvalidResourceName", service.deleteTable("a_b"));
  await refused("InvalidResourceName", table("a_b").createTable());
  await refused("OutOfRangeInput", table("ab").deleteTable());
  for (const name of ["nodea", "nodeb", "nodec"]) await service.createTable(name);
  const queryOptions = { filter: odata`TableName ge ${"node"} and TableName lt ${"nodez"}` };
  const pages = await all(service.listTables({ queryOptions }).byPage({ maxPageSize: 2 }));
  assert.deepEqual(pages.map((page) => page.length), [2, 1]);
  await refused("InvalidInput", service.listTables({ queryOptions: { filter: "eq" } }).all());
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
  await refused("EntityAlreadyExists", rows.createEntity(given), 409);
  await refused("PropertyNameInvalid", rows.createEntity({ partitionKey: "p", rowKey: "x", "a-b": 1 }));
  await refused("OutOfRangeInput", rows.createEntity({ partitionKey: "p", rowKey: "a/b" }));
  for (const name of AWKWARD) {
    await rows.createEntity({ partitionKey: name, rowKey: name, n: 1 });
    assert.equal((await rows.getEntity(name, name)).rowKey, name);
    const found = await rows
      .listEntities({ queryOptions: { filter: odata`PartitionKey eq ${name}` } })
      .all();
    assert.equal(found.length, 1, name);
    await rows.deleteEntity(name, name);
  }
  await refused("ResourceNotFound", rows.getEntity("p", "none"), 404);
  const none = table("nowhere");
  await refused("TableNotFound", none.getEntity("p", "r"), 404);
  await refused("TableNotFound", none.createEntity({ partitionKey: "p", rowKey: "r" }), 404);
  await refused("TableNotFound", none.upsertEntity({ partitionKey: "p", rowKey: "r" }), 404);
  await refused("TableNotFound", none.listEntities().all(), 404);
  const big = await rows.listEntities({ queryOptions: { filter: odata`large eq ${given.large}` } }).all();
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
  const error = await refused(
    "UpdateConditionNotSatisfied",
    rows.updateEntity({ ...row, n: 3 }, "Merge", { etag }),
    412,
  );
  assert.match(error.message, /changed .* ago by Update Entity/);
  await refused("UpdateConditionNotSatisfied", rows.deleteEntity("p", "r", { etag }), 412);
  await rows.updateEntity({ partitionKey: "p", rowKey: "r", n: 4 });
  assert.equal((await rows.getEntity("p", "r")).kept, true);
  await rows.upsertEntity({ partitionKey: "p", rowKey: "r", n: 5 }, "Replace");
  assert.equal((await rows.getEntity("p", "r")).kept, undefined);
  await refused("ResourceNotFound", rows.updateEntity({ partitionKey: "p", rowKey: "none" }), 404);
  await rows.deleteEntity("p", "r");
  await refused("ResourceNotFound", rows.deleteEntity("p", "r"), 404);
}

async function queries() {
  const rows = table("nodequeries");
  await rows.createTable();
  for (let group = 0; group < 3; group += 1) {
    const transaction = seen(new TableTransaction());
    for (let n = 0; n < 100; n += 1) {
      transaction.createEntity({ partitionKey: "p", rowKey: `${group}-${n}`, n, group });
    }
    await rows.submitTransaction(transaction.actions);
  }
  const pages = await all(rows.listEntities().byPage({ maxPageSize: 120 }));
  assert.deepEqual(pages.map((page) => page.length), [120, 120, 60]);
  const queryOptions = { filter: odata`group eq ${1} and n ge ${90}`, select: ["n"] };
  const found = await rows.listEntities({ queryOptions }).all();
  assert.equal(found.length, 10);
  await refused("InvalidInput", rows.listEntities({ queryOptions: { filter: "a b" } }).all(), 400);
}

async function transactions() {
  const rows = table("nodetransactions");
  await rows.createTable();
  const row = (rowKey, more = {}) => ({ partitionKey: "p", rowKey, ...more });
  for (const name of ["b", "c", "d"]) await rows.createEntity(row(name, { n: 0 }));
  const transaction = seen(new TableTransaction());
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
  const error = await refused(
    "EntityAlreadyExists",
    rows.submitTransaction([["create", row("x")], ["create", row("a")]]),
    409,
  );
  assert.match(error.message, /1:The specified entity already exists/);
  const stale = { etag: "W/\"datetime'2020-01-01T00%3A00%3A00Z'\"" };
  await refused(
    "UpdateConditionNotSatisfied",
    rows.submitTransaction([["update", row("a", { n: 2 }), "Merge", stale]]),
    412,
  );
  const many = Array.from({ length: 101 }, (_, n) => ["create", row(String(n))]);
  await refused("InvalidInput", rows.submitTransaction(many), 400);
  await refused(
    "InvalidDuplicateRow",
    rows.submitTransaction([["create", row("x")], ["upsert", row("x"), "Merge"]]),
    400,
  );
  // The client itself refuses two partitions.
  const elsewhere = { partitionKey: "q", rowKey: "y" };
  const across = rows.submitTransaction([["create", row("x")], ["create", elsewhere]]);
  await assert.rejects(across, /same partitionKey/);
  await refused("TableNotFound", table("nowhere").submitTransaction([["create", row("x")]]), 404);
  assert.equal((await rows.listEntities().all()).length, 5);
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
  await refused("InvalidXmlDocument", rows.setAccessPolicy(six), 400);
  await refused("TableNotFound", table("nowhere").getAccessPolicy(), 404);
  await refused("TableNotFound", table("nowhere").setAccessPolicy([]), 404);
}

async function signatures() {
  const rows = table("nodesigned");
  await rows.createTable();
  for (const name of ["a", "b", "c"]) await rows.createEntity({ partitionKey: "p", rowKey: name });
  const by = (permissions, more = {}) =>
    table(
      "nodesigned",
      new AzureSASCredential(
        generateTableSas("nodesigned", credential, { permissions, expiresOn, ...more }),
      ),
    );
  const range = {
    startPartitionKey: "p", startRowKey: "b", endPartitionKey: "p", endRowKey: "c",
  };
  const ranged = by({ query: true }, range);
  assert.deepEqual((await ranged.listEntities().all()).map((one) => one.rowKey), ["b", "c"]);
  await refused("AuthorizationFailure", ranged.getEntity("p", "a"), 403);
  const adder = by({ add: true });
  await refused("AuthorizationPermissionMismatch", adder.listEntities().all(), 403);
  const upsert = adder.upsertEntity({ partitionKey: "p", rowKey: "d" });
  await refused("AuthorizationPermissionMismatch", upsert, 403);
  await by({ add: true, update: true }).upsertEntity({ partitionKey: "p", rowKey: "d" });
  const sas = generateAccountSas(credential, { expiresOn });
  const everything = seen(new TableServiceClient(endpoint, new AzureSASCredential(sas), options));
  assert.ok((await everything.listTables().all()).length > 0);
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
  await refused("InvalidXmlDocument", service.setProperties({ cors: Array(6).fill(rule) }), 400);
  await service.setProperties({ cors: [] });
  const secondary = `${endpoint}-secondary`;
  const second = seen(new TableServiceClient(secondary, credential, options));
  assert.equal((await second.getStatistics()).geoReplication.status, "live");
  const wrong = new AzureNamedKeyCredential(account, "d3Jvbmc=");
  const stranger = seen(new TableServiceClient(secondary, wrong, options));
  await refused("AuthenticationFailed", stranger.getStatistics(), 403);
  await refused("AuthenticationFailed", stranger.getProperties(), 403);
}

async function building() {
  const text =
    `DefaultEndpointsProtocol=http;AccountName=${account};AccountKey=${key};` +
    `TableEndpoint=${endpoint};`;
  const byText = seen(TableServiceClient.fromConnectionString(text, options));
  note("TableServiceClient", "fromConnectionString", "good");
  await byText.createTable("nodebuilt");
  const rows = seen(TableClient.fromConnectionString(text, "nodebuilt", options));
  note("TableClient", "fromConnectionString", "good");
  await rows.createEntity({ partitionKey: "p", rowKey: "r" });
  assert.equal((await rows.listEntities().all()).length, 1);
}

/** What the table of methods, the client and the rounds do not agree on. */
function differences() {
  const found = [];
  for (const type of [TableServiceClient, TableClient, TableTransaction]) {
    const rows = METHODS[type.name];
    const hidden = /^(constructor|_.*|list.*All|list.*Page|length|name|prototype)$/;
    const have = [...Object.getOwnPropertyNames(type.prototype), ...Object.getOwnPropertyNames(type)];
    for (const name of have.filter((name) => !hidden.test(name))) {
      if (!rows[name]) found.push(`${type.name}.${name} is not in the table`);
    }
    for (const [name, codes] of Object.entries(rows)) {
      const met = noted[type.name]?.[name] ?? new Set();
      const missing = ["good", ...codes].filter((code) => !met.has(code));
      if (missing.length) found.push(`${type.name}.${name}: no ${missing}, only ${[...met]}`);
    }
  }
  return found;
}

for (const play of [
  tables, entities, conditions, queries, transactions, policies, signatures, serviceLevel, building,
]) {
  await play();
}
assert.deepEqual(differences(), []);
console.log("met");
