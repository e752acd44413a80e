"""Free resources: contexts, edge ids, slots and epochs of each switch, tree addresses, host QPs.

There is no list of free resources: everything that no live group holds is free, so nothing can leak.

A switch's registers outlive the groups that used them, and a word of an old group counts as a new group's if it has the
same epoch. So a context takes an epoch that its words have not seen since the program was loaded (docs/modes.md: epochs
are 1 to 255). The first free range is searched first; if all 255 are used there, the rest of the switch is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from typing import Final

from p4gen.errors import InputError
from p4gen.groups.family import group_entries
from p4gen.groups.group import GroupContext
from p4gen.host.transport.nicinfo import NicInfo
from p4gen.plan.placement.numbers import FIRST_TURNS, PairNumbers, Ring, Turns
from p4gen.plan.placement.placed import ADDRESSES, TREES, PlacedGroup
from p4gen.plan.placement.spans import NoRoomError, Spans, gaps
from p4gen.vocabulary import ServingSpec

EPOCHS: Final = range(1, 256)


class Kind(StrEnum):
    """The kinds of a switch's state."""

    CONTEXT = "context"
    EDGE = "edge"
    SLOT = "slot"
    CONNECTION = "connection"


@dataclass(frozen=True)
class Held:
    """State of a switch that one context holds: ``[first, end)`` of a kind, in the bank of a pipeline."""

    switch: str
    kind: Kind
    pipeline: int
    first: int
    end: int
    epoch: int


def held_by(switch: str, context: GroupContext) -> Iterator[Held]:
    """Everything that a context holds."""
    # Without a pipe down there is no ``base_down``, so the program's spec need not be known.
    spans = [(Kind.CONTEXT, (context.context, context.context + 1))]
    spans += [(Kind.EDGE, (edge.edge_id, edge.edge_id + 1)) for edge in context.edges]
    spans += [(Kind.SLOT, span) for span in context.ranges()]
    for kind, (first, end) in spans:
        yield Held(switch, kind, context.pipeline, first, end, context.epoch)


class History:
    """The epochs that a switch's state has had since its program was loaded."""

    def __init__(self) -> None:
        self._seen: defaultdict[tuple[Kind, int, int], Spans] = defaultdict(Spans)

    def add(self, held: Held) -> None:
        """Record the state of a live or former group."""
        self.seen(held.kind, held.pipeline, held.epoch).add(held.first, held.end)

    def seen(self, kind: Kind, pipeline: int, epoch: int) -> Spans:
        """The part of a pipeline's bank that has seen an epoch."""
        return self._seen[kind, pipeline, epoch]

    def clean(self, held: Iterable[Held]) -> bool:
        """Whether no part of it has seen its epoch."""
        return not any(self.seen(h.kind, h.pipeline, h.epoch).meets(h.first, h.end) for h in held)

    def __iter__(self) -> Iterator[tuple[Kind, int, int, Spans]]:
        return ((*key, spans) for key, spans in self._seen.items() if len(spans))


@dataclass(frozen=True)
class Limits:
    """The limits of a program: contexts (from 0), edge ids (from 1), slots of each pipeline."""

    contexts: int = 1 << 30
    edges: int = 1 << 30
    slots: int = 1 << 40

    @classmethod
    def of(cls, spec: ServingSpec) -> Limits:
        """The limits of a program of ``spec``."""
        return cls(spec.groups, group_entries(spec).last_edge_id(spec), spec.total_slots)


@dataclass(frozen=True)
class Need:
    """The needs of a node for one context: edges, and slots of ``slots`` each for data up and down."""

    pipeline: int
    edges: int
    slots: int
    up: bool
    down: bool
    context: int | None = None
    """Which one; None for the first that is free."""
    sharing: ServingSpec | None = None
    """The program, if the slots are those of a block that groups share (``spec.shared_blocks``)."""


@dataclass(frozen=True)
class Taken:
    """The resources that a context takes on a switch."""

    context: int
    edge_ids: tuple[int, ...]
    base: int | None
    base_down: int | None
    epoch: int

    def held(self, switch: str, need: Need) -> Iterator[Held]:
        """The state of a switch that belongs to the resources."""
        spans = [(Kind.CONTEXT, self.context, 1), *((Kind.EDGE, edge, 1) for edge in self.edge_ids)]
        spans += [(Kind.SLOT, base, need.slots) for base in (self.base, self.base_down) if base is not None]
        for kind, first, size in spans:
            yield Held(switch, kind, need.pipeline, first, first + size, self.epoch)


