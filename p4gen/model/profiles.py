"""Action profiles and selectors at run time (v1model.p4; P4Runtime 9.2), shared by all back ends.

A table with such an implementation has entries that name a member, a group of weighted members, or a set of
actions of their own; ``Indirect`` in ``p4gen.model.entries`` says which. A group's member is chosen by the hash of
the table's selector keys, over the members whose watch port is up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from p4gen.model.codec import to_bytes
from p4gen.model.entries import Indirect
from p4gen.model.errors import ControlError
from p4gen.model.hashes import ALGORITHMS
from p4gen.p4 import ir

Choice = tuple[ir.ActionRef, tuple[Any, ...]]
"""An action with its data: that of a member."""


@dataclass(frozen=True)
class GroupMember:
    """A member of a group: its id, its weight, and the port whose failure takes the member out of use."""

    member_id: int
    weight: int = 1
    watch_port: int | None = None


@dataclass(eq=False)
class Bound:
    """The reference of an entry of a table with a profile; ``shares`` are the one-shot actions, resolved."""

    profile: Profile
    indirect: Indirect
    shares: tuple[tuple[Choice, int, int | None], ...] = ()

    def choose(self, selector: Callable[[], int]) -> Chosen | None:
        """The action for a packet; ``selector`` gives the hash of its selector keys. None if no member is alive."""
        member, group = self.indirect.member, self.indirect.group
        if member is not None:
            choice = self.profile.members.get(member)
            return None if choice is None else Chosen(choice, member)
        listed, down = self.shares if group is None else self.profile.shares(group), self.profile.ports_down
        total = sum(weight for _, weight, port in listed if port not in down)
        if not total:
            return None
        number = selector()
        place = number % total
        for at, (choice, weight, port) in enumerate(listed):
            if port in down:
                continue
            if place < weight:
                return Chosen(choice, at if group is None else self.profile.groups[group][at].member_id, number)
            place -= weight
        raise AssertionError("a share's place is within their sum")

    def __str__(self) -> str:
        """The reference of an entry, as traces name it."""
        kind = "selector" if self.profile.selector else "profile"
        if self.indirect.group is not None:
            return f"{kind} {self.profile.name}, group {self.indirect.group}"
        return f"{kind} {self.profile.name}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The action of a packet: the id of the member, or the position of the action in the entry (from 0), and the hash
    if a hash has chosen it."""

    choice: Choice
    member: int
    hash: int | None = None


@dataclass(eq=False)
class Profile:
    """One ``action_profile`` or ``action_selector`` instance."""

    name: str
    selector: bool
    size: int
    algorithm: str = "identity"
    bits: int = 64
    members: dict[int, Choice] = field(default_factory=dict)
    groups: dict[int, tuple[GroupMember, ...]] = field(default_factory=dict)
    ports_down: set[int] = field(default_factory=set)
    """Ports known to be down, shared by all profiles of a switch."""

    @classmethod
    def of(cls, instance: ir.ExternInstance, ports_down: set[int]) -> Profile:
        """The state of an extern instance."""
        args = instance.args
        if instance.extern == "action_profile":
            return cls(instance.name, False, int(args[0]), ports_down=ports_down)
        return cls(instance.name, True, int(args[1]), str(args[0]), int(args[2]), ports_down=ports_down)

    def hash(self, key: int, width: int) -> int:
        """The hash of selector keys, ``width`` bits one after the other, cut to the selector's output width."""
        algorithm = ALGORITHMS.get(self.algorithm, ALGORITHMS["identity"])
        return algorithm(to_bytes(key, width)) & (1 << self.bits) - 1

    def shares(self, group: int) -> tuple[tuple[Choice, int, int | None], ...]:
        """The members of a group as (action, weight, watch port)."""
        return tuple((self.members[m.member_id], m.weight, m.watch_port) for m in self.groups.get(group, ()))

    def reset(self) -> None:
        """Remove all members and groups."""
        self.members.clear()
        self.groups.clear()

    # --- changes; the caller has resolved actions ---

    def put_member(self, member: int, choice: Choice) -> None:
        """Add a member, or give it another action. Raises ``ControlError`` when there is no room."""
        if member not in self.members and len(self.members) >= self.size:
            raise ControlError(f"action profile {self.name}: full, it has room for {self.size} members")
        self.members[member] = choice

    def put_group(self, group: int, members: Iterable[GroupMember]) -> None:
        """Add a group, or give it other members. Raises ``ControlError`` for a member that does not exist."""
        listed = tuple(members)
        if not self.selector:
            raise ControlError(f"action profile {self.name}: it is not a selector, so it has no groups")
        for member in listed:
            if member.member_id not in self.members:
                raise ControlError(f"action profile {self.name}: there is no member {member.member_id}")
        self.groups[group] = listed

    def check(self, indirect: Indirect) -> None:
        """Raises ``ControlError`` unless the members and groups that ``indirect`` names exist."""
        if indirect.member is not None and indirect.member not in self.members:
            raise ControlError(f"action profile {self.name}: there is no member {indirect.member}")
        if indirect.group is not None and indirect.group not in self.groups:
            raise ControlError(f"action profile {self.name}: there is no group {indirect.group}")
