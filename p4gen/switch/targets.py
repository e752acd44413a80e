"""The targets by name: how to check that one is available, and how to start it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from p4gen.arch import Architecture
from p4gen.choices import BMV2, EMBEDDED, TOFINO_MODEL, EngineName
from p4gen.errors import Diagnostic, InputError, MissingToolError, Option
from p4gen.p4 import p4c
from p4gen.p4.toolchain import Toolchain
from p4gen.switch import bmv2
from p4gen.switch.process import running_switch
from p4gen.switch.running import Program, RunningSwitch
from p4gen.switch.tofino import tools as tofino
from p4gen.switch.tofino.process import running_tofino
from p4gen.version import __version__
from p4gen.vocabulary import ProgramSpec

__all__ = ["BMV2", "EMBEDDED", "TOFINO_MODEL", "Start", "check", "check_runs", "starter", "versions"]

Start = Callable[[Program, Path, range], AbstractContextManager[RunningSwitch]]
"""A function from (program, folder, ports) to a context manager that runs a switch."""


def check(target: str, arch: Architecture | None = None) -> None:
    """Raises ``MissingToolError`` when a target's tools are not installed, the compiler for ``arch`` included."""
    if target == BMV2:
        bmv2.check_tools()
    if target == TOFINO_MODEL:
        tofino.check()
        tools = arch.facet(Toolchain) if arch is not None else None
        if tools is not None and tools.version is not None and tools.version() is None:
            raise MissingToolError(f"target {target}: {tools.absent}")


def check_queue_lengths(target: str, spec: ProgramSpec) -> None:
    """Raise ``InputError`` when a program needs the lengths of queues, and a target does not provide them."""
    if spec.wants_queue_lengths and target != EMBEDDED:
        raise InputError(
            Diagnostic(Option("target"), f"{target} keeps no lengths of queues in registers of {spec.program}")
        )


def check_runs(target: str, arch: Architecture) -> None:
    """Raise ``InputError`` when a target does not run an architecture's programs."""
    if target not in arch.targets:
        known = f"they run on {' and '.join(arch.targets)}" if arch.targets else "p4gen has no target for them"
        raise InputError(Diagnostic(Option("target"), f"{target} does not run programs for {arch.name}; {known}"))


def starter(target: str, *, trace: bool = False, pcap: bool = False, engine: EngineName = "interp") -> Start:
    """A function that starts a target, the embedded one with ``engine``. With ``trace`` and ``pcap``, the packets'
    traces and the packets are saved."""
    if target == BMV2:
        return functools.partial(bmv2.running_bmv2, pcap=pcap, verbose=trace)
    if target == TOFINO_MODEL:
        return running_tofino
    return functools.partial(running_switch, trace=trace, pcap=pcap, engine=engine)


def versions(target: str, arch: Architecture | None = None) -> dict[str, str]:
    """The versions of everything that a run on a target depends on, the compiler for ``arch`` included."""
    found = {"p4gen": __version__}
    if target == BMV2:
        found[bmv2.SWITCH] = bmv2.version()
        compiler = p4c.find()
        found[p4c.COMPILER] = p4c.version(compiler) if compiler else "missing"
    if target == TOFINO_MODEL:
        found |= tofino.versions()
        tools = arch.facet(Toolchain) if arch is not None else None
        if tools is not None and tools.version is not None:
            found["p4c"] = tools.version() or "missing"
    return found
