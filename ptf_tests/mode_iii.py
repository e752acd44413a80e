"""Nodes of IncTrees in EPIC Modes III and I (sections 4.4 and 4.2), as seen by the endpoints at the other ends of their
edges.

A flow is one collective at one node: packets from its sources become results for its outputs. What a test expects is
derived here from the flow's configuration, RoCE's rules and NumPy; only outputs, counters and registers are read from
the switch. Every output passes the independent checks of p4gen.rocev2.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from elements import Numbers, Values
from inc import IncTest

from p4gen.groups.config import configure
from p4gen.groups.group import GroupContext, Pattern
from p4gen.host.collectives.control import Control
from p4gen.papers.epic.codes import OwnOpcode
from p4gen.papers.epic.conformance.needs import missing, reason
from p4gen.papers.epic.control import FACET
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.tofino import static
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode, RnrNak, ends_message
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.ticks import EVERY_US

Seen = Mapping[int, Sequence[str]]
"""By edge, the packets that it received, in order, as ``describe`` formats them; edges without packets may be left
out."""

TICK, CURSOR = OwnOpcode.TICK, OwnOpcode.CURSOR
TICK_UNITS = EVERY_US // 10
"""Duration that a tick stands for, in units of 10 us."""
RNR_TIMER = 1
AT_A_TIME = 16
"""Number of PSNs that a source sends in a row: few enough for the queues of any switch."""
BURST = 64
"""The most packets that one NAK or tick triggers."""


@dataclass(frozen=True)
class Role:
    """A collective at a node whose last edge leads to its parent, if it has one; rank 0 is at edge 0."""

    collective: Collective
    parent: bool = True
    toward: str = ""
    """The direction of the collective's root: the ``parent``, a ``child``, or None at the IncTree's root."""
    down: bool = False
    """Whether the flow is the one from the root, not the one to it."""


ROOT = Role(Collective.ALLREDUCE, parent=False)
UP = Role(Collective.ALLREDUCE, toward="parent")
DOWN = Role(Collective.ALLREDUCE, toward="parent", down=True)
REDUCE_TO_CHILD = Role(Collective.REDUCE, toward="child")
REDUCE_TO_PARENT = Role(Collective.REDUCE, toward="parent")
BROADCAST_FROM_CHILD = Role(Collective.BROADCAST, toward="child", down=True)
BROADCAST_FROM_PARENT = Role(Collective.BROADCAST, toward="parent", down=True)
ROLES = (ROOT, UP, DOWN, REDUCE_TO_CHILD, REDUCE_TO_PARENT, BROADCAST_FROM_CHILD, BROADCAST_FROM_PARENT)


@dataclass(frozen=True)
class Flow:
    """A pattern at a node: packets from ``sources`` make results for ``outputs``, both indices of edges."""

    group: GroupContext
    collective: Collective
    root: int
    sources: tuple[int, ...]
    outputs: tuple[int, ...]


class ModeIIITest(IncTest):
    """A test with nodes of IncTrees. A flow's edges are on consecutive ports, the parent's last."""

    modes: ClassVar[tuple[Mode, ...]] = (Mode.I, Mode.III)
    edges: ClassVar[int] = 4
    wraps: ClassVar[bool] = False
    """Whether to begin so near to the end of the number space that PSNs wrap within the range."""
    reliability: ClassVar[tuple[Reliability, ...]] = (Reliability.GBN,)
    """What the scenario is about; with another reliability the program does something else."""

    def setUp(self) -> None:
        super().setUp()
        if self.wraps:
            self.first_psn = (1 << 24) - 3

    def misfit(self, spec: EpicSpec) -> str | None:
        """Includes what programs of static groups lack, which says more than how this program is set."""
        lacked = missing(spec, f"{type(self).__module__}.{type(self).__name__}") if self.is_about(spec.mode) else None
        return lacked or super().misfit(spec)

    def is_about(self, mode: Mode) -> bool:
        """Mode I takes packets in order only."""
        return super().is_about(mode) and (not mode.stores or Reliability.GBN in self.reliability)

    def serve(self, *groups: GroupContext) -> None:
        """Configure the switch for groups. Skips the test when a program whose groups serve one pattern each cannot."""
        if static(self.spec) or self.spec.mode.stores:
            for problem in (problem for group in groups for problem in FACET.problems(self.spec, group)):
                self.skipTest(problem)
        super().serve(*groups)

    def reason(self, other: str) -> str:
        """The program's own reason to drop what programs that remember announcements drop for ``other``."""
        return reason(self.spec, other)

    def refused_at(self, port: int, frame: RocePacket | bytes, reason: str) -> None:
        """``reason`` is that of a program that remembers announcements."""
        super().refused_at(port, frame, self.reason(reason))

    def renew(self, *groups: GroupContext) -> None:
        """Give groups that are served another epoch and another first PSN."""
        entries = configure(self.spec, groups).entries
        self.control.modify(*(entry for entry in entries if entry.table in self.keeps_epochs))

    @property
    def keeps_epochs(self) -> tuple[str, ...]:
        """The tables whose entries say a group's epoch and first PSN."""
        if static(self.spec):
            return ("flows",)
        return ("contexts", "endpoints", "edges") if self.spec.own_psns else ("contexts",)

    def unfit(self) -> str | None:
        if self.spec.loss_recovery not in self.reliability:
            return (
                f"it is about reliability {' and '.join(self.reliability)}; the program's is {self.spec.loss_recovery}"
            )
        if self.spec.fan_in < self.edges:
            return f"the program's fan-in is {self.spec.fan_in}, which {self.edges} edges exceed"
        return None

    @property
    def agent_port(self) -> int:
        """The port on which ticks arrive."""
        return self.spec.architecture.cpu_port

    @property
    def window(self) -> int:
        """N: how many PSNs a pipe has slots for."""
        return self.spec.slots_per_group

    def psn(self, offset: int) -> int:
        """A PSN by how far it is behind the first one."""
        return serial.add(self.first_psn, offset)

    # --- nodes ---

    def node(
        self,
        *patterns: Pattern,
        edges: int | None = None,
        parent: bool = True,
        context: int = 0,
        first_port: int = 0,
        pipeline: int = 0,
        switch: int | None = None,
        channel: int = 0,
    ) -> GroupContext:
        """A node, not yet configured; with a ``parent``, a switch is at the other end of its last edge."""
        group = self.make_group(
            self.edges if edges is None else edges,
            context=context,
            first_port=first_port,
            patterns=patterns,
            pipeline=pipeline,
            switch=switch,
            channel=channel,
        )
        if parent:
            *children, last = group.edges
            group = replace(group, edges=(*children, replace(last, first_hop=False, memory=None)))
        return group

    def make_flow(
        self, role: Role, *, edges: int | None = None, context: int = 0, first_port: int = 0, channel: int = 0
    ) -> Flow:
        """A node that serves one pattern, not yet configured."""
        count = self.edges if edges is None else edges
        pattern = Pattern(role.collective, toward={"": None, "child": 0, "parent": count - 1}[role.toward])
        group = self.node(
            pattern, edges=count, parent=role.parent, context=context, first_port=first_port, channel=channel
        )
        return flow_at(group, role.collective, down=role.down)

    def served(
        self, role: Role, *, edges: int | None = None, context: int = 0, first_port: int = 0, channel: int = 0
    ) -> Flow:
        """``make_flow``, configured."""
        flow = self.make_flow(role, edges=edges, context=context, first_port=first_port, channel=channel)
        self.serve(flow.group)
        return flow

    # --- what the other ends send ---

    def packet_of(
        self,
        group: GroupContext,
        edge: int,
        psn: int,
        values: Values,
        opcode: int = Opcode.SEND_ONLY,
        asks: bool | None = None,
    ) -> RocePacket:
        """A data packet; it asks for an ACK if it is the last of its message, unless ``asks`` says otherwise."""
        asks = ends_message(opcode) if asks is None else asks
        return self.from_rank(group, edge, BTH(opcode, 0, psn, ack_request=asks), payload=self.encode(values))

    def push(
        self,
        flow: Flow,
        edges: Iterable[int],
        psn: int,
        values: Mapping[int, Values],
        opcode: int = Opcode.SEND_ONLY,
        asks: bool | None = None,
    ) -> None:
        """Send the data of ``edges``, in this order."""
        for edge in edges:
            self.send_from(flow.group, edge, self.packet_of(flow.group, edge, psn, values[edge], opcode, asks))

    def answer(self, group: GroupContext, edge: int, psn: int, syndrome: int, msn: int = 0) -> None:
        """The other end of ``edge`` answers a result."""
        self.send_from(
            group, edge, self.from_rank(group, edge, BTH(Opcode.ACKNOWLEDGE, 0, psn), aeth=AETH(syndrome, msn))
        )

    def ack(self, group: GroupContext, edges: Iterable[int], psn: int) -> None:
        """The other ends of ``edges`` acknowledge everything up to ``psn``."""
        for edge in edges:
            self.answer(group, edge, psn, Ack().syndrome)

    def nak(self, group: GroupContext, edge: int, psn: int) -> None:
        """The other end of ``edge`` reports that ``psn`` is missing."""
        self.answer(group, edge, psn, Nak().syndrome)

    def tick_of(self, group: GroupContext, edge: int, opcode: int = TICK, units: int = TICK_UNITS) -> RocePacket:
        """A tick, as the agent sends it for an edge. It stands for ``units`` times 10 us."""
        return self.from_rank(group, edge, BTH(opcode, 0, 0), aeth=AETH(group.pipeline, msn=units))

    def tick(self, group: GroupContext, *edges: int, units: int = TICK_UNITS) -> None:
        """Send a tick for each edge."""
        for edge in edges:
            self.send(self.agent_port, self.tick_of(group, edge, units=units).to_bytes())

    def immediate(self, flow: Flow, packets: int, numbers: Numbers | None = None) -> int:
        """The immediate that announces ``packets`` packets of the flow's collective."""
        numbers = numbers or self.numbers
        return Control(flow.collective, packets, flow.root, numbers.op, numbers.dtype, self.spec.roots).encode()

    # --- complete exchanges without loss ---

    def begin(self, flow: Flow, packets: int = 1 << 12, *, psn: int | None = None, acked: bool = True) -> int:
        """All sources announce ``packets`` packets, and all outputs acknowledge that. Returns the next PSN."""
        psn = flow.group.first_psn if psn is None else psn
        value = self.immediate(flow, packets)
        self.announce(flow.group, flow.sources, psn, value)
        self.check(flow.group, to(flow.sources, ack_of(psn)), to(flow.outputs, control_of(psn, value)))
        if acked:
            self.ack(flow.group, flow.outputs, psn)
            self.expect_nothing()
        return serial.add(psn, 1)

    def begun(self, role: Role, packets: int = 1 << 12, *, acked: bool = True, edges: int | None = None) -> Flow:
        """A configured flow whose sources have announced ``packets`` packets."""
        flow = self.served(role, edges=edges)
        self.begin(flow, packets, acked=acked)
        return flow

    def round(self, flow: Flow, psn: int, *, acked: bool = True) -> str:
        """All sources send a packet; all outputs receive the result and acknowledge it. Returns the result as
        ``describe`` formats it."""
        return self.burst(flow, [psn], acked=acked)[0]

    def rounds(self, flow: Flow, offset: int, count: int, *, acked: bool = True) -> list[str]:
        """``round`` for ``count`` PSNs, from ``offset`` after the first PSN on, a few at a time."""
        numbers, step = [self.psn(offset + index) for index in range(count)], min(self.window, AT_A_TIME)
        parts = [numbers[at : at + step] for at in range(0, count, step)]
        return [result for part in parts for result in self.burst(flow, part, acked=acked)]

    def burst(self, flow: Flow, numbers: Sequence[int], *, acked: bool) -> list[str]:
        """All sources send packets of these PSNs, one source after the other."""
        rounds = {psn: self.inputs(flow) for psn in numbers}
        for edge in self.random.sample(flow.sources, len(flow.sources)):
            for psn, values in rounds.items():
                self.push(flow, [edge], psn, values)
        results = [self.result(psn, values) for psn, values in rounds.items()]
        self.check(flow.group, to(flow.sources, *map(ack_of, numbers)), to(flow.outputs, *results))
        if acked:
            self.ack(flow.group, flow.outputs, numbers[-1])
            self.expect_nothing()
        return results

    # --- what the other ends receive ---

    def inputs(self, flow: Flow) -> dict[int, Values]:
        """Data for each source; no partial sum of them leaves the range of an element."""
        return dict(zip(flow.sources, self.random_values(len(flow.sources)), strict=True))

    def result(
        self, psn: int, values: Mapping[int, Values], opcode: int = Opcode.SEND_ONLY, asks: bool | None = None
    ) -> str:
        """A result, as ``describe`` formats it. One that is the switch's own message asks for an ACK at its end."""
        asks = ends_message(opcode) if asks is None or self.spec.mode.stores else asks
        return data_of(psn, self.encode(self.reduced(list(values.values()))), opcode, asks)

    def resent(self, outstanding: Sequence[str]) -> list[str]:
        """The packets that a NAK of the first of ``outstanding`` results triggers: all of them with Go-Back-N,
        otherwise only the first."""
        return [again(result) for result in outstanding[: BURST if self.spec.loss_recovery.in_order else 1]]

    def check(self, group: GroupContext, answers: Seen | None = None, data: Seen | None = None) -> None:
        """Check that the other ends of a node's edges have received exactly these answers and data since the last
        check."""
        self.check_all((group, answers or {}, data or {}))

    def check_all(self, *wanted: tuple[GroupContext, Seen, Seen]) -> None:
        """``check`` for several nodes that share ports. The order between answers, CNPs and data is not checked."""
        received = self.received_by(*(group for group, _, _ in wanted))
        for (group, answers, data), results in zip(wanted, received, strict=True):
            for edge, packets in enumerate(results.of_rank):
                at = f"context {group.context}, edge {edge}"
                got = sorted((describe(packet) for packet in packets if is_answer(packet)), key=CNP.__eq__)
                self.equal(f"{at}: answers", got, sorted(answers.get(edge, ()), key=CNP.__eq__))
                got = [describe(packet) for packet in packets if not is_answer(packet)]
                self.equal(f"{at}: data", got, list(data.get(edge, ())))


