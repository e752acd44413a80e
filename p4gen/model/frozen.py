"""The state of a switch as plain data that can be stored, compared and restored.

It does not refer to the program or the switch; actions are numbered in the order in which the program's tables list
them. So states of two switches with the same program are comparable and interchangeable.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from p4gen.errors import Pos
from p4gen.model.entries import Action, CloneSession, Indirect, MulticastGroup
from p4gen.model.externs import Bucket, MeterConfig
from p4gen.model.profiles import Bound, Choice, GroupMember, Profile
from p4gen.model.tables import Installed, KeyField, TableState, actions_of
from p4gen.p4 import ir


class FrozenChoice(NamedTuple):
    """An action by its number, with its data."""

    action: int
    args: tuple[Any, ...]


class FrozenBound(NamedTuple):
    """The action of an entry in a table with an action profile."""

    profile: str
    member: int | None
    group: int | None
    actions: tuple[tuple[str, tuple[tuple[str, int], ...], int, int | None], ...]
    """The entry's own actions: name, arguments, weight, watch port."""
    shares: tuple[tuple[FrozenChoice, int, int | None], ...]
    """The entry's own actions, resolved."""


class FrozenEntry(NamedTuple):
    """An entry as the control plane wrote it."""

    fields: tuple[KeyField, ...]
    choice: FrozenChoice
    priority: int
    const: bool
    bound: FrozenBound | None
    place: int | None
    """The entry's number in the state block of ``jit``."""
    metered: bool
    inserted: int
    """Time of insertion (µs), in a table without idle timeouts; in other tables this is part of the memory."""


class FrozenTable(NamedTuple):
    """The configuration of a table; entries are in the order of insertion."""

    default: FrozenChoice
    entries: tuple[FrozenEntry, ...]


class FrozenProfile(NamedTuple):
    """The configuration of an action profile, in the order of insertion."""

    members: tuple[tuple[int, FrozenChoice], ...]
    groups: tuple[tuple[int, tuple[GroupMember, ...]], ...]


@dataclass(frozen=True)
class Configuration:
    """Everything that the control plane wrote. Tables, profiles and value sets are in the program's order."""

    tables: tuple[FrozenTable, ...]
    profiles: tuple[FrozenProfile, ...]
    value_sets: tuple[tuple[tuple[tuple[int, int], ...], ...], ...]
    groups: tuple[MulticastGroup, ...]
    sessions: tuple[CloneSession, ...]
    ports_down: tuple[int, ...]


@dataclass(frozen=True)
class SwitchState:
    """The state of a switch between packets. States of the two engines differ in ``memory``: registers, counters,
    meters, the random generator, and entries' counters."""

    engine: str
    configuration: Configuration
    memory: tuple[Any, ...]
    digests: tuple[Any, ...]
    log: tuple[str, ...]
    traps: tuple[tuple[tuple[Pos, str], int], ...]


FrozenBucket = tuple[MeterConfig | None, int, int, int]


def freeze_bucket(bucket: Bucket | None) -> FrozenBucket | None:
    """A meter's bucket as data; None if there is none."""
    return None if bucket is None else bucket.numbers()


class Actions:
    """The numbers of a program's actions, to freeze and restore objects that refer to actions."""

    def __init__(self, program: ir.Program) -> None:
        self._refs = [ref for table in program.tables for ref in actions_of(table)]
        self._numbers = {id(ref): number for number, ref in enumerate(self._refs)}

    def freeze_choice(self, ref: ir.ActionRef, args: tuple[Any, ...]) -> FrozenChoice:
        """An action, by its number, with its data."""
        return FrozenChoice(self._numbers[id(ref)], args)

    def choice(self, frozen: FrozenChoice) -> Choice:
        """The action with its data: undo ``freeze_choice``."""
        return self._refs[frozen.action], frozen.args

    def freeze_table(self, table: TableState, places: dict[Installed, int] | None = None) -> FrozenTable:
        """The configuration of a table; ``places`` are the numbers of its entries."""
        entries = tuple(
            FrozenEntry(
                entry.fields,
                self.freeze_choice(entry.ref, entry.args),
                entry.priority,
                entry.const,
                None if entry.bound is None else self._freeze_bound(entry.bound),
                None if places is None else places.get(entry),
                entry.meter is not None,
                0 if table.table.support_timeout else entry.last_hit,
            )
            for entry in table.entries()
        )
        return FrozenTable(self.freeze_choice(table.default.ref, table.default.args), entries)

    def entries(self, frozen: FrozenTable, profiles: dict[str, Profile]) -> Iterator[Installed]:
        """New entries with the contents of a frozen table."""
        for entry in frozen.entries:
            ref, args = self.choice(entry.choice)
            bound = entry.bound and self._bound(entry.bound, profiles)
            yield Installed(entry.fields, ref, args, entry.priority, entry.const, bound=bound, last_hit=entry.inserted)

    def freeze_profile(self, profile: Profile) -> FrozenProfile:
        """The configuration of an action profile."""
        members = tuple((number, self.freeze_choice(*choice)) for number, choice in profile.members.items())
        return FrozenProfile(members, tuple(profile.groups.items()))

    def restore_profile(self, profile: Profile, frozen: FrozenProfile) -> None:
        """Give a profile its frozen members and groups."""
        profile.reset()
        profile.members.update((number, self.choice(choice)) for number, choice in frozen.members)
        profile.groups.update(frozen.groups)

    def _freeze_bound(self, bound: Bound) -> FrozenBound:
        shares = tuple((self.freeze_choice(*choice), weight, port) for choice, weight, port in bound.shares)
        named = bound.indirect
        actions = tuple((a.name, tuple(a.args.items()), weight, port) for a, weight, port in named.actions)
        return FrozenBound(bound.profile.name, named.member, named.group, actions, shares)

    def _bound(self, frozen: FrozenBound, profiles: dict[str, Profile]) -> Bound:
        shares = tuple((self.choice(choice), weight, port) for choice, weight, port in frozen.shares)
        actions = tuple((Action(name, dict(args)), weight, port) for name, args, weight, port in frozen.actions)
        indirect = Indirect(member=frozen.member, group=frozen.group, actions=actions)
        return Bound(profiles[frozen.profile], indirect, shares)
