"""The SDK of blobs: how each public method is used, and the refusals its round must meet."""

import building
import containers
import content
import copies
import leases
import pages as page_blobs
import service
import signatures
import stage
import states
import tags
from azure.storage import blob
from azure.storage.blob import BlobSasPermissions, aio
from checks import HOUR, now
from faces import Library
from methods import BUILDS, HOST, MAKES, never, pages, sends

ROUNDS = (
    service.play,
    containers.play,
    content.play,
    page_blobs.play,
    leases.play,
    states.play,
    copies.play,
    tags.play,
    building.play,
    signatures.play,
)


class Stage(stage.Stage):
    """The server, and a second one, `versioned`, that keeps versions and leaves copies pending."""

    def __init__(self, facts, face):
        super().__init__(facts, face)
        self.versioned = face.BlobServiceClient(facts["versioned"], self.key, **stage.ONCE)

    async def close(self):
        await super().close()
        await self.versioned.close()

    def readable(self, blob):
        """The address of a blob as the source of a copy, with the right to read it."""
        sas = self.face.generate_blob_sas(
            self.account,
            blob.container_name,
            blob.blob_name,
            account_key=self.key,
            permission=BlobSasPermissions(read=True),
            expiry=now() + HOUR,
        )
        return f"{blob.url}?{sas}"


AUTH, DENIED = "AuthenticationFailed", "AuthorizationPermissionMismatch"
NO_BLOB, NO_CONTAINER = "BlobNotFound", "ContainerNotFound"
NOT_MET, EXISTS = "ConditionNotMet", "BlobAlreadyExists"
MISSING, MISMATCH = "LeaseIdMissing", "LeaseIdMismatchWithBlobOperation"
OF_LEASE = "LeaseIdMismatchWithLeaseOperation"
OF_CONTAINER = "LeaseIdMismatchWithContainerOperation"
SOURCE = "CannotVerifyCopySource"
KIND = "InvalidBlobType"
# The refusals of a batch are in its parts, which the rounds look at.
PARTS = "None"

