"""Scratch folders that do not outlive their process, however that ends."""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

_REMOVE = 'read -r _; n=0; while [ -e "$1" ] && [ $n -lt 600 ]; do rm -rf -- "$1" || sleep 0.1; n=$((n + 1)); done'
"""Standard input ends when the folder's owner does. Its child processes end then, too, but may still write a last file
while the folder is being removed."""


@contextlib.contextmanager
def scratch(prefix: str = "p4gen-", parent: Path | None = None) -> Iterator[Path]:
    """A folder with a path short enough for the addresses of sockets, gone at exit.

    A process that is killed removes nothing: a shell in a session of its own waits for our end, and removes it.
    Raises OSError where no folder can be made.
    """
    folder = Path(os.path.abspath(parent or tempfile.gettempdir())) / f"{prefix}{secrets.token_hex(5)}"
    nothing = subprocess.DEVNULL
    with subprocess.Popen(
        ["/bin/sh", "-c", _REMOVE, "sh", str(folder)],
        stdin=subprocess.PIPE, stdout=nothing, stderr=nothing, cwd="/", start_new_session=True,
    ):  # fmt: skip
        folder.mkdir(mode=0o700)
        yield folder
    # Leaving the block closed the shell's standard input and waited for it.
