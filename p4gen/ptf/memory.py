"""Scenarios in this process, on a switch in its memory: nothing to start, nothing to wait for.

PTF's runner, its data plane and P4Runtime are left out; the scenarios are those of the suite, unchanged. Modules of the
suite keep what they know of the switch under test, so a process can test one program: see ``p4gen.ptf.judge``.
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

import ptf

from p4gen.model import ControlError, EngineName, Model, Trace
from p4gen.model.entries import Entry, Exact, Match
from p4gen.p4 import ir
from p4gen.p4.mutate.mutants import Ignored
from p4gen.ptf.family import Suite
from p4gen.ptf.report import TestResult
from p4gen.ptf.testcase import ReportedTest
from p4gen.spec import ProgramSpec, ticks


class ProgramFaultError(AssertionError):
    """The program did what no program may do: the model trapped it."""


class TestedSwitch(Model):
    """A switch with the program under test. What it traps fails the scenario that brought it about.

    Keys of tables that are ``ignored`` are 0 for every packet, and so in every entry: the first one matches.
    """

    __test__ = False  # the name is no invitation to pytest

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
        """As of any switch; raises ``ProgramFaultError`` for what the model traps."""
        outputs = super().process(port, packet, trace)
        if traps := self.traps():
            raise ProgramFaultError(f"the model trapped: {traps[0]}")
        return outputs

    def insert(self, *entries: Entry) -> None:
        """As of any switch; of entries that an ignored key makes one, the first one stays."""
        for entry in entries:
            seen = self._seen(entry)
            if seen is entry:
                super().insert(entry)
            else:
                with suppress(ControlError):
                    super().insert(seen)

    def modify(self, *entries: Entry) -> None:
        """As of any switch."""
        super().modify(*map(self._seen, entries))

    def delete(self, *entries: Entry) -> None:
        """As of any switch."""
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
    """A port as scenarios see it: what was sent has been handled when the data plane's ``send`` returns."""

    idle: int
    """A descriptor that is never readable."""

    def fileno(self) -> int:
        """For ``select``."""
        return self.idle

    def settle(self) -> None:
        """Nothing is under way."""


@dataclass
class MemoryDataplane:
    """What scenarios use of PTF's data plane, in front of a switch."""

    switch: TestedSwitch
    ports: dict[tuple[int, int], MemoryPort]
    packet_queues: dict[tuple[int, int], list[tuple[bytes, float]]]
    cvar: threading.Condition = field(default_factory=threading.Condition)
    _outputs: int = 0

    @classmethod
    def of(cls, switch: TestedSwitch, ports: Iterable[int]) -> MemoryDataplane:
        """With these ports and the agent's."""
        idle, _ = os.pipe()
        places = [(0, number) for number in sorted({*ports, ticks.PORT})]
        return cls(switch, {place: MemoryPort(idle) for place in places}, {place: [] for place in places})

    def send(self, device: int, port: int, frame: bytes) -> None:
        """Have the switch handle a frame, and keep what comes of it."""
        for number, output in self.switch.process(port, bytes(frame)):
            self._outputs += 1  # in place of a time
            if (queue := self.packet_queues.get((device, number))) is not None:
                queue.append((output, float(self._outputs)))


Scenarios = Mapping[str, type[ReportedTest]]


def load_suite(suite: Suite, modules: Iterable[str]) -> dict[str, type[ReportedTest]]:
    """The scenarios of modules of a suite by PTF's names (module.Class), in order."""
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
    """Run scenarios, in this order, on a switch that runs the program of ``spec``.

    ``report`` takes each one's result and says whether to go on; false if it did not.
    """
    ptf.open_logfile = lambda _name: None
    ptf.dataplane_instance = MemoryDataplane.of(switch, range(spec.ports))
    results: list[TestResult] = []
    params: dict[str, Any] = {"spec": spec.model_dump(mode="json"), "seed": seed}
    ptf.testutils.TEST_PARAMS = {**params, "control": switch, "results": results.append}
    for scenario in scenarios:
        scenario("runTest").run(unittest.TestResult())
        if not report(results.pop()):
            return False
    return True
