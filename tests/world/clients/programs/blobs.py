"""What the rounds of command-line clients on blobs share: the service, and trees in a container.

A container is read with the Python SDK, which has rounds of its own.
"""
import datetime

from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient, generate_account_sas

from common import ready

connection_string = ready["connection_string"]
service = BlobServiceClient.from_connection_string(connection_string, retry_total=0)
endpoint = service.url.rstrip("/")


def container(name):
    """The client of a container, made if it is missing."""
    client = service.get_container_client(name)
    try:
        client.create_container()
    except ResourceExistsError:
        pass
    return client


def blobs_of(name, prefix=""):
    """Every blob of a container below a prefix with its bytes, by name without the prefix."""
    client = service.get_container_client(name)
    names = client.list_blob_names(name_starts_with=prefix)
    return {one.removeprefix(prefix): client.download_blob(one).readall() for one in names}


def same_as_blobs(tree, name, prefix=""):
    """Fails where a tree of files and the blobs of a container differ, and says in which names."""
    blobs = blobs_of(name, prefix)
    names = {one for one in tree.keys() | blobs.keys() if tree.get(one) != blobs.get(one)}
    assert not names, f"{name}/{prefix} differs in {sorted(names)}"


def signed(path, permission="racwdlt"):
    """The address of a container or blob with a signature of the account."""
    hour = datetime.timedelta(hours=1)
    expiry = datetime.datetime.now(datetime.timezone.utc) + hour
    sas = generate_account_sas(
        ready["account"], ready["key"], "sco", permission=permission, expiry=expiry
    )
    return f"{endpoint}/{path}?{sas}"
