"""p4gen itself, and what it needs of this environment, as an image that guests mount: they run exactly this p4gen.

It is made anew, in some seconds, when a source file or a package's version has changed.
"""

from __future__ import annotations

import compileall
import contextlib
import hashlib
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Final

import p4gen
from p4gen.errors import MissingToolError
from p4gen.labs.softroce import images
from p4gen.resources import resource
from p4gen.scratch import scratch

PYTHON: Final = (3, 11)
"""The version that guests have; compiled packages fit no other one."""
DISTRIBUTIONS: Final = (
    "numpy", "pydantic", "pydantic-core", "annotated-types", "typing-extensions", "typing-inspection", "PyYAML",
    "protobuf", "grpcio", "Jinja2", "MarkupSafe", "pcpp",
)  # fmt: skip
"""What p4gen imports in a guest."""
_IMAGE: Final = "p4gen.sqfs"
_KEPT: Final = 4
"""Images of p4gen that are kept, the newest ones."""


def layer() -> Path:
    """The image; made if there is none. Raises ``MissingToolError`` if guests cannot run this environment's packages,
    and ``FailedError`` if it cannot be made."""
    if sys.version_info[:2] != PYTHON:
        ours, theirs = (".".join(map(str, version)) for version in (sys.version_info[:2], PYTHON))
        raise MissingToolError(
            f"Soft-RoCE hosts have Debian's Python {theirs}, for which this environment's packages are not made: run "
            f"p4gen with Python {theirs}, not {ours}"
        )
    files = _sources()
    place = images.folder() / f"p4gen-{digest(files)}"
    if not place.exists():
        with scratch(".", images.folder()) as part:
            (part / "made").mkdir()
            _make(files, part / "tree", part / "made" / _IMAGE)
            for old in sorted(images.folder().glob("p4gen-*"), key=lambda each: -each.stat().st_mtime)[_KEPT - 1 :]:
                shutil.rmtree(old, ignore_errors=True)
            with contextlib.suppress(OSError):  # another lab was faster
                (part / "made").rename(place)
    return place / _IMAGE


def _sources() -> dict[str, Path]:
    """p4gen's own files, by their places in the image, which are those in a wheel."""
    found: dict[str, Path] = {}
    for name, folder in (("", Path(p4gen.__file__).parent), ("templates", resource("templates"))):
        files = (file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
        found |= {str(Path("p4gen", name, file.relative_to(folder))): file for file in sorted(files)}
    return found


def digest(files: dict[str, Path]) -> str:
    """The name of an image with these files, by their places in it, and with the packages of this environment."""
    digest = hashlib.sha256(" ".join(f"{name}={metadata.version(name)}" for name in DISTRIBUTIONS).encode())
    for name, file in files.items():
        digest.update(name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


def _make(files: dict[str, Path], tree: Path, image: Path) -> None:
    for name in DISTRIBUTIONS:
        for file in metadata.files(name) or ():
            parts = Path(file).parts
            if ".." not in parts and "tests" not in parts and file.suffix not in (".pyi", ".pyx", ".a", ".h"):
                _copy(Path(str(file.locate())), tree / Path(*parts))
    for place, source in files.items():
        _copy(source, tree / place)
    # Without its .pyc files p4gen takes a guest minutes to load. Those of this Python are those of the guest's.
    compileall.compile_dir(tree, quiet=2, workers=0)
    images.run(["mksquashfs", str(tree), str(image), "-comp", "lz4", "-noI", "-noF", "-no-progress", "-quiet"])


def _copy(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, place)
