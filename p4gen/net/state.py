"""What switches hold for a channel, read from the registers of the generated program as a person would read them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from p4gen.groups.group import Group, Pattern, PlacedEdge
from p4gen.host.collectives.control import Collective
from p4gen.model import Model
from p4gen.net.running import Running, RunningGroup
from p4gen.placement.placed import Channel
from p4gen.placement.tree import NodeKey, TreeNode
from p4gen.rocev2.opcodes import Opcode
from p4gen.spec import CollectiveSpec
from p4gen.spec.reductions import NUMBERS_BITS

_MASK = (1 << 24) - 1
GIVEN_UP = 1 << 20
"""Units of 10 us after which a switch of Mode III gives an edge up: the template's constant of that name."""


@dataclass(frozen=True)
class SlotState:
    """What a node holds in the slot of a PSN."""

    node: NodeKey
    down: bool
    """The slot of what comes from the root (Mode III's broadcast pipe)."""
    pattern: Pattern
    psn: int
    holds: int | None
    """The PSN that the slot serves; None when it has never been used in this epoch."""
    opcode: int
    arrived: tuple[str, ...]
    missing: tuple[str, ...]
    """Whose packet it has, and has not: ``rank 2``, or the switch at the other end of an edge."""
    start: int | None = None
    """Mode III: the first PSN that the pipe takes."""

    @property
    def complete(self) -> bool:
        """All is there."""
        return self.holds == self.psn and not self.missing

    def __str__(self) -> str:
        pipe = f" of pipe {self.node.pipe}" if self.node.pipe else ""
        at = f"{self.node.switch}{pipe}, {'broadcast ' if self.down else ''}slot of PSN {self.psn:#08x}"
        if self.start is not None:
            at += f" (the pipe begins at {self.start:#08x})"
        if self.holds is None:
            return f"{at}: empty; no rank's contribution has arrived; waits for {', '.join(self.missing)}"
        if self.holds != self.psn:
            ahead = (self.holds - self.psn) & _MASK < 1 << 23
            return f"{at}: {'serves PSN' if ahead else 'still serves PSN'} {self.holds:#08x}" + (
                "; what was there is overwritten" if ahead else "; no contribution to this one has arrived"
            )
        what = _opcode_name(self.opcode)
        if not self.missing:
            return f"{at}: complete ({what}); the result was sent, and is lost to whoever waits for it"
        return f"{at}: {what} of {', '.join(self.arrived)} is there; waits for {', '.join(self.missing)}"


@dataclass(frozen=True)
class EdgeState:
    """Mode III: how far one edge of a node is, both ways."""

    node: NodeKey
    name: str
    expects: int
    """ePSN: what it is to send next."""
    nak_sent: bool
    acked: int
    """lastAcked: what it has acknowledged."""

    def __str__(self) -> str:
        nak = ", and was sent a NAK" if self.nak_sent else ""
        return (
            f"{self.node.switch}, edge to {self.name}: expects PSN {self.expects:#08x}{nak}; "
            f"it has acknowledged {self.acked:#08x}"
        )


@dataclass(frozen=True)
class ResendTimer:
    """Mode III: an edge's timer, in units of 10 us."""

    time: int
    """Since what is outstanding was sent, or, after an RNR NAK, until it is sent again."""
    counts_down: bool = False
    """An RNR NAK's time has not passed, or the tick that sends again is still to come."""

    @property
    def given_up(self) -> bool:
        """Nothing is sent again until the edge acknowledges something."""
        return self.time >= GIVEN_UP

    @property
    def runs(self) -> bool:
        """Ticks will make something of it."""
        return self.counts_down or 0 < self.time < GIVEN_UP


def resend_timer(switches: Mapping[str, Model], spec: CollectiveSpec, placed: PlacedEdge) -> ResendTimer:
    """The timer of an edge as its switch holds it."""
    word = switches[placed.switch].register("timers", placed.pipe * spec.bank_edges + placed.edge.edge_id)
    return ResendTimer(word & (1 << 27) - 1, bool(word >> 31 & 1))


