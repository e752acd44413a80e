"""The state of switches for a channel or a connection, read from the registers of the generated program.

The family says how its program's words are decoded (``StateReader``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from p4gen.families import Facet, OwnSpec, family_of
from p4gen.groups.connections import ConnectionHere
from p4gen.groups.group import GroupContext, Pattern, PlacedEdge
from p4gen.model import Model
from p4gen.net.collectives.running import Running, RunningGroup
from p4gen.plan.placement.placed import Channel
from p4gen.plan.placement.tree import NodeKey, TreeNode
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.psn import diff
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective


@dataclass(frozen=True)
class HeldSlot:
    """The content of the slot that serves a PSN."""

    holds: int | None
    """The PSN that the slot serves; None when it has never been used in this epoch."""
    opcode: int
    bitmap: int
    """The edges whose packets with that PSN have arrived, a bit each."""
    start: int | None = None
    """The first PSN in the range of the slot's pipe, if the program keeps one."""


@dataclass(frozen=True)
class HeldEdge:
    """The progress of an edge in both directions."""

    expects: int
    nak_sent: bool
    acked: int


@dataclass(frozen=True)
class GroupReader(Generic[OwnSpec]):
    """Functions that read what programs keep for groups. All take the family's own spec and the switch."""

    slot: Callable[[OwnSpec, Model, GroupContext, int, bool], HeldSlot]
    """The slot of a PSN in a context; with the flag set, the slot for data from the root."""
    pattern: Callable[[OwnSpec, Model, GroupContext, int], Pattern]
    """The pattern that was announced for a PSN; the context's first pattern if that is unknown."""
    edge: Callable[[OwnSpec, Model, GroupContext, int], HeldEdge | None]
    """The progress of an edge of a context; None if the program keeps none."""
    wait: Callable[[OwnSpec, Model, PlacedEdge], int]
    """The time, in ps, for which the timer of an edge waits; 0 if it does not run, so that ticks trigger nothing. Only
    for programs that want ticks."""


@dataclass(frozen=True)
class StateReader(Facet, Generic[OwnSpec]):
    """Readers of the registers of a family's programs."""

    module: ClassVar[str] = "state"

    groups: GroupReader[OwnSpec] | None = None
    """For programs that serve groups."""
    connection: Callable[[OwnSpec, Model, ConnectionHere, int], Iterable[str]] = lambda *_: ()
    """The state that the switch at a connection's end keeps, with regard to a PSN, in words. Takes the family's own
    spec, the switch, the connection and the PSN."""


def group_reader(spec: ProgramSpec) -> GroupReader[Any] | None:
    """The readers of a program's state for groups; None if the family has none."""
    return _reader(spec).groups


def connection_state(spec: ProgramSpec, switch: Model, here: ConnectionHere, psn: int) -> tuple[str, ...]:
    """The state that a switch keeps for a connection, with regard to a PSN; empty if the family does not say how to
    read it."""
    return tuple(_reader(spec).connection(spec, switch, here, psn))


def _reader(spec: ProgramSpec) -> StateReader[Any]:
    family = family_of(spec)
    return family.facet(StateReader) if family.answers(StateReader) else StateReader()


@dataclass(frozen=True)
class SlotState:
    """The slot of a PSN at a node of the tree."""

    node: NodeKey
    down: bool
    """Whether the slot holds data from the root (EPIC: belongs to the broadcast pipe)."""
    pattern: Pattern
    psn: int
    holds: int | None
    """The PSN that the slot serves; None when it has never been used in this epoch."""
    opcode: int
    arrived: tuple[str, ...]
    missing: tuple[str, ...]
    """Names of edges whose packets have not arrived: ``rank 2``, or the switch at the other end."""
    start: int | None = None
    """Mode III: the first PSN in the range of the pipe."""

    @property
    def complete(self) -> bool:
        """Whether all packets have arrived."""
        return self.holds == self.psn and not self.missing

    def __str__(self) -> str:
        pipeline = f" of pipeline {self.node.pipeline}" if self.node.pipeline else ""
        at = f"{self.node.switch}{pipeline}, {'broadcast ' if self.down else ''}slot of PSN {self.psn:#08x}"
        if self.start is not None:
            at += f" (the pipe begins at {self.start:#08x})"
        if self.holds is None:
            return f"{at}: empty; no rank's contribution has arrived; waits for {', '.join(self.missing)}"
        if self.holds != self.psn:
            ahead = diff(self.holds, self.psn) >= 0
            return f"{at}: {'serves PSN' if ahead else 'still serves PSN'} {self.holds:#08x}" + (
                "; its content was overwritten" if ahead else "; no contribution to this PSN has arrived"
            )
        what = _opcode_name(self.opcode)
        if not self.missing:
            return f"{at}: complete ({what}); the result was sent, and was lost on the way to those that wait for it"
        return f"{at}: {what} of {', '.join(self.arrived)} has arrived; waits for {', '.join(self.missing)}"