def flow_at(group: GroupContext, collective: Collective, root: int = 0, *, down: bool = False) -> Flow:
    """The flow of a pattern at a node, to the pattern's root or from it (``down``)."""
    (pattern,) = (p for p in group.patterns if (p.collective, p.root) == (collective, root))
    everything = tuple(range(len(group.edges)))
    if pattern.toward is None:
        return Flow(group, collective, root, everything, everything)
    away = tuple(index for index in everything if index != pattern.toward)
    sources, outputs = ((pattern.toward,), away) if down else (away, (pattern.toward,))
    return Flow(group, collective, root, sources, outputs)


def to(edges: Iterable[int], *packets: str) -> dict[int, list[str]]:
    """The same packets for each of the edges."""
    return {edge: list(packets) for edge in edges}


# --- packets as text, for messages of failures ---


def ack_of(psn: int) -> str:
    """An ACK, without a limit of credits (FACTS of RoCE: SEND throughput depends on it)."""
    return f"ACK {psn}"


def nak_of(psn: int) -> str:
    """A NAK of a sequence error: ``psn`` is expected."""
    return f"NAK {psn}"


def rnr_of(psn: int) -> str:
    """Receiver not ready for ``psn``."""
    return f"RNR NAK {psn} timer {RNR_TIMER}"


