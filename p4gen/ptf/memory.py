"""Runs scenarios in this process, on a switch in memory, without processes to start or wait for.

PTF's runner and data plane and P4Runtime are replaced; the scenarios are those of the suite, unchanged. Modules of the
suite keep what they know of the switch under test, so a process can test only one program: see ``p4gen.ptf.judge``.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import unittest
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from typing_extensions import override

from p4gen.model import ControlError, EngineName, Model, Trace
from p4gen.model.entries import Entry, Exact, Match
from p4gen.model.recirculation import SETTLE, Recirculation
from p4gen.p4 import ir
from p4gen.p4.mutate.mutants import Ignored
from p4gen.ptf.family import Suite
from p4gen.ptf.framework import ptf
from p4gen.ptf.report import TestResult
from p4gen.ptf.testcase import ReportedTest
from p4gen.vocabulary import ProgramSpec


class ProgramFaultError(AssertionError):
    """The model trapped undefined behaviour of the program."""


class TestedSwitch(Model):
    """A switch with the program under test. A trap fails the scenario that caused it.

    Keys of tables that are ``ignored`` are 0 for every packet and in every entry: the first entry matches.
    """

    __test__ = False  # not a pytest class, despite its name

    def __init__(
        self,
        program: ir.Program,
        ignored: Sequence[Ignored] = (),
        *,
        engine: EngineName = "interp",
        cache: Literal[""] | None = None,
    ) -> None:
        super().__init__(program, engine=engine, cache=cache)
        self._ignored = [(key.table, program.table(key.table).keys[key.key]) for key in ignored]

    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process a packet. Raises ``ProgramFaultError`` if the model traps."""
        outputs = super().process(port, packet, trace)
        if traps := self.traps():
            raise ProgramFaultError(f"the model trapped: {traps[0]}")
        return outputs

    def insert(self, *entries: Entry) -> None:
        """Insert entries. If an ignored key makes several entries equal, the first one stays."""
        for entry in entries:
            seen = self._seen(entry)
            if seen is entry:
                super().insert(entry)
            else:
                with suppress(ControlError):
                    super().insert(seen)

    @override
    def modify(self, *entries: Entry) -> None:
        super().modify(*map(self._seen, entries))

    @override
    def delete(self, *entries: Entry) -> None:
        super().delete(*map(self._seen, entries))

    def _seen(self, entry: Entry) -> Entry:
        for table, key in self._ignored:
            if table == entry.table or table.endswith("." + entry.table):
                others = {
                    n: value for n, value in entry.match.items() if n != key.name and not key.name.endswith("." + n)
                }
                always: dict[str, Match] = {key.name: Exact(0)} if key.match_kind == "exact" else {}
                entry = replace(entry, match={**others, **always})
        return entry


@dataclass(frozen=True)
class MemoryPort:
    """A port for scenarios. What is sent is handled before the data plane's ``send`` returns."""

    idle: int
    """A descriptor that is never readable."""
    dataplane: MemoryDataplane

    def fileno(self) -> int:
        """A descriptor for ``select``."""
        return self.idle

    def settle(self, request: bytes = SETTLE) -> int:
        """Carry out a request; everything sent has been handled. Returns the most passes that one frame has caused
        since the last call."""
        outputs, passes = self.dataplane.recirculation.answer(request)
        self.dataplane.sent(outputs)
        return passes


@dataclass
class MemoryDataplane:
    """The part of PTF's data plane that scenarios use, in front of a switch."""

    switch: TestedSwitch
    ports: dict[tuple[int, int], MemoryPort]
    packet_queues: dict[tuple[int, int], list[tuple[bytes, float]]]
    cvar: threading.Condition = field(default_factory=threading.Condition)
    _outputs: int = 0

    def __post_init__(self) -> None:
        self.recirculation = Recirculation(self.switch)

    @classmethod
    def of(cls, switch: TestedSwitch, ports: Iterable[int]) -> MemoryDataplane:
        """A data plane with these ports."""
        idle, _ = os.pipe()
        places = [(0, number) for number in sorted(ports)]
        made = cls(switch, {}, {place: [] for place in places})
        made.ports |= {place: MemoryPort(idle, made) for place in places}
        return made

    def send(self, _device: int, port: int, frame: bytes) -> None:
        """Process a frame, and queue the output."""
        self.sent(self.recirculation.hold_back(self.switch.process(port, bytes(frame))))

    def sent(self, outputs: Iterable[tuple[int, bytes]]) -> None:
        """Queue what the switch sends."""
        for number, output in outputs:
            self._outputs += 1  # a running number instead of a time
            if (queue := self.packet_queues.get((0, number))) is not None:
                queue.append((output, float(self._outputs)))


Scenarios = Mapping[str, type[ReportedTest]]


def load_suite(suite: Suite, modules: Iterable[str]) -> dict[str, type[ReportedTest]]:
    """The scenarios in modules of a suite, by PTF's names (module.Class), in order."""
    sys.path[:0] = [str(folder) for folder in suite if str(folder) not in sys.path]
    found: dict[str, type[ReportedTest]] = {}
    for name in modules:
        for attribute, value in sorted(vars(importlib.import_module(name)).items()):
            is_test = isinstance(value, type) and issubclass(value, ReportedTest) and hasattr(value, "runTest")
            if is_test and value.__module__ == name:
                found[f"{name}.{attribute}"] = value
    return found


def run_in_memory(
    scenarios: Iterable[type[ReportedTest]],
    switch: TestedSwitch,
    spec: ProgramSpec,
    seed: int,
    report: Callable[[TestResult], bool],
) -> bool:
    """Run scenarios in this order on a switch that runs the program of ``spec``.

    ``report`` takes each result and returns whether to go on. Returns False if it did not.
    """
    ptf.open_logfile = lambda _name: None
    ptf.dataplane_instance = MemoryDataplane.of(
        switch, {*spec.architecture.front_ports(spec.ports), spec.architecture.cpu_port}
    )
    results: list[TestResult] = []
    params: dict[str, Any] = {"spec": spec.model_dump(mode="json"), "seed": seed}
    ptf.testutils.TEST_PARAMS = {**params, "control": switch, "results": results.append}
    for scenario in scenarios:
        scenario("runTest").run(unittest.TestResult())
        if not report(results.pop()):
            return False
    return True
