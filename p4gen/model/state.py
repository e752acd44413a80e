"""Everything of a switch that outlives a packet, shared by all back ends.

Tables, extern instances and the packet replication engine are found by their full control-plane name.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.model.entries import CloneSession, MulticastGroup
from p4gen.model.externs import Counter, Meter, Register, Trap
from p4gen.model.profiles import Profile
from p4gen.model.tables import MATCH_KINDS, TableState
from p4gen.p4 import ir

Clock = Callable[[], int]
"""Microseconds since the switch started."""


def wall_clock() -> Clock:
    """A clock that starts at 0 now, as BMv2's does."""
    start = time.monotonic_ns()
    return lambda: (time.monotonic_ns() - start) // 1000


@dataclass(frozen=True)
class Digest:
    """A message that the program sent to the control plane; ``name`` is the data's type."""

    name: str
    fields: tuple[tuple[str, int | bool | str], ...]


PROFILES = ("action_profile", "action_selector")
SUPPORTED_EXTERNS = ("register", "counter", "direct_counter", "meter", "direct_meter", "Checksum16", *PROFILES)


class State:
    """The state of one switch after loading ``program``.

    Raises ``InputError`` with its position for every extern instance, match kind or table
    implementation that the model does not support.
    """

    def __init__(self, program: ir.Program, clock: Clock | None = None, seed: int = 0, *, poison: bool = False) -> None:
        _check_supported(program)
        self.program = program
        self.clock: Clock = clock or wall_clock()
        self.poison = poison
        """Whether what a program has not initialised is garbage rather than zero."""
        self._seed = seed
        self.random = random.Random(seed)  # noqa: S311 - a model of a switch, to be repeatable
        self.tables = {t.name: TableState(t) for t in program.tables}
        self.registers = {e.name: Register(e) for e in program.externs if e.extern == "register"}
        self.counters = {e.name: Counter(e) for e in program.externs if e.extern == "counter"}
        self.meters = {e.name: Meter(e) for e in program.externs if e.extern == "meter"}
        self.ports_down: set[int] = set()
        """Ports known to have no link; members of action selectors may watch them."""
        self.profiles = {e.name: Profile.of(e, self.ports_down) for e in program.externs if e.extern in PROFILES}
        self.groups: dict[int, MulticastGroup] = {}
        self.sessions: dict[int, CloneSession] = {}
        self.value_sets: dict[str, list[tuple[tuple[int, int], ...]]] = {v.name: [] for v in program.value_sets}
        """Members of each value set: one (value, mask) per field of its type."""
        self.digests: list[Digest] = []
        self.log: list[str] = []
        """What ``log_msg`` wrote since it was last read."""
        self._traps: dict[tuple[Pos, str], int] = {}

    def trap(self, pos: Pos, what: str) -> None:
        """Count something undefined that happened at ``pos``."""
        self._traps[(pos, what)] = self._traps.get((pos, what), 0) + 1

    def traps(self) -> list[Trap]:
        """What was trapped since loading, in order of first occurrence."""
        return [Trap(pos, what, count) for (pos, what), count in self._traps.items()]

    def reset(self) -> None:
        """Back to the state after loading."""
        for table in self.tables.values():
            table.reset()
        for register in self.registers.values():
            register.reset()
        for counter in self.counters.values():
            counter.reset()
        for meter in self.meters.values():
            meter.reset()
        for members in self.value_sets.values():
            members.clear()
        for profile in self.profiles.values():
            profile.reset()
        self.groups.clear()
        self.sessions.clear()
        self.digests.clear()
        self.log.clear()
        self._traps.clear()
        self.random.seed(self._seed)


def _check_supported(program: ir.Program) -> None:
    problems = [
        Diagnostic(e.pos, f"extern {e.extern} ({e.name}) is not supported by the behavioural model")
        for e in program.externs
        if e.extern not in SUPPORTED_EXTERNS
    ]
    for table in program.tables:
        if table.implementation is not None and table.implementation not in program.externs:
            what = table.implementation.extern
            problems.append(Diagnostic(table.pos, f"table {table.name}: implementation {what} is not supported"))
        problems.extend(
            Diagnostic(key.pos, f"table {table.name}: match kind {key.match_kind} is not supported")
            for key in table.keys
            if key.match_kind not in (*MATCH_KINDS, "selector")
        )
    if problems:
        raise InputError(*problems)
