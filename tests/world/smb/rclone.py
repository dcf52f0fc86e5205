"""rclone with 16 transfers at a time: a tree of 300 files there and back, without a difference."""
import os
import random
import subprocess
import sys

from common import account, folder, host, key, port

RCLONE = sys.argv[2]
up, down = folder / "up", folder / "down"


def rclone(*words):
    done = subprocess.run([RCLONE, *words], capture_output=True, text=True, env=ENV)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


hidden = subprocess.run([RCLONE, "obscure", key], capture_output=True, text=True, check=True)
ENV = {
    **os.environ,
    "RCLONE_CONFIG": str(folder / "rclone.conf"),
    "RCLONE_CONFIG_SMB_TYPE": "smb",
    "RCLONE_CONFIG_SMB_HOST": host,
    "RCLONE_CONFIG_SMB_PORT": str(port),
    "RCLONE_CONFIG_SMB_USER": account,
    "RCLONE_CONFIG_SMB_PASS": hidden.stdout.strip(),
    "RCLONE_RETRIES": "1",
    "RCLONE_LOW_LEVEL_RETRIES": "1",
    "RCLONE_TRANSFERS": "16",
    "RCLONE_CHECKERS": "16",
}
rng = random.Random(7)
for number in range(300):
    file = up / f"d{number % 7}" / f"f{number}.bin"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(rng.randbytes(rng.choice([0, 1, 4096, 70_000, 300_000])))
rclone("copy", str(up), "smb:share/tree")
rclone("check", "--download", str(up), "smb:share/tree")
rclone("copy", "smb:share/tree", str(down))
rclone("check", "--download", str(up), str(down))
rclone("move", "smb:share/tree", "smb:share/moved")
assert len(rclone("lsf", "-R", "--files-only", "smb:share/moved").split()) == 300
rclone("purge", "smb:share/moved")
assert rclone("lsf", "smb:share") == ""
print("met")
