"""Finds the `latchfs` program that was installed with this package."""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from ._errors import StartError

NAME = "latchfs"

VARIABLE = "LATCHFS_BINARY"
"""The variable that names another program."""


def binary() -> str:
    """Returns the path of the program: LATCHFS_BINARY, the one of this package, or one on the PATH."""
    named = os.environ.get(VARIABLE)
    if named:
        if not _is_program(Path(named)):
            raise StartError(f"{VARIABLE}={named}: no program there")
        return named
    for place in _places():
        if _is_program(place):
            return str(place)
    on_path = shutil.which(NAME)
    if on_path is None:
        raise StartError(
            f"the program {NAME} was not found: install the wheel of this package, or name the "
            f"program in {VARIABLE}"
        )
    return on_path


def _places() -> Iterator[Path]:
    """Where installers put the scripts of a wheel."""
    yield Path(sysconfig.get_path("scripts")) / NAME
    # An environment that was made by another Python, or whose scripts are a copy.
    yield Path(sys.prefix) / "bin" / NAME
    package = Path(__file__).resolve().parent
    # pip install --target DIR: DIR/latchfs beside DIR/bin.
    yield package.parent / "bin" / NAME
    # pip install --prefix DIR: DIR/lib/pythonX.Y/site-packages/latchfs beside DIR/bin.
    if len(package.parents) > 3:
        yield package.parents[3] / "bin" / NAME
    # pip install --user
    yield Path(sysconfig.get_path("scripts", f"{os.name}_user")) / NAME


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
