"""The official Python SDK of blobs over TLS: bearer tokens, user delegation, customer's keys.

Usage: secure.py READY_FILE of a server that takes tokens. Fails with an assertion where an answer
is not as expected.
"""

import base64
import datetime
import hashlib
import json
import os
import sys

from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ContainerSasPermissions,
    CustomerProvidedEncryptionKey,
    generate_blob_sas,
    generate_container_sas,
)
from tokens import Token

ready = json.load(open(sys.argv[1], encoding="utf-8"))
ENDPOINT = ready["endpoints"]["blob"]
NOW = datetime.datetime.now(datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)


def client(credential):
    return BlobServiceClient(
        ENDPOINT, credential, connection_verify=ready["ca_file"], retry_total=0
    )


def refused(status, code, call):
    try:
        call()
    except HttpResponseError as error:
        assert (error.status_code, error.error_code) == (status, code), error
        return
    raise AssertionError(f"{code} expected")


def delegated():
    service = client(Token())
    container = service.create_container("con")
    container.upload_blob("b", b"by token")
    key = service.get_user_delegation_key(NOW - HOUR, NOW + HOUR)
    assert (key.signed_oid, key.signed_tid, key.signed_service) == ("somebody", "somewhere", "b")
    named = {"user_delegation_key": key, "expiry": NOW + HOUR}
    account = ready["account"]
    sas = generate_blob_sas(account, "con", "b", permission=BlobSasPermissions(read=True), **named)
    reader = client(sas)
    assert reader.get_blob_client("con", "b").download_blob().readall() == b"by token"
    refused(403, "AuthorizationPermissionMismatch", reader.get_blob_client("con", "b").delete_blob)
    other = reader.get_blob_client("con", "other")
    refused(403, "AuthenticationFailed", other.download_blob)
    sas = generate_container_sas(
        account, "con", permission=ContainerSasPermissions(read=True, list=True), **named
    )
    names = client(sas).get_container_client("con").list_blob_names()
    assert list(names) == ["b"]
    key.value = base64.b64encode(bytes(32)).decode()
    sas = generate_blob_sas(account, "con", "b", permission=BlobSasPermissions(read=True), **named)
    refused(403, "AuthenticationFailed", client(sas).get_blob_client("con", "b").download_blob)


def keys():
    """A blob under a customer's key is read with that key alone."""

    def new_key():
        secret = os.urandom(32)
        digest = hashlib.sha256(secret).digest()
        return CustomerProvidedEncryptionKey(
            base64.b64encode(secret).decode(), base64.b64encode(digest).decode()
        )

    blob = client(ready["key"]).get_blob_client("con", "k")
    mine, other = new_key(), new_key()
    blob.upload_blob(b"secret", cpk=mine)
    assert blob.download_blob(cpk=mine).readall() == b"secret"
    assert blob.get_blob_properties(cpk=mine).encryption_key_sha256 == mine.key_hash
    refused(409, "BlobUsesCustomerSpecifiedEncryption", blob.download_blob)
    mismatch = "BlobCustomerSpecifiedEncryptionMismatch"
    refused(409, mismatch, lambda: blob.download_blob(cpk=other))
    plain = client(ready["key"]).get_blob_client("con", "b")
    unknown = "BlobDoesNotUseCustomerSpecifiedEncryption"
    refused(409, unknown, lambda: plain.download_blob(cpk=mine))
    assert blob.exists()


delegated()
keys()
print("met")
