"""The state of a switch that outlives a packet, shared by all back ends.

Tables, extern instances and the packet replication engine are found by their full control-plane name.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.model.entries import CloneSession, MulticastGroup
from p4gen.model.externs import Bucket, Counter, Meter, Register, Trap
from p4gen.model.frozen import Actions, Configuration, SwitchState, freeze_bucket
from p4gen.model.poison import initial
from p4gen.model.profiles import Profile
from p4gen.model.tables import MATCH_KINDS, TableState, kind_of
from p4gen.p4 import ir
from p4gen.p4 import types as t

Clock = Callable[[], int]
"""Microseconds since the switch started."""


class WallClock:
    """A clock that starts at 0 now, as BMv2's does."""

    def __init__(self) -> None:
        self.start = time.monotonic_ns()

    def __call__(self) -> int:
        """Microseconds since the start."""
        return (time.monotonic_ns() - self.start) // 1000


@dataclass(frozen=True)
class Digest:
    """A message that the program sent to the control plane; ``name`` is the data's type."""

    name: str
    fields: tuple[tuple[str, int | bool | str], ...]


PROFILES = ("action_profile", "action_selector")


class ModelState:
    """The state of one switch after loading ``program``.

    Raises ``InputError`` with its position for every extern instance, match kind or table
    implementation that the model does not support.
    """

    engine: ClassVar = "interp"
    SUPPORTED: ClassVar[tuple[str, ...]] = (
        "register", "counter", "direct_counter", "meter", "direct_meter", "Checksum16", *PROFILES,
    )  # fmt: skip
    """The externs that may have instances."""
    PADS_HEADERS: ClassVar[bool] = False
    """Whether a header whose fields are no whole bytes takes whole bytes of a packet."""
    DIRECT: ClassVar[Mapping[str, Literal["counter", "meter"]]] = {
        "direct_counter": "counter", "direct_meter": "meter",
    }  # fmt: skip
    """Externs whose instances have a counter or a meter for each entry of a table."""

    def __init__(self, program: ir.Program, clock: Clock | None = None, seed: int = 0, *, poison: bool = False) -> None:
        _check_supported(program, self.SUPPORTED)
        self.program = program
        self.clock: Clock = clock or WallClock()
        self.poison = poison
        """Whether uninitialised values are garbage instead of zero."""
        self._seed = seed
        self.random = random.Random(seed)  # noqa: S311 - a model of a switch, to be repeatable
        self.tables = {table.name: TableState(table) for table in program.tables}
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
        """Messages of ``log_msg`` since they were last read."""
        self._traps: dict[tuple[Pos, str], int] = {}
        self.most_passes = 0
        """The most passes through ingress that one received packet has caused since ``Model.most_passes`` was read."""

    def unassigned(self, of: t.Type) -> Any:
        """The value of an ``out`` parameter of type ``of`` until it is assigned."""
        return initial(of, poison=self.poison)

    def decides(self, of: t.Type) -> bool:
        """Whether the fields of a type count for nothing until the program assigns them, whatever the value."""
        return False

    def trap(self, pos: Pos, what: str) -> None:
        """Count undefined behaviour at ``pos``."""
        self._traps[(pos, what)] = self._traps.get((pos, what), 0) + 1

    def traps(self) -> list[Trap]:
        """Traps since loading, in order of first occurrence."""
        return [Trap(pos, what, count) for (pos, what), count in self._traps.items()]

    def reset(self) -> None:
        """Return to the state after loading."""
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

    # --- freezing ---

    def freeze(self) -> SwitchState:
        """The state as immutable, comparable data."""
        return SwitchState(
            self.engine,
            self._configuration(),
            self._freeze_memory(),
            tuple(self.digests),
            tuple(self.log),
            tuple(self._traps.items()),
        )

    def restore(self, frozen: SwitchState) -> None:
        """Return to a state of this switch, or of another one with the same program and engine. Raises ``ValueError``
        for any other."""
        if frozen.engine != self.engine:
            raise ValueError(f"the frozen state is of the engine {frozen.engine}, this switch's is {self.engine}")
        self._restore_switch(frozen.configuration, frozen.memory)
        self.digests[:] = frozen.digests
        self.log[:] = frozen.log
        self._traps.clear()
        self._traps.update(frozen.traps)

    @cached_property
    def actions(self) -> Actions:
        """The program's actions by number."""
        return Actions(self.program)

    def _configuration(self) -> Configuration:
        return Configuration(
            tuple(self.actions.freeze_table(table) for table in self.tables.values()),
            tuple(self.actions.freeze_profile(profile) for profile in self.profiles.values()),
            tuple(tuple(members) for members in self.value_sets.values()),
            tuple(self.groups.values()),
            tuple(self.sessions.values()),
            tuple(sorted(self.ports_down)),
        )

    def _freeze_memory(self) -> tuple[Any, ...]:
        return (
            tuple(tuple(register.cells) for register in self.registers.values()),
            tuple((tuple(counter.packets), tuple(counter.bytes)) for counter in self.counters.values()),
            tuple(tuple(map(freeze_bucket, meter.buckets)) for meter in self.meters.values()),
            tuple(
                tuple((e.packets, e.bytes, e.last_hit, freeze_bucket(e.meter)) for e in table.entries())
                for table in self.tables.values()
            ),
            self.random.getstate(),
        )

    def _restore_switch(self, configuration: Configuration, memory: tuple[Any, ...]) -> None:
        registers, counters, meters, entries, chance = memory
        shape = [len(cells) for cells in registers], [len(packets) for packets, _ in counters], list(map(len, meters))
        mine = (self.registers.values(), self.counters.values(), self.meters.values())
        if shape != tuple([each.size for each in kind] for kind in mine) or len(entries) != len(self.tables):
            raise ValueError("the frozen state is of another program")
        if configuration != self._configuration():
            self._configure(configuration)
        for register, cells in zip(self.registers.values(), registers, strict=True):
            register.cells[:] = cells
        for counter, (packets, sizes) in zip(self.counters.values(), counters, strict=True):
            counter.packets[:], counter.bytes[:] = packets, sizes
        for meter, buckets in zip(self.meters.values(), meters, strict=True):
            meter.buckets[:] = map(Bucket.of, buckets)
        for table, counts in zip(self.tables.values(), entries, strict=True):
            for entry, (hits, size, last, bucket) in zip(table.entries(), counts, strict=True):
                entry.packets, entry.bytes, entry.last_hit = hits, size, last
                entry.meter = None if bucket is None else Bucket.of(bucket)
        self.random.setstate(chance)

    def _configure(self, frozen: Configuration) -> None:
        """Restore tables, profiles, value sets and replication."""
        for profile, contents in zip(self.profiles.values(), frozen.profiles, strict=True):
            self.actions.restore_profile(profile, contents)
        for table, holds in zip(self.tables.values(), frozen.tables, strict=True):
            table.clear()
            for entry in self.actions.entries(holds, self.profiles):
                table.insert(entry)
            table.set_default(*self.actions.choice(holds.default))
        for members, listed in zip(self.value_sets.values(), frozen.value_sets, strict=True):
            members[:] = listed
        self.groups.clear()
        self.groups.update((group.group_id, group) for group in frozen.groups)
        self.sessions.clear()
        self.sessions.update((session.session_id, session) for session in frozen.sessions)
        self.ports_down.clear()
        self.ports_down.update(frozen.ports_down)


def profile_of(state: ModelState, table: ir.Table) -> Profile | None:
    """The action profile or selector that holds a table's actions; None for a table that holds them itself."""
    implementation = table.implementation
    return None if implementation is None else state.profiles.get(implementation.name)


def _check_supported(program: ir.Program, supported: Collection[str]) -> None:
    problems = [
        Diagnostic(e.pos, f"extern {e.extern} ({e.name}) is not supported by the behavioural model")
        for e in program.externs
        if e.extern not in supported
    ]
    for table in program.tables:
        if table.implementation is not None and table.implementation not in program.externs:
            what = table.implementation.extern
            problems.append(Diagnostic(table.pos, f"table {table.name}: implementation {what} is not supported"))
        problems.extend(
            Diagnostic(key.pos, f"table {table.name}: match kind {key.match_kind} is not supported")
            for key in table.keys
            if kind_of(key.match_kind) not in (*MATCH_KINDS, "selector")
        )
    if problems:
        raise InputError(*problems)