def invalid_of(psn: int) -> str:
    """NAK of an invalid request."""
    return f"NAK invalid request {psn}"


def selective_of(psn: int, count: int) -> str:
    """A selective NAK: ``count`` packets from ``psn`` on are missing."""
    return f"selective NAK {psn} count {count}"


CNP = "CNP"


def control_of(psn: int, value: int) -> str:
    """A control message."""
    return f"control {psn} {value:#010x} AckReq"


def data_of(psn: int, payload: bytes, opcode: int = Opcode.SEND_ONLY, asks: bool = True) -> str:
    """A data packet: its payload by its first elements and a checksum of all."""
    words = " ".join(payload[at : at + 4].hex() for at in (0, 4))
    tail = f"{zlib.crc32(payload):08x}"
    return f"{Opcode(opcode).name} {psn} {len(payload)} B {words}.. {tail}{' AckReq' if asks else ''}"


def again(result: str) -> str:
    """A retransmitted result: it asks for an ACK, because the previous ACK may have been lost."""
    return result if result.endswith(" AckReq") else f"{result} AckReq"


def is_answer(packet: RocePacket) -> bool:
    """An ACK, a NAK or a CNP."""
    return packet.bth.opcode in (Opcode.ACKNOWLEDGE, Opcode.CNP)


