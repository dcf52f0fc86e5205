"""What the rounds of command-line clients share: the server, a tree of files, running a program.

Usage of each: SCRIPT.py READY_FILE PROGRAM. Fails with an assertion where an answer is not as
expected; what clients keep goes into a folder that ends with the script.
"""
import atexit
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ready = json.load(open(sys.argv[1], encoding="utf-8"))
program = sys.argv[2]
# None where the round needs no mount.
mount = pathlib.Path(ready["mounts"]["share"]) if ready["mounts"] else None
folder = pathlib.Path(tempfile.mkdtemp(prefix="latchfs-client-"))
atexit.register(shutil.rmtree, folder, ignore_errors=True)

# Longer than a range may be, and no two ranges alike.
LONG = bytes(range(251)) * (9 * 1024 * 1024 // 251)
WHEN = 1_234_567_890


def make_tree(root):
    """A tree with what clients stumble over; empty directories apart, since some skip those."""
    files = {
        "empty": b"",
        "long.bin": LONG,
        "with blank & plus+.txt": b"blank",
        "percent%41#.txt": b"percent",
        "ünïcode/Grüße 文件.txt": "Grüße".encode(),
        "a/b/c/deep.txt": b"deep",
        "a/b/shallow.txt": b"shallow",
    }
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (WHEN, WHEN))


def tree_of(root):
    """Every file below a folder with its bytes."""
    paths = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def same(left, right):
    """Fails where two folders differ, and says by which names."""
    one, other = tree_of(left), tree_of(right)
    names = {name for name in one.keys() | other.keys() if one.get(name) != other.get(name)}
    assert not names, f"{left} and {right} differ in {sorted(names)}"


def run(*words, env, status=0):
    """Runs the program and gives what it printed; it must end with `status`."""
    command = [program, *map(str, words)]
    env = os.environ | env
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    told = f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert done.returncode == status, told
    return done.stdout