@dataclass(frozen=True)
class EdgeState:
    """Mode III: the progress of one edge of a node, in both directions."""

    node: NodeKey
    name: str
    expects: int
    """ePSN: the PSN that the other end has to send next."""
    nak_sent: bool
    acked: int
    """lastAcked: the newest PSN that the other end has acknowledged."""

    def __str__(self) -> str:
        nak = ", and was sent a NAK" if self.nak_sent else ""
        return (
            f"{self.node.switch}, edge to {self.name}: expects PSN {self.expects:#08x}{nak}; "
            f"it has acknowledged {self.acked:#08x}"
        )


class ChannelState:
    """The switches' state for one channel of a group, node by node."""

    def __init__(self, reader: GroupReader[Any], simulation: Running, group: RunningGroup, channel: Channel) -> None:
        self._reader = reader
        self._spec = simulation.spec
        self._switches = simulation.network.switches
        self._tree = group.placed.tree
        self._channel = channel

    def slots(self, psn: int) -> Iterator[SlotState]:
        """The slots of a PSN in all nodes, for the pattern that was announced there."""
        for key, context in self._channel.contexts.items():
            pattern = self._reader.pattern(self._spec, self._switches[key.switch], context, psn)
            if context.has_up(pattern):
                yield self._slot(key, context, pattern, psn, down=False)
            if self._spec.pipes > 1 and context.has_down(pattern):
                yield self._slot(key, context, pattern, psn, down=True)

    def edges(self, key: NodeKey) -> Iterator[EdgeState]:
        """The progress of the edges of a node; nothing where the program keeps none."""
        context = self._channel.contexts[key]
        for index in range(len(context.edges)):
            held = self._reader.edge(self._spec, self._switches[key.switch], context, index)
            if held is not None:
                yield EdgeState(key, self._name(key, index), held.expects, held.nak_sent, held.acked)

    def is_explained(self, slot: SlotState, slots: Sequence[SlotState]) -> bool:
        """Whether every packet that ``slot`` lacks is also missing at the node it would come from."""
        node = self._tree.node(slot.node)
        lacking = {(other.node, other.down) for other in slots if other.missing}
        for index in self._sources(node, slot.pattern, down=slot.down):
            if self._name(slot.node, index) not in slot.missing:
                continue
            if node.edges[index].far is None:
                return False
            above, _ = self._tree.opposite(node, index)
            context = self._channel.contexts[above.key]
            pattern = self._same(context, slot.pattern)
            from_up = not slot.down or not context.has_down(pattern)
            if (above.key, not from_up) not in lacking:
                return False
        return True

    def _slot(self, key: NodeKey, context: GroupContext, pattern: Pattern, psn: int, *, down: bool) -> SlotState:
        held = self._reader.slot(self._spec, self._switches[key.switch], context, psn, down)
        sources = self._sources(self._tree.node(key), pattern, down=down)
        return SlotState(
            key,
            down,
            pattern,
            psn,
            held.holds,
            held.opcode,
            tuple(self._name(key, i) for i in sources if held.bitmap >> i & 1),
            tuple(self._name(key, i) for i in sources if not held.bitmap >> i & 1),
            held.start,
        )

    @staticmethod
    def _sources(node: TreeNode, pattern: Pattern, *, down: bool) -> list[int]:
        toward = node.parent if pattern.collective is Collective.ALLREDUCE else node.toward(pattern.root)
        return [i for i in range(len(node.edges)) if (i == toward) == down]

    @staticmethod
    def _same(context: GroupContext, pattern: Pattern) -> Pattern:
        return next(p for p in context.patterns if p.collective is pattern.collective and pattern.root in p.roots)

    def _name(self, key: NodeKey, index: int) -> str:
        edge = self._tree.node(key).edges[index]
        if edge.far is None:
            return f"rank {min(edge.ranks)}"
        return edge.far.switch if edge.far.switch != key.switch else f"pipeline {edge.far.pipeline}"


def _opcode_name(opcode: int) -> str:
    try:
        return Opcode(opcode).name
    except ValueError:
        return f"opcode {opcode:#x}"
