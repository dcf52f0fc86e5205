"""The SDK of queues: how each public method is used, and the refusals its round must meet."""

import building
import messages
import queues
import service
import signatures
from azure.storage import queue
from azure.storage.queue import aio
from faces import Library
from methods import BUILDS, HOST, MAKES, never, pages, sends
from stage import Stage  # noqa: F401

ROUNDS = (service.play, queues.play, messages.play, building.play, signatures.play)

TABLE = {
    "QueueServiceClient": {
        **HOST,
        "create_queue": sends("InvalidResourceName", "OutOfRangeInput", "QueueAlreadyExists"),
        "delete_queue": sends("QueueNotFound"),
        "get_queue_client": MAKES,
        "get_service_properties": sends("AuthenticationFailed", "AuthorizationPermissionMismatch"),
        "get_service_stats": sends("AuthenticationFailed"),
        "get_user_delegation_key": never("AuthenticationFailed"),
        "list_queues": pages(
            "AuthenticationFailed",
            "AuthorizationPermissionMismatch",
            "AuthorizationProtocolMismatch",
            "AuthorizationResourceTypeMismatch",
            "AuthorizationServiceMismatch",
            "AuthorizationSourceIPMismatch",
            "OutOfRangeQueryParameterValue",
        ),
        "set_service_properties": sends("InvalidXmlDocument"),
    },
    "QueueClient": {
        **HOST,
        "clear_messages": sends("AuthorizationPermissionMismatch", "QueueNotFound"),
        "create_queue": sends("InvalidMetadata", "MetadataTooLarge", "QueueAlreadyExists"),
        "delete_message": sends(
            "AuthorizationPermissionMismatch",
            "MessageNotFound",
            "PopReceiptMismatch",
            "QueueNotFound",
        ),
        "delete_queue": sends("AuthorizationPermissionMismatch", "QueueNotFound"),
        "from_queue_url": BUILDS,
        "get_queue_access_policy": sends("AuthorizationPermissionMismatch", "QueueNotFound"),
        "get_queue_properties": sends(
            "AuthenticationFailed", "AuthorizationPermissionMismatch", "QueueNotFound"
        ),
        "peek_messages": sends(
            "AuthenticationFailed",
            "AuthorizationPermissionMismatch",
            "OutOfRangeQueryParameterValue",
            "QueueNotFound",
        ),
        "receive_message": sends(
            "AuthorizationPermissionMismatch", "OutOfRangeQueryParameterValue", "QueueNotFound"
        ),
        "receive_messages": pages(
            "AuthorizationPermissionMismatch", "OutOfRangeQueryParameterValue", "QueueNotFound"
        ),
        "send_message": sends(
            "AuthorizationPermissionMismatch",
            "InvalidQueryParameterValue",
            "OutOfRangeQueryParameterValue",
            "QueueNotFound",
            "RequestBodyTooLarge",
        ),
        "set_queue_access_policy": sends("InvalidXmlDocument", "QueueNotFound"),
        "set_queue_metadata": sends("InvalidMetadata", "MetadataTooLarge", "QueueNotFound"),
        "update_message": sends(
            "AuthorizationPermissionMismatch",
            "MessageNotFound",
            "OutOfRangeQueryParameterValue",
            "PopReceiptMismatch",
            "QueueNotFound",
            "RequestBodyTooLarge",
        ),
    },
}

LIBRARY = Library(
    queue,
    aio,
    ("QueueServiceClient", "QueueClient"),
    ("generate_account_sas", "generate_queue_sas"),
    TABLE,
)
