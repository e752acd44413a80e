"""Scratch folders of labs, for sockets. A lab removes its own, and those of labs that were killed."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from p4gen.labs.job import LOCK_FILE
from p4gen.switch.address import listens

PREFIX = "p4gen-lab-"


@contextlib.contextmanager
def scratch_folder() -> Iterator[tuple[Path, int]]:
    """A scratch folder and the descriptor of its lock. The folder is removed at exit.

    The lock is held as long as any process has the descriptor; pass it to the processes that use the folder.
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
    """Remove the folders that no running process holds. Returns them."""
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
    """Remove a folder, even if parts of it are already removed."""
    shutil.rmtree(folder, ignore_errors=True)


def add_address(file: Path, address: str) -> None:
    """Add a manager's address to the file of running labs' managers, one per line, the newest last."""
    file.parent.mkdir(parents=True, exist_ok=True)
    others = [line for line in _lines(file) if listens(line)]
    file.write_text("".join(f"{line}\n" for line in (*others, address)), encoding="utf-8")


def remove_if_ours(file: Path, scratch: Path) -> None:
    """Remove addresses in ``scratch`` from ``file``, and the file if it is then empty. Addresses of other labs stay."""
    lines = _lines(file)
    others = [line for line in lines if str(scratch) not in line]
    with contextlib.suppress(OSError):
        if lines and not others:
            file.unlink()
        elif others != lines:
            file.write_text("".join(f"{line}\n" for line in others), encoding="utf-8")


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8").split()
    except OSError:
        return []
