"""The SDK of tables: how each public method is used, and the refusals its round must meet."""

import rounds
import stage
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.data import tables
from azure.data.tables import aio
from faces import Library
from methods import BUILDS, CLOSES, MAKES, SAYS, pages, sends

ROUNDS = (
    rounds.tables,
    rounds.entities,
    rounds.conditions,
    rounds.queries,
    rounds.transactions,
    rounds.policies,
    rounds.signatures,
    rounds.account_signatures,
    rounds.service,
    rounds.building,
)


class Stage(stage.Stage):
    """The server and its clients."""

    def __init__(self, facts, face):
        super().__init__(facts, face)
        self.credential = AzureNamedKeyCredential(self.account, self.key)

    def with_sas(self, sas):
        return self.face.TableServiceClient(self.endpoint, credential=AzureSasCredential(sas))

    async def table(self, name):
        return await self.service.create_table(name)


TABLE = {
    "TableServiceClient": {
        "api_version": SAYS,
        "close": CLOSES,
        "create_table": sends(
            "TableAlreadyExists", "ValueError", "AuthenticationFailed",
            "AuthorizationResourceTypeMismatch",
        ),
        "create_table_if_not_exists": sends("ValueError"),
        "delete_table": sends("ValueError"),
        "from_connection_string": BUILDS,
        "get_service_properties": sends("AuthorizationPermissionMismatch"),
        "get_service_stats": sends("AuthenticationFailed"),
        "get_table_client": MAKES,
        "list_tables": pages("AuthenticationFailed"),
        "query_tables": pages("InvalidInput"),
        "set_service_properties": sends("InvalidXmlDocument"),
        "url": SAYS,
    },
    "TableClient": {
        "api_version": SAYS,
        "close": CLOSES,
        "create_entity": sends(
            "EntityAlreadyExists", "TableNotFound", "PropertyNameInvalid", "TooManyProperties",
            "PropertyValueTooLarge", "EntityTooLarge", "OutOfRangeInput", "KeyValueTooLarge",
            "PropertyNameTooLong", "AuthorizationPermissionMismatch", "ValueError",
            "AuthorizationFailure",
        ),
        "create_table": sends("TableAlreadyExists", "ValueError"),
        "delete_entity": sends("UpdateConditionNotSatisfied", "AuthorizationPermissionMismatch"),
        "delete_table": sends("ValueError"),
        "from_connection_string": BUILDS,
        "from_table_url": BUILDS,
        "get_entity": sends(
            "ResourceNotFound", "TableNotFound", "AuthenticationFailed", "AuthorizationFailure",
        ),
        "get_table_access_policy": sends("TableNotFound"),
        "list_entities": pages("TableNotFound", "AuthorizationPermissionMismatch"),
        "query_entities": pages("InvalidInput"),
        "set_table_access_policy": sends("ValueError", "TableNotFound"),
        "submit_transaction": sends(
            "EntityAlreadyExists", "UpdateConditionNotSatisfied", "ResourceNotFound",
            "InvalidInput", "InvalidDuplicateRow", "TableNotFound", "RequestBodyTooLarge",
        ),
        "update_entity": sends(
            "UpdateConditionNotSatisfied", "ResourceNotFound", "AuthorizationPermissionMismatch",
        ),
        "upsert_entity": sends("TableNotFound", "AuthorizationPermissionMismatch"),
        "url": SAYS,
    },
}

LIBRARY = Library(
    tables,
    aio,
    ("TableServiceClient", "TableClient"),
    ("generate_account_sas", "generate_table_sas"),
    TABLE,
)
