"""Certificates as ``scripts/certs`` makes them, for tests."""

from __future__ import annotations

import atexit
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "certs"


@cache
def certificates(authority: str = "ours") -> Path:
    """A folder with the folders of a server's certificate, and of its clients', all of one authority. It is removed
    when this process ends."""
    if shutil.which("openssl") is None:
        pytest.skip("not on PATH: openssl, which makes certificates")
    folder = Path(mkdtemp(prefix=f"p4gen-certs-{authority}-"))
    atexit.register(shutil.rmtree, folder)
    subprocess.run([SCRIPT, folder, "manager=localhost,127.0.0.1", "alice", "bob", "carol", "ops"], check=True)
    return folder
