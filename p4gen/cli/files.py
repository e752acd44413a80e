"""Files that commands write where the command line says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from p4gen.errors import InputError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """``InputError`` that names ``path`` if the block cannot write it."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def write_text(path: Path, text: str) -> None:
    """Write a file, and make its folder if there is none. Raises ``InputError``."""
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
