"""impacket: shares, copies, and two opens that exclude each other."""
import io

from impacket.smb3structs import FILE_OPEN, FILE_READ_DATA, FILE_SHARE_READ, FILE_WRITE_DATA
from impacket.smb3structs import SMB2_DIALECT_002, SMB2_DIALECT_21
from impacket.smb3structs import SMB2_DIALECT_30, SMB2_DIALECT_311
from impacket.smbconnection import SessionError, SMBConnection

from common import account, host, key, port

BYTES = bytes(range(256)) * 400


def refusal(call):
    try:
        call()
    except SessionError as error:
        return error.getErrorString()[0]
    return "granted"


for dialect in (SMB2_DIALECT_002, SMB2_DIALECT_21, SMB2_DIALECT_30, SMB2_DIALECT_311):
    smb = SMBConnection(host, host, sess_port=port, preferredDialect=dialect)
    smb.login(account, key)
    shares = {share["shi1_netname"][:-1] for share in smb.listShares()}
    assert {"share", "IPC$"} <= shares, shares
    smb.createDirectory("share", "packets")
    smb.putFile("share", "packets\\f", io.BytesIO(BYTES).read)
    back = io.BytesIO()
    smb.getFile("share", "packets\\f", back.write)
    assert back.getvalue() == BYTES
    names = {one.get_longname(): one.get_filesize() for one in smb.listPath("share", "packets\\*")}
    assert names["f"] == len(BYTES), names
    tree = smb.connectTree("share")
    access = FILE_READ_DATA | FILE_WRITE_DATA
    # impacket writes with these two rights alone: no right to append.
    first = smb.openFile(tree, "packets\\f", access, FILE_SHARE_READ, creationDisposition=FILE_OPEN)
    smb.writeFile(tree, first, b"more", len(BYTES))
    second = refusal(lambda: smb.openFile(tree, "packets\\f", FILE_WRITE_DATA, 7))
    assert second == "STATUS_SHARING_VIOLATION", second
    smb.closeFile(tree, first)
    smb.rename("share", "packets\\f", "packets\\g")
    smb.deleteFile("share", "packets\\g")
    smb.deleteDirectory("share", "packets")
    smb.logoff()
wrong = SMBConnection(host, host, sess_port=port)
assert refusal(lambda: wrong.login(account, "wrong")) == "STATUS_LOGON_FAILURE"
print("met")
