"""smbclient in every dialect, signed and encrypted: puts, gets, lists, renames, deletes."""
import subprocess

from common import account, folder, host, key, port

DIALECTS = ["SMB2_02", "SMB2_10", "SMB3_00", "SMB3_02", "SMB3_11"]
FILE = folder / "up.bin"
BACK = folder / "down.bin"


def smbclient(*options, password=key, status=0):
    words = ["smbclient", "-p", str(port), "-U", f"{account}%{password}", "--configfile=/dev/null"]
    done = subprocess.run([*words, *options], capture_output=True, text=True, cwd=folder)
    assert done.returncode == status, (options, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def round_trip(dialect, *options):
    BACK.unlink(missing_ok=True)
    commands = (
        "mkdir dir; put up.bin dir/f; ls dir/*; allinfo dir/f; rename dir/f dir/g; "
        "get dir/g down.bin; volume; du; del dir/g; rmdir dir"
    )
    out = smbclient(f"//{host}/share", "-m", dialect, *options, "-c", commands)
    # No file has a short name.
    out = out.replace("NT_STATUS_OBJECT_NAME_NOT_FOUND getting alt name", "")
    assert "NT_STATUS" not in out, (dialect, options, out)
    assert " f " in out and str(FILE.stat().st_size) in out, out
    assert BACK.read_bytes() == FILE.read_bytes(), dialect


FILE.write_bytes(bytes(range(256)) * 9000 + b"end")
for dialect in DIALECTS:
    round_trip(dialect, "--client-protection=sign")
for dialect in DIALECTS[2:]:
    round_trip(dialect, "--client-protection=encrypt")

listed = smbclient("-L", f"//{host}", "-m", "SMB3_11", "-g")
assert "Disk|share|" in listed and "IPC|IPC$|" in listed, listed
refused = smbclient(f"//{host}/share", "-c", "ls", password="wrong", status=1)
assert "NT_STATUS_LOGON_FAILURE" in refused, refused
missing = smbclient(f"//{host}/missing", "-c", "ls", status=1)
assert "NT_STATUS_BAD_NETWORK_NAME" in missing, missing
print("met")
