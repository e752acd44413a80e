"""What a lab could leave on a machine: interfaces, processes, namespaces, mounts, temporary files."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

PATIENCE_S = 10.0
"""The kernel takes a moment to end processes and to remove interfaces."""
_OURS = ("p4gen.lab", "p4gen switch", "p4gen manager", "mininet:", "simple_switch", "p4gen-lab-")


def interfaces() -> set[str]:
    lines = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout.splitlines()
    return {line.split(":")[1].strip().partition("@")[0] for line in lines}


def processes() -> set[tuple[int, str]]:
    """Those with a lab in their command line."""
    found = set()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if any(text in line for text in _OURS) and "pytest" not in line:
            found.add((int(entry.name), line))
    return found


def namespaces() -> set[str]:
    """Of networks and processes, that any process is in."""
    found = set()
    for kind in ("net", "pid"):
        for entry in Path("/proc").glob(f"[0-9]*/ns/{kind}"):
            try:
                found.add(os.readlink(entry))
            except OSError:
                continue
    return found


def temporary_files() -> set[str]:
    return {path.name for path in Path(tempfile.gettempdir()).glob("p4gen-*")}


def mounts() -> set[str]:
    return {line for line in Path("/proc/self/mounts").read_text().splitlines() if "p4gen" in line or "/netns/" in line}


_KINDS: tuple[Callable[[], set[object]], ...] = (interfaces, processes, namespaces, temporary_files, mounts)  # type: ignore[assignment]


@dataclass(frozen=True)
class Traces:
    """All of it, at one time."""

    found: tuple[set[object], ...]

    @classmethod
    def now(cls) -> Traces:
        return cls(tuple(kind() for kind in _KINDS))

    def more(self) -> dict[str, set[object]]:
        """What is there now and was not there then."""
        pairs = zip(_KINDS, self.found, strict=True)
        return {kind.__name__: new for kind, before in pairs if (new := kind() - before)}

    def check(self) -> None:
        """Fail unless everything is as it was."""
        deadline = time.monotonic() + PATIENCE_S
        while (more := self.more()) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not more
