// The service: properties, containers page by page, statistics, tags across containers.
import assert from "node:assert/strict";

import {
  all, credential, facts, later, ONE_TRY, refused, sdk, service, stranger, textOf,
} from "./world.mjs";

export async function serviceClient() {
  assert.throws(() => sdk.BlobServiceClient.fromConnectionString("nonsense"));
  await properties();
  await containers();
  await statistics();
  await refused(403, "AuthenticationFailed", () =>
    service.getUserDelegationKey(new Date(), later()),
  );
}

async function properties() {
  const first = await service.getProperties();
  assert.equal(first.deleteRetentionPolicy.enabled, false);
  const cors = [
    {
      allowedOrigins: "http://a.example",
      allowedMethods: "GET",
      allowedHeaders: "x-ms-*",
      exposedHeaders: "*",
      maxAgeInSeconds: 60,
    },
  ];
  await service.setProperties({
    cors,
    deleteRetentionPolicy: { enabled: true, days: 3 },
    defaultServiceVersion: "2021-12-02",
    staticWebsite: { enabled: true, indexDocument: "index.html" },
    hourMetrics: {
      version: "1.0", enabled: true, includeAPIs: true, retentionPolicy: { enabled: true, days: 4 },
    },
  });
  const second = await service.getProperties();
  assert.deepEqual(second.cors, cors);
  assert.equal(second.deleteRetentionPolicy.days, 3);
  assert.equal(second.defaultServiceVersion, "2021-12-02");
  assert.equal(second.staticWebsite.indexDocument, "index.html");
  assert.equal(second.hourMetrics.retentionPolicy.days, 4);
  await refused(400, "InvalidXmlDocument", () =>
    service.setProperties({ cors: Array(6).fill(cors[0]) }),
  );
  await refused(403, "AuthenticationFailed", () => stranger.getProperties());
  const account = await service.getAccountInfo();
  assert.ok(account.skuName && account.accountKind);
  await refused(403, "AuthenticationFailed", () => stranger.getAccountInfo());
  await deleted();
  await service.setProperties({ cors: [], deleteRetentionPolicy: { enabled: false } });
}

async function deleted() {
  const { containerClient } = await service.createContainer("returning");
  await containerClient.uploadBlockBlob("b", "kept", 4);
  await service.deleteContainer("returning");
  const [gone] = await all(
    service.listContainers({ includeDeleted: true, prefix: "returning" }),
  );
  assert.ok(gone.deleted && gone.version, JSON.stringify(gone));
  const back = await service.undeleteContainer("returning", gone.version);
  assert.equal(await textOf(back.containerClient.getBlobClient("b")), "kept");
  await refused(404, "ContainerNotFound", () =>
    service.undeleteContainer("never", "01D60F8BB59A4652"),
  );
}

async function containers() {
  const names = ["page-a", "page-b", "page-c"];
  for (const name of names) {
    await service.createContainer(name, { metadata: { label: name } });
  }
  await refused(409, "ContainerAlreadyExists", () => service.createContainer("page-a"));
  const pages = [];
  const list = service.listContainers({ prefix: "page-", includeMetadata: true });
  for await (const page of list.byPage({ maxPageSize: 2 })) {
    pages.push(page.containerItems.map(({ name, metadata }) => [name, metadata.label]));
  }
  assert.deepEqual(pages, [
    [["page-a", "page-a"], ["page-b", "page-b"]],
    [["page-c", "page-c"]],
  ]);
  await refused(403, "AuthenticationFailed", () => all(stranger.listContainers()));
  const tagged = service.getContainerClient("page-b");
  await tagged.getBlockBlobClient("t").upload("x", 1, { tags: { colour: "blue" } });
  const [found] = await all(service.findBlobsByTags("\"colour\" = 'blue'"));
  assert.deepEqual([found.containerName, found.name, found.tagValue], ["page-b", "t", "blue"]);
  await refused(400, "InvalidQueryParameterValue", () => all(service.findBlobsByTags("nonsense")));
  for (const name of names) {
    await service.deleteContainer(name);
  }
  await refused(404, "ContainerNotFound", () => service.deleteContainer("page-a"));
}

async function statistics() {
  const secondary = (key) =>
    new sdk.BlobServiceClient(`${facts.endpoint}-secondary`, key, ONE_TRY);
  const said = await secondary(credential).getStatistics();
  assert.equal(said.geoReplication.status, "live");
  const wrong = new sdk.StorageSharedKeyCredential(facts.account, "AAAA");
  await refused(403, "AuthenticationFailed", () => secondary(wrong).getStatistics());
}
