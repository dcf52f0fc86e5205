"""A race between an SMB client and a REST client, found by `explore`, and its corrected form.

Both count up a number in a file. The SMB client logs on with its client key, in a thread of its own.
In the corrected form one keeps writers out by its share mode, the other by a lease, and who is refused
counts nothing.
"""
import smbclient
from azure.core.exceptions import HttpResponseError
from azure.storage.fileshare import ShareFileClient
from smbprotocol.exceptions import SMBOSError

from latchfs import Server


def by_smb(server, guarded, connection):
    parts = dict(part.split("=", 1) for part in connection.split(";") if part)
    address = server.endpoints["smb"].removeprefix("smb://")
    host, port = address.rsplit(":", 1)
    cache = {}
    # Who shares only reading keeps every writer out until the file is closed.
    share = "r" if guarded else "rwd"
    login = {"username": parts["AccountName"], "password": parts["AccountKey"], "port": int(port)}
    try:
        with smbclient.open_file(
            rf"\\{host}\share\count", "r+", share_access=share, connection_cache=cache, **login
        ) as file:
            number = int(file.read())
            file.seek(0)
            file.write(str(number + 1))
    except SMBOSError as refused:
        assert guarded and refused.ntstatus == 0xC0000043, refused
        return 0
    finally:
        smbclient.reset_connection_cache(connection_cache=cache)
    return 1


def by_rest(guarded, connection):
    file = ShareFileClient.from_connection_string(connection, "share", "count", retry_total=0)
    try:
        lease = file.acquire_lease() if guarded else None
        number = int(file.download_file().readall())
        file.upload_range(str(number + 1).encode(), offset=0, length=1, lease=lease)
        if lease:
            lease.release()
    except HttpResponseError as refused:
        assert refused.error_code == "SharingViolation", refused
        return 0
    return 1


def explore(server, guarded, **options):
    def test():
        server.put("count", b"0")
        with server.clients() as c:
            done = [
                c.run("A", lambda connection: by_smb(server, guarded, connection)),
                c.run("B", lambda connection: by_rest(guarded, connection)),
            ]
        number = int(server.file("count").download_file().readall())
        assert number == sum(one.result() for one in done), number

    return server.explore(test, **options)


with Server(args=["--smb", "127.0.0.1:0"]) as server:
    found = explore(server, False)
    assert found.failure, found
    print(f"found: {found}", flush=True)
    again = explore(server, False, replay=found.failure.token)
    assert again.failure and again.runs == 1, again
    right = explore(server, True)
    print(f"corrected: {right}", flush=True)
    assert right.complete and not right.failure, right
print("met")