class SwitchPool:
    """The free resources of one switch; allocations reduce them."""

    def __init__(self, switch: str, limits: Limits, history: History, live: Iterable[GroupContext] = ()) -> None:
        self.switch = switch
        self.limits = limits
        self._history = history
        self._contexts, self._edges = Spans(), Spans()
        self._slots: defaultdict[int, Spans] = defaultdict(Spans)
        self._present = History()
        """The epochs of the groups that share slots now."""
        for context in live:
            for held in held_by(switch, context):
                self._hold(held, shared=context.block is not None)

    @property
    def contexts_free(self) -> int:
        """The number of free contexts."""
        return self.limits.contexts - len(self._contexts)

    def slots_free(self, pipeline: int) -> int:
        """Free slots of a pipeline; a pipe takes contiguous slots."""
        return self.limits.slots - len(self._slots[pipeline])

    def take(self, need: Need, epoch: int | None = None) -> Taken:
        """Take the first free resources, with ``epoch`` if given, else with the least epoch that is clean there. Where
        there is none, take the first ones that are free and clean. Raises ``NoRoomError``."""
        taken = self.fit(need, None)
        if epoch is not None:
            taken = replace(taken, epoch=epoch)
        else:
            for number in EPOCHS:
                taken = replace(taken, epoch=number)
                if self._clean(taken, need):
                    break
            else:
                taken = self._elsewhere(need)
        self.hold(taken, need)
        return taken

    def hold(self, taken: Taken, need: Need) -> None:
        """Take resources that ``fit`` has found."""
        for held in taken.held(self.switch, need):
            self._hold(held, shared=need.sharing is not None)

    def _clean(self, taken: Taken, need: Need) -> bool:
        """Whether state has not seen the epoch of those that take it, nor have groups that share it."""
        held = [*taken.held(self.switch, need)]
        return self._history.clean(held) and self._present.clean(held)

    def _elsewhere(self, need: Need) -> Taken:
        for number in EPOCHS:
            try:
                return self.fit(need, number)
            except NoRoomError:
                continue
        raise NoRoomError(
            f"{self.switch}: all 255 epochs of its free resources have been used since its program was loaded; "
            "it can be loaded again when no group is on the switch",
            epochs=(self.switch,),
        )

    def _hold(self, held: Held, *, shared: bool) -> None:
        if shared:
            self._present.add(held)
        spans = {Kind.CONTEXT: self._contexts, Kind.EDGE: self._edges}.get(held.kind, self._slots[held.pipeline])
        spans.add(held.first, held.end)

    def fit(self, need: Need, epoch: int | None) -> Taken:
        """First fit, among resources that have not seen ``epoch`` if it is given. Raises ``NoRoomError``."""

        def seen(kind: Kind) -> Spans:
            return Spans() if epoch is None else self._history.seen(kind, need.pipeline, epoch)

        limits = self.limits
        span = (0, limits.contexts) if need.context is None else (need.context, need.context + 1)
        contexts = [*gaps(*span, self._contexts, seen(Kind.CONTEXT))]
        if not contexts:
            raise NoRoomError(f"{self.switch}: no context is free; its program has {limits.contexts} (groups)")
        edges: list[int] = []
        for first, end in gaps(1, limits.edges + 1, self._edges, seen(Kind.EDGE)):
            edges += range(first, min(end, first + need.edges - len(edges)))
        if len(edges) < need.edges:
            raise NoRoomError(
                f"{self.switch}: {need.edges} edge ids are needed; {len(edges)} of {limits.edges} are free"
            )
        if need.sharing is not None:
            for context in chain.from_iterable(range(*each) for each in contexts):
                taken = Taken(context, tuple(edges), *need.sharing.block_of(context), epoch or 0)
                if epoch is None or self._clean(taken, need):
                    return taken
            raise NoRoomError(f"{self.switch}: no block of slots has not had epoch {epoch}")
        bases: list[int | None] = []
        mine = Spans()
        for wanted in (need.up, need.down):
            base = self._slots_for(need, mine, seen(Kind.SLOT)) if wanted else None
            if base is not None:
                mine.add(base, base + need.slots)
            bases.append(base)
        return Taken(contexts[0][0], tuple(edges), bases[0], bases[1], epoch or 0)

    def _slots_for(self, need: Need, *taken: Spans) -> int:
        widest = free = 0
        for first, end in gaps(0, self.limits.slots, self._slots[need.pipeline], *taken):
            if end - first >= need.slots:
                return first
            widest, free = max(widest, end - first), free + end - first
        where = f"pipeline {need.pipeline}" if need.pipeline else "its memory"
        most = f", {widest} at most in a row" if widest else ""
        reason = f"{need.slots} slots are needed; {free} of {self.limits.slots} are free in {where}{most}"
        raise NoRoomError(f"{self.switch}: {reason}")


