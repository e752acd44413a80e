"""Starting labs as users do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from p4gen.p4 import p4c

BMV2 = pytest.mark.skipif(
    shutil.which("simple_switch_grpc") is None or p4c.find() is None, reason="needs p4c and BMv2 on PATH"
)
SMALL = ("--lanes", "16", "--window", "8", "--message", "2")
"""A program that compiles and starts quickly."""


def command(out: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "p4gen", "lab", *arguments, "--out", str(out)]


def lab(
    out: Path, *arguments: str, script: str = "", timeout: float = 4 * PATIENCE_S
) -> subprocess.CompletedProcess[str]:
    """Run a lab to its end; ``script`` is what is typed."""
    return subprocess.run(
        command(out, *arguments), input=script, capture_output=True, text=True, timeout=timeout, check=False
    )


def start(out: Path, *arguments: str) -> subprocess.Popen[str]:
    """A lab in a session of its own; write to its standard input, close it to end the lab."""
    return subprocess.Popen(
        command(out, *arguments),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def wait_until_up(out: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the lab stands: then its manager's address is where ``p4gen top`` looks."""
    until(lambda: process.poll() is not None or (out / "lab" / "manager").exists())
    assert process.poll() is None, process.communicate()[0]


def inner_process(process: subprocess.Popen[str]) -> int:
    """Process 1 of the lab's namespaces, as this machine sees it."""
    (unshare,) = children(process.pid)
    (inner,) = children(unshare)
    return inner


def children(process: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