def describe(packet: RocePacket) -> str:
    """A packet as text. It contains every field that a receiver evaluates, unless it is checked elsewhere."""
    bth, psn = packet.bth, packet.bth.psn
    if bth.opcode == Opcode.CNP:
        sound = psn == 0 and bth.becn and not bth.reserved6 and packet.payload == bytes(16) and not bth.ack_request
        return CNP if sound else f"CNP with PSN {psn}, BECN {bth.becn}, {packet.payload.hex()}"
    if packet.aeth is not None:
        syndrome, asked = packet.aeth.syndrome, " AckReq" if bth.ack_request else ""
        known = {
            Ack().syndrome: ack_of(psn),
            Nak().syndrome: nak_of(psn),
            RnrNak(RNR_TIMER).syndrome: rnr_of(psn),
            Nak(NakCode.INVALID_REQUEST).syndrome: invalid_of(psn),
            Nak(NakCode.SELECTIVE).syndrome: selective_of(psn, packet.aeth.msn),
        }
        return known.get(syndrome, f"answer {psn} syndrome {syndrome:#04x}") + asked + packet.payload.hex()
    if packet.immdt is not None:
        asked = " AckReq" if bth.ack_request else ""
        return f"control {psn} {packet.immdt.value:#010x}{asked}{packet.payload.hex()}"
    return data_of(psn, packet.payload, bth.opcode, bth.ack_request)
