"""Shares of time (EPIC §6.2) that switches can promise to groups with leases.

"Capacity is a combination of unallocated space and oversubscribed blocks weighted by duty cycle." A *block* is what a
group of the program's own size takes at a switch: a context, and the program's slots. A group communicates for a share
of the time, its *duty*, and a lease takes whichever blocks are free. So a switch is enough for the groups at home there
if the sum of their duties, each multiplied by the group's blocks, is at most the number of the switch's blocks. Groups
that keep step (``windows``) do not take turns by chance: what counts of them is their busiest moment.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from p4gen.plan.placement.placed import request_of
from p4gen.plan.placement.policy import GroupView, SwitchRoom
from p4gen.plan.placement.request import GroupSpec
from p4gen.plan.placement.tree import IncTree
from p4gen.plan.placement.windows import Taken, busiest
from p4gen.vocabulary import ServingSpec

_ROUNDING: Final = 1e-9
"""Ten duties of 0.1 are one."""


def blocks_per_node(spec: GroupSpec, program: ServingSpec | None) -> int:
    """The blocks that a group takes at each node of its tree: one, as long as no program is known there."""
    if program is None:
        return 1
    slots = spec.slots or program.slots_per_group
    return max(len(request_of(spec, [program]).channels()), -(-slots // program.slots_per_group))


def blocks_of(program: ServingSpec, contexts: int, slots: Iterable[int]) -> int:
    """The number of blocks of a switch, from its contexts and the slots of each pipeline."""
    each = program.slots_per_group * (2 if program.pipes > 1 else 1)  # for data up, and for data down
    return min(contexts, sum(free // each for free in slots))


def duties(groups: Iterable[GroupView], name: str) -> Mapping[str, tuple[float, tuple[Taken, ...]]]:
    """By switch: the sum of duties of the groups with leases, each times the blocks that it takes, without the group of
    this name; and those that have a schedule."""
    found: defaultdict[str, float] = defaultdict(float)
    scheduled: defaultdict[str, list[Taken]] = defaultdict(list)
    for group in groups:
        if group.leased and group.name != name:
            for node in group.tree.nodes:
                found[node.key.switch] += group.duty * group.blocks
                if group.schedule is not None:
                    scheduled[node.key.switch].append((group.schedule, group.blocks))
    return {switch: (duty, tuple(scheduled[switch])) for switch, duty in found.items()}


def loads(tree: IncTree, spec: GroupSpec, blocks: int, rooms: Mapping[str, SwitchRoom]) -> dict[str, float]:
    """By switch of a tree: the share of its blocks that would be promised in its busiest moment with one more group
    there."""
    nodes = Counter(node.key.switch for node in tree.nodes)
    schedule = spec.own_schedule
    found = {}
    for switch, count in nodes.items():
        room = rooms.get(switch)
        free = room.blocks if room is not None else 0
        total = spec.share * blocks * count + (room.duty if room is not None else 0.0)
        mine = [(schedule, blocks * count)] if schedule is not None else []
        taken = busiest(total, (*mine, *(room.scheduled if room is not None else ())))
        found[switch] = taken / free if free else float("inf")
    return found


def within(load: float) -> bool:
    """Whether a switch can keep this promise."""
    return load <= 1 + _ROUNDING


def overbooked(tree: IncTree, spec: GroupSpec, blocks: int, rooms: Mapping[str, SwitchRoom]) -> Iterator[str]:
    """The switches at which a group would make promises exceed the time, a sentence each."""
    for switch, load in loads(tree, spec, blocks, rooms).items():
        if not within(load):
            room = rooms.get(switch)
            there = room.blocks if room is not None else 0
            few = "1 block" if there == 1 else f"{there} blocks"
            total = load * there if there else spec.share * blocks
            yield f"{switch}: with it the duties of groups add up to {total:.3g}, of {few}"
