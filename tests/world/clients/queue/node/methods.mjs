// Every public method of the SDK of queues, and how the round calls each.
import { BOTH, FUNCTIONS, LOCAL, load, NEVER } from "../../harness/node/sdk.mjs";

export const library = load("@azure/storage-queue", {
  QueueServiceClient: "QueueServiceClient.d.ts",
  QueueClient: "QueueClient.d.ts",
});

/** What cannot succeed, and why. */
export const UNSUPPORTED = {
  "QueueServiceClient.getUserDelegationKey": "a bearer alone may ask for it",
};

export const METHODS = {
  QueueServiceClient: {
    fromConnectionString: BOTH,
    getQueueClient: LOCAL,
    listQueues: BOTH,
    getProperties: BOTH,
    setProperties: BOTH,
    getStatistics: BOTH,
    createQueue: BOTH,
    deleteQueue: BOTH,
    generateAccountSasUrl: BOTH,
    generateSasStringToSign: BOTH,
    getUserDelegationKey: NEVER,
  },
  QueueClient: {
    name: LOCAL,
    create: BOTH,
    createIfNotExists: BOTH,
    deleteIfExists: BOTH,
    delete: BOTH,
    exists: BOTH,
    getProperties: BOTH,
    setMetadata: BOTH,
    getAccessPolicy: BOTH,
    setAccessPolicy: BOTH,
    clearMessages: BOTH,
    sendMessage: BOTH,
    receiveMessages: BOTH,
    peekMessages: BOTH,
    deleteMessage: BOTH,
    updateMessage: BOTH,
    generateSasUrl: BOTH,
    generateSasStringToSign: BOTH,
    generateUserDelegationSasUrl: LOCAL,
    generateUserDelegationStringToSign: LOCAL,
  },
  [FUNCTIONS]: {
    generateAccountSASQueryParameters: BOTH,
    generateQueueSASQueryParameters: BOTH,
  },
};
