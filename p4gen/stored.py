"""Folders of what took time to make and can be made again: the caches of p4gen.

A cache that cannot be read or written is as good as an empty one. Deleting a folder is always safe.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

_MAGIC = b"p4gen stored 1\n"
_DIGEST = 32


def cache_folder(name: str) -> Path:
    """The folder of one of p4gen's caches (XDG Base Directory Specification)."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "p4gen" / name


def key(parts: Iterable[str]) -> str:
    """The name of a stored file: the digest of all that its content depends on."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def read(path: Path) -> bytes | None:
    """The content of a stored file; None if the file is not complete, or if others than this user can write it."""
    try:
        status = path.stat()
        stored = path.read_bytes()
    except OSError:
        return None
    begin = len(_MAGIC) + _DIGEST
    content = stored[begin:]
    whole = stored[:begin] == _MAGIC + hashlib.sha256(content).digest()
    ours = status.st_uid == os.getuid() and not status.st_mode & 0o022
    return content if whole and ours else None


def write(path: Path, content: bytes) -> None:
    """Store a file, at once or not at all. A cache that cannot be written is ignored."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        put(path, _MAGIC + hashlib.sha256(content).digest() + content)


def put(path: Path, content: bytes) -> None:
    """Write a file in a folder that exists, at once or not at all. Raises ``OSError``."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
