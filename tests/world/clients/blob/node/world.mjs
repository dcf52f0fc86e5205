// What every part of the round of blobs shares.
import { clients, facts, later, ONE_TRY, wholeOf } from "../../harness/node/world.mjs";
import { library } from "./methods.mjs";

export * from "../../harness/node/world.mjs";
export const { sdk, credential, service, stranger } = clients(library, "BlobServiceClient");
/** The server that keeps versions and leaves copies pending. */
export const versioned = new sdk.BlobServiceClient(facts.versioned, credential, ONE_TRY);
export const A = "00000000-0000-4000-8000-00000000000a";
export const B = "00000000-0000-4000-8000-00000000000b";

/** The content of a blob, as text. */
export async function textOf(blob, ...args) {
  const answer = await blob.download(...args);
  return (await wholeOf(answer.readableStreamBody)).toString();
}

/** A new container of that name. */
export async function containerOf(name, of = service) {
  const container = of.getContainerClient(name);
  await container.create();
  return container;
}

/** The address of a blob as the source of a copy, with the right to read it. */
export const readable = (blob) =>
  blob.generateSasUrl({ permissions: sdk.BlobSASPermissions.parse("r"), expiresOn: later() });

/** A container that is not there. */
export const nothing = service.getContainerClient("nothing-here");
