"""smbprotocol, signed and encrypted: share modes and listings, with REST on the other side."""
import smbclient
from smbprotocol.exceptions import SMBOSError
from smbprotocol.header import NtStatus

from common import account, host, key, port, rest

ROOT = rf"\\{host}\share"


def status_of(call):
    try:
        call()
    except SMBOSError as error:
        return error.ntstatus
    return 0


def a_round(encrypt):
    login = {"username": account, "password": key, "port": port, "encrypt": encrypt}
    cache = {}
    options = {**login, "connection_cache": cache}
    smbclient.mkdir(rf"{ROOT}\dir", **options)
    name = rf"{ROOT}\dir\f.txt"
    with smbclient.open_file(name, "wb", share_access="r", **options) as file:
        file.write(b"hello" * 100_000)
        file.flush()
        status, code, _ = rest("DELETE", "dir/f.txt")
        assert (status, code) == (409, "SharingViolation"), (status, code)
        assert rest("GET", "dir/f.txt")[2] == b"hello" * 100_000
        late = status_of(lambda: open_again("wb", name, options))
        assert late == NtStatus.STATUS_SHARING_VIOLATION, hex(late)
    with smbclient.open_file(name, "rb", share_access=None, **options) as file:
        assert file.read() == b"hello" * 100_000
        status, code, told = rest("GET", "dir/f.txt")
        assert (status, code) == (409, "SharingViolation"), (status, code)
        assert f"SMB {host}".encode() in told, told
    smbclient.rename(name, rf"{ROOT}\dir\g.txt", **options)
    assert [one.name for one in smbclient.scandir(rf"{ROOT}\dir", **options)] == ["g.txt"]
    stat = smbclient.stat(rf"{ROOT}\dir\g.txt", **options)
    assert stat.st_size == 500_000, stat
    smbclient.utime(rf"{ROOT}\dir\g.txt", (1_000_000_000, 1_000_000_000), **options)
    assert int(smbclient.stat(rf"{ROOT}\dir\g.txt", **options).st_mtime) == 1_000_000_000
    full = status_of(lambda: smbclient.rmdir(rf"{ROOT}\dir", **options))
    assert full == NtStatus.STATUS_DIRECTORY_NOT_EMPTY, hex(full)
    smbclient.remove(rf"{ROOT}\dir\g.txt", **options)
    smbclient.rmdir(rf"{ROOT}\dir", **options)
    smbclient.reset_connection_cache(connection_cache=cache)


def open_again(mode, name, options):
    smbclient.open_file(name, mode, share_access="rwd", **options).close()


for encrypt in (False, True):
    a_round(encrypt)
print("met")
