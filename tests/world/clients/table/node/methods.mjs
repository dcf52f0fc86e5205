// Every public method of the SDK of tables, and what a round must meet: success, and these codes.
import { FUNCTIONS, LOCAL, load } from "../../harness/node/sdk.mjs";

export const library = load("@azure/data-tables", {
  TableServiceClient: "TableServiceClient.d.ts",
  TableClient: "TableClient.d.ts",
  TableTransaction: "TableTransaction.d.ts",
});

export const METHODS = {
  TableServiceClient: {
    fromConnectionString: LOCAL,
    getStatistics: ["good", "AuthenticationFailed"],
    getProperties: ["good", "AuthenticationFailed"],
    setProperties: ["good", "InvalidXmlDocument"],
    createTable: ["good", "InvalidResourceName", "OutOfRangeInput"],
    deleteTable: ["good", "InvalidResourceName"],
    listTables: ["good", "InvalidInput"],
  },
  TableClient: {
    fromConnectionString: LOCAL,
    createTable: ["good", "InvalidResourceName"],
    deleteTable: ["good", "OutOfRangeInput"],
    getEntity: ["good", "ResourceNotFound", "TableNotFound", "AuthorizationFailure"],
    listEntities: ["good", "TableNotFound", "InvalidInput", "AuthorizationPermissionMismatch"],
    createEntity: [
      "good",
      "EntityAlreadyExists",
      "TableNotFound",
      "PropertyNameInvalid",
      "OutOfRangeInput",
    ],
    deleteEntity: ["good", "UpdateConditionNotSatisfied", "ResourceNotFound"],
    updateEntity: ["good", "UpdateConditionNotSatisfied", "ResourceNotFound"],
    upsertEntity: ["good", "TableNotFound", "AuthorizationPermissionMismatch"],
    getAccessPolicy: ["good", "TableNotFound"],
    setAccessPolicy: ["good", "InvalidXmlDocument", "TableNotFound"],
    submitTransaction: [
      "good",
      "EntityAlreadyExists",
      "UpdateConditionNotSatisfied",
      "InvalidInput",
      "InvalidDuplicateRow",
      "TableNotFound",
    ],
  },
  TableTransaction: {
    createEntity: LOCAL,
    deleteEntity: LOCAL,
    updateEntity: LOCAL,
    upsertEntity: LOCAL,
  },
  [FUNCTIONS]: { generateAccountSas: LOCAL, generateTableSas: LOCAL },
};
