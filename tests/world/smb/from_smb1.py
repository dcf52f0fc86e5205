"""pysmb, whose first message is an SMB1 NEGOTIATE."""
import io

from smb.SMBConnection import SMBConnection

from common import account, host, key, port

BYTES = bytes(range(256)) * 3000

smb = SMBConnection(account, key, "tests", "latchfs", use_ntlm_v2=True, is_direct_tcp=True)
assert smb.connect(host, port)
assert smb.isUsingSMB2
assert "share" in {share.name for share in smb.listShares()}
smb.createDirectory("share", "from_smb1")
assert smb.storeFile("share", "from_smb1/f", io.BytesIO(BYTES)) == len(BYTES)
back = io.BytesIO()
smb.retrieveFile("share", "from_smb1/f", back)
assert back.getvalue() == BYTES
smb.rename("share", "from_smb1/f", "from_smb1/g")
names = [one.filename for one in smb.listPath("share", "from_smb1")]
assert sorted(names) == [".", "..", "g"], names
assert smb.getAttributes("share", "from_smb1/g").file_size == len(BYTES)
smb.deleteFiles("share", "from_smb1/g")
smb.deleteDirectory("share", "from_smb1")
smb.close()
wrong = SMBConnection(account, "wrong", "tests", "latchfs", use_ntlm_v2=True, is_direct_tcp=True)
assert not wrong.connect(host, port)
print("met")
