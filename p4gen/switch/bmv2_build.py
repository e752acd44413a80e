"""How a simple_switch_grpc was built, read from its files; builds differ in speed by a factor of four."""

from __future__ import annotations

import mmap
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from p4gen.switch import bmv2
from p4gen.switch.address import START_S

UNKNOWN = "unknown"
_LOGGED = b"Bytes parsed: {}"
"""A text that BMv2's parser logs (``BMLOG_TRACE``, bm_sim/parser.cpp): it is in the file only if logging macros are
enabled."""
_ALWAYS = b"Invalid reference to object of type"
"""An error message in the same library (bm_sim/P4Objects.cpp), which is there with or without logging macros."""
_PRODUCER = re.compile(rb"GNU C\+\+\d* [ -~]*|clang version [ -~]*")
_OPTIMISATION = re.compile(rb" (-O(?:[0-3sgz]|fast)?)(?= |$)")


@dataclass(frozen=True)
class Build:
    """What is known about a build: its ``version``; whether ``logging_macros`` are on or off; ``optimisation``, such as
    -O3, which only debugging information contains. Unknown values are ``unknown``."""

    version: str
    logging_macros: str
    optimisation: str

    def __str__(self) -> str:
        return f"BMv2 {self.version}, logging macros {self.logging_macros}, optimisation {self.optimisation}"


def build() -> Build | None:
    """The build of the simple_switch_grpc on PATH; None without one."""
    path = shutil.which(bmv2.SWITCH)
    if path is None:
        return None
    logging, flags = None, set[str]()
    for file in _files(Path(path)):
        found, always, flags_here = _look(file)
        if found or always:
            logging = logging or found
        flags |= flags_here
    macros = UNKNOWN if logging is None else "on" if logging else "off"
    return Build(bmv2.version(), macros, " and ".join(sorted(flags)) or UNKNOWN)


def _files(program: Path) -> Iterator[Path]:
    """The program, and BMv2's own libraries that it loads."""
    yield program
    try:
        done = subprocess.run(["ldd", str(program)], capture_output=True, text=True, timeout=START_S, check=False)
    except OSError:
        return
    for line in done.stdout.splitlines():
        name, _, place = line.strip().partition(" => ")
        if name.startswith(("libbm", "libsimpleswitch", "libsimple_switch")) and place.startswith("/"):
            yield Path(place.partition(" (")[0])


def _look(file: Path) -> tuple[bool, bool, set[str]]:
    """Whether a file has ``_LOGGED`` and ``_ALWAYS``, and the optimisations that its debugging information names."""
    if not file.stat().st_size:
        return False, False, set()
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as data:
        flags = {
            levels[-1].decode()
            for producer in _PRODUCER.finditer(data)
            if (levels := _OPTIMISATION.findall(producer.group()))
        }
        return data.find(_LOGGED) >= 0, data.find(_ALWAYS) >= 0, flags
