"""Builds the wheel of `latchfs`: a PEP 517 backend.

With the variable LATCHFS_BINARY the wheel is made from the binary of that path and nothing is
compiled; otherwise maturin builds the binary from the repository around this directory. Both wheels
have the same content: the Python package, and the binary as a script of the environment.
"""

from __future__ import annotations

import base64
import hashlib
import importlib
import os
import platform
import re
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any, Optional

HERE = Path(__file__).resolve().parent.parent
PACKAGE = HERE / "src" / "latchfs"
CRATE = HERE.parent.parent / "Cargo.toml"
BINARY = "LATCHFS_BINARY"
MATURIN = "maturin>=1.9,<2"

Config = Optional["dict[str, Any]"]


def get_requires_for_build_wheel(config_settings: Config = None) -> list[str]:
    """Names what a build needs: maturin, or for a binary that exists a reader of TOML."""
    if BINARY not in os.environ:
        if shutil.which("cargo") is None:
            raise SystemExit(
                "cargo is not on the PATH: install Rust 1.95 or newer from https://rustup.rs, "
                f"or name a latchfs program that is built already in {BINARY}"
            )
        return [MATURIN]
    return [] if sys.version_info >= (3, 11) else ["tomli>=2"]


get_requires_for_build_editable = get_requires_for_build_wheel


def prepare_metadata_for_build_wheel(
    metadata_directory: str, config_settings: Config = None
) -> str:
    """Writes the metadata of the wheel, so that an installer need not build it twice."""
    if BINARY not in os.environ:
        hook = _maturin().prepare_metadata_for_build_wheel
        return str(hook(metadata_directory, config_settings))
    info = Path(metadata_directory) / f"{_base()}.dist-info"
    (info / "licenses").mkdir(parents=True)
    for name, content in _dist_info().items():
        (info / name).write_text(content, encoding="utf-8")
    return info.name


def build_wheel(
    wheel_directory: str, config_settings: Config = None, metadata_directory: str | None = None
) -> str:
    """Builds the wheel and returns its file name."""
    binary = os.environ.get(BINARY)
    if binary is None:
        return str(_maturin().build_wheel(wheel_directory, config_settings, metadata_directory))
    # An installer runs this backend in its own directory: a relative path is one of the repository.
    path = CRATE.parent / binary
    if not (path.is_file() and os.access(path, os.X_OK)):
        raise SystemExit(f"{BINARY}={binary}: no program at {path}; build one with `cargo build`")
    return _wheel(Path(wheel_directory), path)


def build_editable(
    wheel_directory: str, config_settings: Config = None, metadata_directory: str | None = None
) -> str:
    """Builds a wheel that leads to the sources of the package."""
    if BINARY in os.environ:
        raise SystemExit(f"an editable installation builds its binary: unset {BINARY}")
    return str(_maturin().build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: Config = None) -> str:
    """Refuses: the sources of the binary are the repository, of which this directory is a part."""
    raise SystemExit("there is no source distribution: build a wheel (python -m build --wheel)")


def _maturin() -> Any:
    # maturin reads the pyproject.toml of the working directory, which PEP 517 makes this one.
    import maturin  # type: ignore[import-untyped]

    return maturin


def _project() -> dict[str, Any]:
    # The standard library has a reader since 3.11.
    tomllib = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    with (HERE / "pyproject.toml").open("rb") as file:
        return dict(tomllib.load(file)["project"])


def version() -> str:
    """The version of the crate, in the spelling of Python packages."""
    found = re.search(r'^version = "([^"]+)"', CRATE.read_text(), re.MULTILINE)
    if found is None:
        raise SystemExit(f"{CRATE} has no version")
    return re.sub(r"-(alpha|beta|rc)\.?", r"\1", found.group(1))


def _metadata(project: dict[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {version()}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        *(f"Classifier: {one}" for one in project["classifiers"]),
        f"License-Expression: {project['license']}",
        *(f"License-File: {file.name}" for file in _licenses()),
        f"Requires-Python: {project['requires-python']}",
    ]
    for extra, requirements in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines.extend(f"Requires-Dist: {one} ; extra == '{extra}'" for one in requirements)
    lines.append("Description-Content-Type: text/markdown; charset=UTF-8")
    readme = (HERE / str(project["readme"])).read_text(encoding="utf-8")
    return "\n".join(lines) + "\n\n" + readme


def _entry_points(project: dict[str, Any]) -> str:
    lines: list[str] = []
    for group, entries in project["entry-points"].items():
        lines.append(f"[{group}]\n")
        lines.extend(f"{name} = {target}\n" for name, target in entries.items())
    return "".join(lines)


def _base() -> str:
    return f"{_project()['name']}-{version()}"


def _tag() -> str:
    return f"py3-none-linux_{platform.machine()}"


def _dist_info() -> dict[str, str]:
    """The files of the wheel that describe it."""
    project = _project()
    wheel = f"Wheel-Version: 1.0\nGenerator: latchfs\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    return {
        "METADATA": _metadata(project),
        "WHEEL": wheel,
        "entry_points.txt": _entry_points(project),
        **{f"licenses/{file.name}": file.read_text(encoding="utf-8") for file in _licenses()},
    }


def _licenses() -> list[Path]:
    return sorted(HERE.glob("LICENSE*"))


def _wheel(directory: Path, binary: Path) -> str:
    """Writes a wheel with this binary (the format is that of PEP 427)."""
    base = _base()
    name = f"{base}-{_tag()}.whl"
    info = f"{base}.dist-info"
    record: list[str] = []
    with zipfile.ZipFile(directory / name, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:

        def add(path: str, content: bytes, mode: int = 0o644) -> None:
            entry = zipfile.ZipInfo(path)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100000 | mode) << 16
            out.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")
            record.append(f"{path},sha256={digest.decode()},{len(content)}\n")

        for file in sorted(PACKAGE.rglob("*")):
            if file.suffix in (".py", ".typed"):
                add(f"latchfs/{file.relative_to(PACKAGE)}", file.read_bytes())
        add(f"{base}.data/scripts/latchfs", binary.read_bytes(), 0o755)
        for file_name, content in _dist_info().items():
            add(f"{info}/{file_name}", content.encode())
        record.append(f"{info}/RECORD,,\n")
        out.writestr(f"{info}/RECORD", "".join(record))
    return name
