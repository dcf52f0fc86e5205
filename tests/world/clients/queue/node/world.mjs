// What every part of the round of queues shares.
import { clients } from "../../harness/node/world.mjs";
import { library } from "./methods.mjs";

export * from "../../harness/node/world.mjs";
export const { sdk, credential, service, stranger } = clients(library, "QueueServiceClient");

/** A new queue of that name. */
export async function queueOf(name, options) {
  const queue = service.getQueueClient(name);
  await queue.create(options);
  return queue;
}

/** A queue that is not there. */
export const nothing = service.getQueueClient("nothing-here");
