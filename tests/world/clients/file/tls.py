"""The official Python SDK against two latchfs over TLS, by bearer token, by key and by SAS.

Usage: tls.py READY_FILE OTHER_READY_FILE. The first takes tokens and sources from anywhere; the
second is the other server that files are copied from. Fails with an assertion where an answer is
not as expected.
"""

import datetime
import json
import sys
import time

from azure.core.exceptions import (
    ClientAuthenticationError,
    HttpResponseError,
    ResourceNotFoundError,
    ServiceRequestError,
)
from azure.storage.fileshare import (
    ResourceTypes,
    ShareServiceClient,
    generate_account_sas,
    generate_file_sas,
)
from tokens import Token

ready, other = (json.load(open(name, encoding="utf-8")) for name in sys.argv[1:3])
HOUR = datetime.timedelta(hours=1)
LONG = 9 * 1024 * 1024


def by_token(endpoint=ready["endpoint"], **claims):
    return ShareServiceClient(
        endpoint,
        credential=Token(**claims),
        token_intent="backup",
        connection_verify=ready["ca_file"],
        retry_total=0,
    )


def by_key(server):
    return ShareServiceClient.from_connection_string(
        server["connection_string"], connection_verify=server["ca_file"], retry_total=0
    )


def refused(call, kind, code=None):
    """The refusal that `call` must meet."""
    try:
        call()
    except kind as error:
        if code:
            assert error.error_code == code, (error.error_code, code)
        return error
    raise AssertionError(f"{kind.__name__} {code} expected")


def tokens():
    start = datetime.datetime.now(datetime.timezone.utc)
    key = by_token().get_user_delegation_key(
        start=start, expiry=start + datetime.timedelta(hours=1)
    )
    assert key.value and key.signed_service == "f", key
    share = by_token().get_share_client("share")
    file = share.get_file_client("a.txt")
    file.upload_file(b"hello")
    assert file.download_file().readall() == b"hello"
    assert [item.name for item in share.list_directories_and_files()] == ["a.txt"]
    assert file.acquire_lease().id
    expired = by_token(exp=int(time.time()) - 1).get_share_client("share").get_file_client("a.txt")
    error = refused(expired.get_file_properties, ClientAuthenticationError, None)
    assert error.status_code == 401, error
    challenge = error.response.headers["WWW-Authenticate"]
    assert "authorization_uri=" in challenge and "resource_id=" in challenge, challenge
    stranger = by_token(aud="https://graph.microsoft.com").get_share_client("share")
    refused(lambda: list(stranger.list_directories_and_files()), ClientAuthenticationError)
    # The SDK itself sends no token over http: why a server that takes them needs TLS.
    refused(lambda: by_token(ready["endpoint"].replace("https:", "http:")), ValueError)


def not_trusted():
    stranger = ShareServiceClient.from_connection_string(
        ready["connection_string"], connection_verify=other["ca_file"], retry_total=0
    )
    error = refused(lambda: list(stranger.list_shares()), ServiceRequestError)
    assert "CERTIFICATE_VERIFY_FAILED" in str(error), error


def https_only():
    sas = generate_account_sas(
        ready["account"],
        ready["key"],
        resource_types=ResourceTypes(service=True, container=True, object=True),
        permission="rl",
        expiry=datetime.datetime.now(datetime.timezone.utc) + HOUR,
        protocol="https",
    )
    reader = ShareServiceClient(
        ready["endpoint"], credential=sas, connection_verify=ready["ca_file"], retry_total=0
    )
    assert [share.name for share in reader.list_shares()] == ["share"]


def source_url(name, permission="r"):
    sas = generate_file_sas(
        other["account"],
        "share",
        [name],
        other["key"],
        permission=permission,
        expiry=datetime.datetime.now(datetime.timezone.utc) + HOUR,
    )
    return f"{other['endpoint']}/share/{name}?{sas}"


def ended(file):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        copy = file.get_file_properties().copy
        if copy.status != "pending":
            return copy
        time.sleep(0.01)
    raise AssertionError("the copy does not end")


def copies():
    theirs = by_key(other).get_share_client("share")
    theirs.get_file_client("short").upload_file(b"0123456789", metadata={"k": "v"})
    theirs.get_file_client("long").upload_file(b"x" * LONG)
    share = by_key(ready).get_share_client("share")
    for name, size in [("short", 10), ("long", LONG)]:
        file = share.get_file_client(name)
        file.start_copy_from_url(source_url(name))
        copy = ended(file)
        assert copy.status == "success" and copy.progress == f"{size}/{size}", copy
    assert share.get_file_client("long").download_file().readall() == b"x" * LONG
    assert share.get_file_client("short").get_file_properties().metadata == {"k": "v"}
    file = share.get_file_client("short")
    file.upload_range_from_url(source_url("short"), offset=0, length=3, source_offset=7)
    assert file.download_file().readall() == b"7893456789"
    lost = lambda: file.start_copy_from_url(source_url("none"))  # noqa: E731
    error = refused(lost, ResourceNotFoundError, "CannotVerifyCopySource")
    assert error.response.headers["x-ms-copy-source-status-code"] == "404"
    closed = lambda: file.start_copy_from_url(source_url("short", "d"))  # noqa: E731
    refused(closed, HttpResponseError, "CannotVerifyCopySource")


tokens()
not_trusted()
https_only()
copies()
print("met")