TABLE = {
    "BlobServiceClient": {
        **HOST,
        "create_container": sends(
            "ContainerAlreadyExists", "InvalidResourceName", "OutOfRangeInput", DENIED
        ),
        "delete_container": sends(
            NO_CONTAINER, NOT_MET, "LeaseNotPresentWithContainerOperation", DENIED
        ),
        "find_blobs_by_tags": pages("InvalidQueryParameterValue"),
        "get_account_information": sends(AUTH),
        "get_blob_client": MAKES,
        "get_container_client": MAKES,
        "get_service_properties": sends(AUTH),
        "get_service_stats": sends(AUTH),
        # Over TLS, with a token, it succeeds: secure.py.
        "get_user_delegation_key": never(AUTH),
        "list_containers": pages(
            AUTH,
            DENIED,
            "AuthorizationProtocolMismatch",
            "AuthorizationResourceTypeMismatch",
            "AuthorizationServiceMismatch",
            "AuthorizationSourceIPMismatch",
            "OutOfRangeQueryParameterValue",
        ),
        "set_service_properties": sends("InvalidXmlDocument"),
        "undelete_container": sends(NO_CONTAINER),
    },
    "ContainerClient": {
        **HOST,
        "acquire_lease": sends("InvalidHeaderValue", "LeaseAlreadyPresent", NO_CONTAINER),
        "create_container": sends("ContainerAlreadyExists"),
        "delete_blob": sends(NO_BLOB),
        "delete_blobs": sends(AUTH, PARTS),
        "delete_container": sends("AuthorizationFailure", "LeaseLost", MISSING, NO_CONTAINER),
        "download_blob": sends(NO_BLOB),
        "exists": sends(AUTH),
        "find_blobs_by_tags": pages("InvalidQueryParameterValue", NO_CONTAINER),
        "from_container_url": BUILDS,
        "get_account_information": sends(AUTH),
        "get_blob_client": MAKES,
        "get_container_access_policy": sends(NO_CONTAINER),
        "get_container_properties": sends("AuthorizationFailure", NO_CONTAINER, OF_CONTAINER),
        "list_blob_names": pages(NO_CONTAINER),
        "list_blobs": pages(
            "NoAuthenticationInformation",
            "OutOfRangeQueryParameterValue",
            AUTH,
            DENIED,
            NO_CONTAINER,
        ),
        "set_container_access_policy": sends("InvalidXmlDocument", NOT_MET, NO_CONTAINER),
        "set_container_metadata": sends("InvalidMetadata", NOT_MET, NO_CONTAINER, OF_CONTAINER),
        # A standard account has no such tiers.
        "set_premium_page_blob_tier_blobs": never(PARTS),
        "set_standard_blob_tier_blobs": sends(AUTH, PARTS),
        "upload_blob": sends(DENIED, EXISTS, NO_CONTAINER),
        "walk_blobs": pages(NO_CONTAINER),
    },
    "BlobClient": {
        **HOST,
        "abort_copy": sends("CopyIdMismatch", "NoPendingCopyOperation", NO_BLOB),
        "acquire_lease": sends(
            "InvalidHeaderValue",
            "LeaseAlreadyPresent",
            "PendingCopyOperation",
            DENIED,
            NOT_MET,
            NO_BLOB,
        ),
        "append_block": sends(
            "AppendPositionConditionNotMet",
            "BlobIsSealed",
            "MaxBlobSizeConditionNotMet",
            KIND,
            NO_BLOB,
        ),
        "append_block_from_url": sends(SOURCE),
        "clear_page": sends("SequenceNumberConditionNotMet"),
        "commit_block_list": sends("InvalidBlockList", EXISTS, MISMATCH, MISSING, NOT_MET),
        "create_append_blob": sends(EXISTS, NOT_MET),
        "create_page_blob": sends("InvalidHeaderValue", NOT_MET),
        "create_snapshot": sends(DENIED, MISMATCH, NOT_MET, NO_BLOB),
        "delete_blob": sends(
            "BlobImmutableDueToLegalHold",
            "BlobImmutableDueToPolicy",
            "LeaseNotPresentWithBlobOperation",
            "NoAuthenticationInformation",
            "OperationNotAllowedOnRootBlob",
            "SnapshotsPresent",
            DENIED,
            MISSING,
            NOT_MET,
            NO_BLOB,
        ),
        "delete_immutability_policy": sends(NO_BLOB),
        "download_blob": sends(
            "BlobArchived",
            "InvalidRange",
            "NoAuthenticationInformation",
            AUTH,
            MISMATCH,
            NOT_MET,
            NO_BLOB,
        ),
        "exists": sends(AUTH),
        "from_blob_url": BUILDS,
        "get_account_information": sends(AUTH),
        "get_blob_properties": sends(MISMATCH, NOT_MET, NO_BLOB),
        "get_blob_tags": sends(AUTH, DENIED, NOT_MET, NO_BLOB),
        "get_block_list": sends(NO_BLOB),
        "get_page_range_diff_for_managed_disk": sends("PreviousSnapshotNotFound"),
        "get_page_ranges": sends("PreviousSnapshotNotFound", KIND),
        "list_page_ranges": pages("PreviousSnapshotNotFound"),
        "query_blob": never("NotImplemented"),
        "resize_blob": sends("InvalidHeaderValue", KIND),
        "seal_append_blob": sends("AppendPositionConditionNotMet"),
        "set_blob_metadata": sends(
            "EmptyMetadataKey", "InvalidMetadata", MISMATCH, MISSING, NOT_MET, NO_BLOB
        ),
        "set_blob_tags": sends("TagsTooLarge", DENIED, MISMATCH, MISSING, NOT_MET, NO_BLOB),
        "set_http_headers": sends(MISMATCH, MISSING, NOT_MET, NO_BLOB),
        "set_immutability_policy": sends("InvalidHeaderValue", NO_BLOB),
        "set_legal_hold": sends(NO_BLOB),
        "set_premium_page_blob_tier": never("AccessTierNotSupportedForBlobType"),
        "set_sequence_number": sends(KIND),
        "set_standard_blob_tier": sends("InvalidHeaderValue", MISMATCH, MISSING, NO_BLOB),
        "stage_block": sends(
            "OutOfRangeInput", "InvalidBlobOrBlock", KIND, MISMATCH, MISSING, NO_CONTAINER
        ),
        "stage_block_from_url": sends(SOURCE),
        "start_copy_from_url": sends(
            "SourceConditionNotMet", "TargetConditionNotMet", SOURCE, NO_BLOB
        ),
        "undelete_blob": sends(NO_CONTAINER),
        "upload_blob": sends(
            "BlobImmutableDueToLegalHold",
            "LeaseLost",
            "MetadataTooLarge",
            "PendingCopyOperation",
            "UnauthorizedBlobOverwrite",
            DENIED,
            EXISTS,
            MISMATCH,
            MISSING,
            NOT_MET,
        ),
        "upload_blob_from_url": sends("SourceConditionNotMet", EXISTS, SOURCE),
        "upload_page": sends("InvalidPageRange", "SequenceNumberConditionNotMet", NO_BLOB),
        "upload_pages_from_url": sends(SOURCE),
    },
    "BlobLeaseClient": {
        "acquire": sends("LeaseIsBreakingAndCannotBeAcquired", NO_CONTAINER),
        "break_lease": sends("LeaseNotPresentWithLeaseOperation"),
        "change": sends("LeaseIsBreakingAndCannotBeChanged", OF_LEASE),
        "release": sends(OF_LEASE),
        "renew": sends("LeaseIsBrokenAndCannotBeRenewed", OF_LEASE),
    },
}

LIBRARY = Library(
    blob,
    aio,
    ("BlobServiceClient", "ContainerClient", "BlobClient", "BlobLeaseClient"),
    ("generate_account_sas", "generate_blob_sas", "generate_container_sas"),
    TABLE,
)