class Pools:
    """All resources of groups, derived from those that live groups hold.

    ``limits`` has the limits of every switch; without it, no resource of switches ever runs out. ``next_tree`` and
    ``turns`` are the numbers at which a search begins: numbers go round, so that a late packet for a dead group does
    not meet a new one with its number. ``rings`` are the rings of groups that use no tree, with their hosts. ``nics``
    are those of hosts whose NIC is not p4gen's own.
    """

    def __init__(
        self,
        limits: Mapping[str, Limits] | None = None,
        live: Iterable[PlacedGroup] = (),
        histories: Mapping[str, History] | None = None,
        *,
        next_tree: int = 0,
        turns: Turns = FIRST_TURNS,
        rings: Iterable[tuple[Sequence[str], Ring]] = (),
        nics: Mapping[str, NicInfo] | None = None,
    ) -> None:
        self._limits = limits
        self._histories = histories or {}
        self._live: defaultdict[str, list[GroupContext]] = defaultdict(list)
        self._trees: set[int] = set()
        self._addresses: defaultdict[str, set[int]] = defaultdict(set)
        self._pools: dict[str, SwitchPool] = {}
        self.next_tree = next_tree
        self.pairs = PairNumbers(nics or {}, turns)
        """The numbers of hosts' queue pairs."""
        groups = tuple(live)
        for placed in groups:
            self._trees |= placed.numbers
            for key, context in placed.contexts:
                self._live[key.switch].append(context)
                self._addresses[key.switch].update(edge.local.ip for edge in context.edges)
            for channel in placed.channels:
                for host, end in zip(placed.tree.ranks, channel.ends, strict=True):
                    self.pairs.hold(host, end.qp, end.pairs)
        beside = ((placed.tree.ranks, placed.ring) for placed in groups if placed.ring is not None)
        for hosts, ring in chain(rings, beside):
            for host, ends in zip(hosts, ring, strict=True):
                for number in ends:
                    self.pairs.hold(host, number)

    def switch(self, name: str) -> SwitchPool:
        """The free resources of a switch."""
        if name not in self._pools:
            limits = Limits() if self._limits is None else self._limits[name]
            history = self._histories.get(name, History())
            self._pools[name] = SwitchPool(name, limits, history, self._live[name])
        return self._pools[name]

    def together(self, needs: Mapping[str, Need], epoch: int | None = None) -> dict[str, Taken]:
        """Take the resources of several switches, with the same context and epoch at all of them: ``epoch`` if it is
        given, else one that is clean everywhere. Later searches begin with another one, as late packets may name the
        first, even if a switch has been loaded again. Raises ``NoRoomError``."""
        pools = {switch: self.switch(switch) for switch in needs}
        for switch, need in needs.items():
            pools[switch].fit(need, None)  # says what is lacking there
        turn = self.next_tree % len(EPOCHS)
        epochs = (*EPOCHS[turn:], *EPOCHS[:turn]) if epoch is None else (epoch,)
        contexts = range(min(pool.limits.contexts for pool in pools.values()))
        for context, number in ((context, number) for context in contexts for number in epochs):
            try:
                found = {switch: pools[switch].fit(replace(needs[switch], context=context), number) for switch in needs}
            except NoRoomError:
                continue
            for switch, taken in found.items():
                pools[switch].hold(taken, needs[switch])
            return found
        raise NoRoomError(
            f"{', '.join(pools)}: no context is free at all of them, in an epoch that it has not had", epochs=pools
        )

    def addresses(self, switch: str, count: int) -> None:
        """Check that a switch has room for ``count`` more addresses: it has one for each context. Raises
        ``NoRoomError``."""
        limit = self.switch(switch).limits.contexts
        free = limit - len(self._addresses[switch])
        if count > free:
            raise NoRoomError(f"{switch}: {count} addresses are needed; {free} of {limit} are free (groups)")

    def tree(self, addresses: int = 1) -> int:
        """A free tree number, the first of several in a row if a tree needs more addresses than one has. Raises
        ``InputError`` when none is left."""
        count = addresses // (ADDRESSES + 1) + 1
        for step in range(TREES):
            number = (self.next_tree + step) % TREES
            numbers = range(number, number + count)
            if numbers.stop <= TREES and self._trees.isdisjoint(numbers):
                self._trees.update(numbers)
                self.next_tree = numbers.stop % TREES
                return number
        raise InputError(f"{addresses} addresses are needed; those of all {TREES} trees are taken")
