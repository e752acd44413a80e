"""What ranks and other switches send in one channel without faults: announcements, data, and answers.

One invocation follows the other. Each rank sends what EPIC's protocol prescribes, estimated without reading the
switch's state; if the estimate is wrong (entries were removed, packets were corrupted), the next epoch resets it.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from p4gen.difftest.layout import Line, Pattern, Served
from p4gen.host.collectives.control import Control
from p4gen.papers.epic.codes import SYNDROMES
from p4gen.papers.epic.spec import EpicSpec
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.message import Collective, Lease

SENDS = (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)
_ENDS = (Opcode.SEND_LAST, Opcode.SEND_ONLY)
_LEASED = 0.6
"""The share of calls that acquire or release a block."""
ACK, NAK, SELECTIVE_NAK = SYNDROMES["ack"], SYNDROMES["nak"], SYNDROMES["selective"]


@dataclass(frozen=True)
class Said:
    """A packet from the far end of a line, with its number in the group. An ACKNOWLEDGE answers with ``syndrome``; a
    control message has its immediate ``value``."""

    line: Line
    opcode: int
    psn: int
    value: int | None = None
    syndrome: int = 0
    msn: int = 0
    kind: str = "contribution"


@dataclass
class _Flow:
    """From some lines to others: next PSN of each source, newest acknowledged of each output, counted from the start
    of the invocation. ``paced_by`` is the flow whose results come back in this one."""

    sources: dict[Line, int]
    outputs: dict[Line, int]
    paced_by: _Flow | None = None

    @property
    def complete(self) -> int:
        return min(self.sources.values(), default=0)

    @property
    def acked(self) -> int:
        return min(self.outputs.values(), default=-1)


@dataclass
class Stream:
    """The ends of a channel. PSNs of an invocation are ``start`` (its control message) and on."""

    spec: EpicSpec
    served: Served
    random: random.Random = field(repr=False)
    start: int = 0
    packets: int = 0
    value: int = 0
    _flows: list[_Flow] = field(default_factory=list)
    _opcodes: list[Opcode] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart(self.served)

    def restart(self, served: Served) -> None:
        """All ranks begin again, in a new epoch."""
        self.served = served
        self.start = served.contexts[0].first_psn
        self._begin()

    def next(self) -> Said:
        """The next packet: mostly data, and answers to its results."""
        makers: list[tuple[int, Callable[[], Said | None]]] = [(6, self._contribution), (4, self._answer)]
        first = self.random.choices([0, 1], [weight for weight, _ in makers])[0]
        for index in (first, 1 - first):
            said = makers[index][1]()
            if said is not None:
                return said
        self.start = serial.add(self.start, self.packets + 1)
        self._begin()
        return self._contribution() or self.repetition()

    def repetition(self) -> Said:
        """A packet that was sent, or could have been."""
        flow = self.random.choice([f for f in self._flows if f.sources])
        line = self.random.choice(list(flow.sources))
        ahead = self.random.choice((0, 0, 1, 2)) - self.random.randrange(self.spec.slots_per_group + 2)
        at = max(min(flow.sources[line] + ahead, self.packets), 0)
        return self._data(line, at, "repetition")

    def gap(self) -> Said:
        """A packet that is early on its line."""
        flow = self.random.choice([f for f in self._flows if f.sources])
        line = self.random.choice(list(flow.sources))
        at = flow.sources[line] + 1 + int(self.random.expovariate(0.7))
        return self._data(line, at, "gap")

    def beyond(self) -> Said:
        """The first PSN that the flow may have no slot for."""
        flow = self.random.choice([f for f in self._flows if f.sources])
        line = max(flow.sources, key=lambda line: flow.sources[line])
        return self._data(line, flow.sources[line], "beyond")

    def unrequested(self) -> Said:
        """An answer that may be wrong: of any syndrome, to any PSN near."""
        line = self.random.choice(self.served.lines)
        psn = serial.add(self.start, self.random.randrange(-3, self.packets + 3))
        syndrome = self.random.choice((ACK, NAK, NAK, 0x61, 0x20, 0x21, 0x3F, 0x00, 0x80, SELECTIVE_NAK))
        msn = self.random.choice((0, 1, 2, 70, self.random.getrandbits(24)))
        return Said(line, Opcode.ACKNOWLEDGE, psn, syndrome=syndrome, msn=msn, kind="unrequested")

    # --- invocations ---

    def _begin(self) -> None:
        rng = self.random
        pattern = rng.choice(self.served.patterns)
        collective = pattern.collective
        self.packets = rng.randrange(1, 3 * min(self.spec.slots_per_group, 16))
        if collective is Collective.ALLREDUCE and rng.random() < 0.25:
            collective, self.packets = Collective.BARRIER, 0
        root, numbers = pattern.root, rng.choice(self.spec.choices)
        if self.spec.locks and rng.random() < _LEASED:
            root = rng.choice(list(Lease))
            collective, self.packets = Collective.BARRIER, int(root is Lease.ACQUIRE)
            pattern = next(each for each in self.served.patterns if each.collective is Collective.ALLREDUCE)
        self.value = Control(collective, self.packets, root, numbers.op, numbers.dtype).encode()
        if self.spec.mode.stores:
            self._opcodes = self._whole_messages()
        else:
            self._opcodes = [rng.choice(SENDS) for _ in range(self.packets + 1)]
        self._flows = self._flows_of(pattern)

    def _whole_messages(self) -> list[Opcode]:
        """The opcodes of messages that fit a buffer; the first packet is the announcement."""
        found = [Opcode.SEND_ONLY]
        while len(found) <= self.packets:
            size = self.random.randrange(1, min(self.spec.message, self.packets + 1 - len(found)) + 1)
            middle = [Opcode.SEND_MIDDLE] * (size - 2)
            found += [Opcode.SEND_ONLY] if size == 1 else [Opcode.SEND_FIRST, *middle, Opcode.SEND_LAST]
        return found

    def _sent(self, flow: _Flow) -> int:
        """How many results of a flow have left the switch."""
        count = flow.complete
        while self.spec.mode.stores and count and self._opcodes[count - 1] not in _ENDS:
            count -= 1
        return count

    def _flows_of(self, pattern: Pattern) -> list[_Flow]:
        toward = [pattern.toward] if pattern.toward is not None else []
        others = [line for line in self.served.lines if line not in toward]

        def flow(sources: list[Line], outputs: list[Line], paced_by: _Flow | None = None) -> _Flow:
            return _Flow(dict.fromkeys(sources, 0), dict.fromkeys(outputs, -1), paced_by)

        match pattern.collective:
            case Collective.REDUCE:
                return [flow(others or toward, toward)]
            case Collective.BROADCAST:
                return [flow(toward or others, others)]
            case _ if toward:
                up = flow(others or toward, toward)
                return [up, flow(toward, others, up)]
        return [flow(others, others)]

    # --- packets ---

    def _contribution(self) -> Said | None:
        ready = [(flow, line) for flow in self._flows for line in flow.sources if self._may_send(flow, line)]
        if not ready:
            return None
        # Some lag: ranks far behind are chosen less often than ranks a little behind.
        flow, line = self.random.choice(ready)
        at = flow.sources[line]
        flow.sources[line] += 1
        return self._data(line, at, "announcement" if at == 0 else "contribution")

    def _may_send(self, flow: _Flow, line: Line) -> bool:
        at = flow.sources[line]
        slots = self.spec.slots_per_group
        if at > self.packets or (flow.paced_by is not None and at >= self._sent(flow.paced_by)):
            return False
        if self.spec.mode.augmented:
            message = self.spec.mode.stores and self._opcodes[at] == Opcode.SEND_FIRST
            return at + (self.spec.message - 1 if message else 0) <= flow.acked + slots
        return at < flow.complete + slots // 2

    def _data(self, line: Line, at: int, kind: str) -> Said:
        psn = serial.add(self.start, at)
        if at == 0:
            # Sometimes one rank announces another number of packets than the others.
            other = 1 << self.random.randrange(4) if self.random.random() < 0.03 else 0
            return Said(line, Opcode.SEND_ONLY_IMM, psn, self.value ^ other, kind=kind)
        opcode = self._opcodes[at % len(self._opcodes)]
        if self.random.random() < 0.01:
            opcode = self.random.choice(SENDS)
        return Said(line, opcode, psn, kind=kind)

    def _answer(self) -> Said | None:
        ready = [
            (flow, line) for flow in self._flows for line, acked in flow.outputs.items() if acked < self._sent(flow) - 1
        ]
        if not ready:
            return None
        flow, line = self.random.choice(ready)
        sent = self._sent(flow)
        at = self.random.randrange(flow.outputs[line] + 1, sent)
        psn = serial.add(self.start, at)
        if self.random.random() < 0.12:
            flow.outputs[line] = at - 1
            return Said(line, Opcode.ACKNOWLEDGE, psn, syndrome=NAK, kind="NAK")
        if self.spec.mode.augmented and self.random.random() < 0.05:
            count = self.random.randrange(1, sent - at + 1)
            return Said(line, Opcode.ACKNOWLEDGE, psn, syndrome=SELECTIVE_NAK, msn=count, kind="NAK")
        flow.outputs[line] = at
        return Said(line, Opcode.ACKNOWLEDGE, psn, syndrome=ACK, kind="acknowledgement")
