"""What a lab could leave on a machine: interfaces, processes (and so namespaces), mounts, temporary files."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from patience import until

MARK = "P4GEN_TEST_MARK"
"""An environment variable that all processes of a test's labs have."""


@dataclass(frozen=True)
class Traces:
    """Looks for those of labs that were started with ``mark`` in their environment, and ``folder`` as TMPDIR."""

    mark: str
    folder: Path
    before: frozenset[str] = field(default_factory=lambda: frozenset(_interfaces()))
    """Interfaces of others that are named as those of labs."""

    def found(self) -> list[str]:
        """All there are now."""
        return [*self._processes(), *self._interfaces(), *map(str, self.folder.iterdir()), *self._mounts()]

    def check(self) -> None:
        """Fail, and say what there is, unless there are none: the kernel takes a moment to remove them."""
        until(lambda: not self.found(), lambda: "left: " + "; ".join(self.found()), poll=0.05)

    def _interfaces(self) -> list[str]:
        return [line for line in _interfaces() if line not in self.before]

    def _processes(self) -> list[str]:
        wanted = f"{MARK}={self.mark}".encode()
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if wanted in (entry / "environ").read_bytes().split(b"\0"):
                        line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                        found.append(f"process {entry.name}: {line}")
                except OSError:
                    continue
        return found

    def _mounts(self) -> list[str]:
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return [line for line in lines if str(self.folder) in line]


def _interfaces() -> list[str]:
    """Those named as labs name them; other tests make others."""
    said = subprocess.run(["ip", "-o", "link"], capture_output=True, text=True, check=True).stdout
    return [line for line in said.splitlines() if re.match(r"\d+: \w+-eth\d+[@:]", line)]