class SwitchState:
    """The nodes of one channel."""

    def __init__(self, simulation: Running, group: RunningGroup, channel: Channel) -> None:
        self._spec = simulation.spec
        self._switches = simulation.network.switches
        self._tree = group.placed.tree
        self._channel = channel

    def slots(self, psn: int) -> Iterator[SlotState]:
        """The slots of a PSN in all nodes, in the pattern that was announced there."""
        for key, context in self._channel.contexts.items():
            pattern = self._pattern(key, context, psn)
            if context.has_up(pattern):
                yield self._slot(key, context, pattern, psn, down=False)
            if self._spec.terminates and context.has_down(pattern):
                yield self._slot(key, context, pattern, psn, down=True)

    def edges(self, key: NodeKey) -> Iterator[EdgeState]:
        """How far the edges of a node are."""
        spec, context = self._spec, self._channel.contexts[key]
        switch = self._switches[key.switch]
        numbers = 33 + (NUMBERS_BITS if spec.numbers is None else 0)
        for index, edge in enumerate(context.edges):
            word = switch.register("receive", context.pipe * spec.bank_edges + edge.edge_id)
            at = context.pipe * spec.bank_contexts + context.context
            acked = switch.register(f"edge_{index}.acked", at)
            fresh = word >> 25 & 0xFF == context.epoch
            expects = word & _MASK if fresh else context.first_psn
            missing = word >> numbers + 24 if fresh else 0
            if missing:
                expects = (expects - missing.bit_length()) & _MASK
            known = acked >> 24 == context.epoch
            yield EdgeState(
                key,
                self._name(key, index),
                expects,
                bool(fresh and word >> 24 & 1),
                acked & _MASK if known else (context.first_psn - 1) & _MASK,
            )

    def explained(self, slot: SlotState, slots: Sequence[SlotState]) -> bool:
        """Whether all that ``slot`` misses is missing at those it would get it from, too."""
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

    def _slot(self, key: NodeKey, context: Group, pattern: Pattern, psn: int, *, down: bool) -> SlotState:
        spec, switch = self._spec, self._switches[key.switch]
        base = context.base_down if down and context.base_down is not None else context.base
        index = context.pipe * spec.bank_slots + base + (psn & (context.slots - 1))
        word = switch.register("slots", index)
        epoch, held, opcode, bitmap = word >> 64 & 0xFF, word >> 40 & _MASK, word >> 32 & 0x1F, word & 0xFFFFFFFF
        fresh = epoch == context.epoch
        if not fresh or held != psn:
            bitmap = 0
        sources = self._sources(self._tree.node(key), pattern, down=down)
        start = None
        if spec.terminates:
            pipe = "broadcast" if down else "aggregation"
            begins = switch.register(f"{pipe}.psn_start", context.pipe * spec.bank_contexts + context.context)
            start = begins & _MASK if begins >> 24 == context.epoch else context.first_psn
        return SlotState(
            key,
            down,
            pattern,
            psn,
            held if fresh else None,
            opcode,
            tuple(self._name(key, i) for i in sources if bitmap >> i & 1),
            tuple(self._name(key, i) for i in sources if not bitmap >> i & 1),
            start,
        )

    @staticmethod
    def _sources(node: TreeNode, pattern: Pattern, *, down: bool) -> list[int]:
        toward = node.parent if pattern.collective is Collective.ALLREDUCE else node.toward(pattern.root)
        return [i for i in range(len(node.edges)) if (i == toward) == down]

    def _pattern(self, key: NodeKey, context: Group, psn: int) -> Pattern:
        """What was announced for a PSN; the channel's first pattern where that is not known."""
        at = context.pipe * self._spec.bank_contexts + context.context
        for which in ("newest", "previous", "oldest"):
            word = self._switches[key.switch].register(f"{which}.announcement", at)
            if word >> 56 == context.epoch and (psn - (word >> 32)) & _MASK < 1 << 23:
                code = (word >> 29 & 7) << 5 | word >> 19 & 31
                for pattern in context.patterns:
                    if code in pattern.codes:
                        return pattern
        return context.patterns[0]

    @staticmethod
    def _same(context: Group, pattern: Pattern) -> Pattern:
        return next(p for p in context.patterns if (p.collective, p.root) == (pattern.collective, pattern.root))

    def _name(self, key: NodeKey, index: int) -> str:
        edge = self._tree.node(key).edges[index]
        if edge.far is None:
            return f"rank {min(edge.ranks)}"
        return edge.far.switch if edge.far.switch != key.switch else f"pipe {edge.far.pipe}"


def _opcode_name(opcode: int) -> str:
    try:
        return Opcode(opcode).name
    except ValueError:
        return f"opcode {opcode:#x}"
