"""Scratch folders of labs: sockets, for as long as the lab lives. Those of killed labs are removed by the next one."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from p4gen.lab.job import LOCK_FILE

PREFIX = "p4gen-lab-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[tuple[Path, int]]:
    """A scratch folder and the descriptor of its lock, gone at exit.

    The lock is held as long as any process has the descriptor: hand it to those who use the folder.
    """
    remove_stale()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = os.open(folder / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder, lock
    finally:
        os.close(lock)
        remove(folder)


def remove_stale(parent: Path | None = None) -> list[Path]:
    """Remove the folders that no living process holds; which they were."""
    removed = []
    for folder in sorted((parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*")):
        with contextlib.suppress(OSError):
            lock = os.open(folder / LOCK_FILE, os.O_RDWR)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
                removed.append(folder)
            finally:
                os.close(lock)
    return removed


def remove(folder: Path) -> None:
    """Remove a folder, whatever has been removed of it already."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_if_ours(file: Path, scratch: Path) -> None:
    """Remove ``file`` when it names something in ``scratch``; another lab's stays."""
    with contextlib.suppress(OSError):
        if str(scratch) in file.read_text(encoding="utf-8"):
            file.unlink()
