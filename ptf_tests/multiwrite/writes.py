"""A switch whose edges lead to destinations or to other switches, its contexts, and what they send and get.

Everything that a scenario expects is derived from the packets that it sent: each frame that leaves is compared byte for
byte with one that is built here, with an ICRC of p4gen.rocev2's own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from p4gen.groups.group import Endpoint
from p4gen.papers.multiwrite.control import Window, WriteContext, WriteEdge, configuration
from p4gen.papers.multiwrite.headers import VERSION, mweth
from p4gen.papers.multiwrite.spec import MultiwriteSpec, Repair
from p4gen.ptf.scenario import Output, SwitchTest, composed
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, ImmDt
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import ticks

ACK = Ack().syndrome
NAK = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
INVALID = Nak(NakCode.INVALID_REQUEST).syndrome
KEY = 0x5EED0001
SLOT_SHIFT = 12
RING = 4
HOPS = 7
STATE = ("psn_start", "receive", "edge_1.next", "edge_2.next", "edge_1.acked", "edge_2.acked", "edge_2.sources")


@dataclass(frozen=True)
class Write:
    """A write as the test sent it."""

    context: WriteContext
    psn: int
    bitmap: int
    offset: int
    data: bytes
    fence: bool
    packet: RocePacket


class WriteTest(SwitchTest):
    """A star of destinations around a switch: rank i is behind edge i + 1, whose port is counted from the last one."""

    spec: MultiwriteSpec
    kind = MultiwriteSpec
    least_edges = 4
    by: ClassVar[Repair | None] = None
    """Whose repair the scenario is about; None: it is the same with both."""

    def misfit(self, spec: MultiwriteSpec) -> str | None:
        """Why this scenario does not apply to a program; None if it does."""
        self.spec = spec
        if spec.edges < self.least_edges:
            return f"the program has {spec.edges} edges"
        if self.by not in (None, spec.repair):
            return f"it is about repair by {self.by}, the program's is {spec.repair}"
        return self.unfit()

    def setUp(self) -> None:
        super().setUp()
        self.ports = {edge: self.spec.edges - edge for edge in range(1, self.spec.edges + 1)}
        self.first_psn = self.random.randrange(1 << 24)
        self.drop_names = {
            (f"Inc{drop.module.gress.capitalize()}.drops", drop.index): f"{drop.module.name}.{drop.drop.reason}"
            for drop in composed(self.spec).drops
        }

    # --- contexts ---

    def star(
        self,
        source: int = 0,
        *,
        number: int = 0,
        epoch: int = 1,
        behind: Mapping[int, int] | None = None,
        first_psn: int | None = None,
        first_hop: bool = True,
        at: int = 0x0A000001,
    ) -> WriteContext:
        """The context of rank ``source``, not yet configured. ``behind`` has the ranks behind edges that lead to
        switches, as bitmaps."""
        subtrees, ip = behind or {}, self.address(at)
        edges = []
        for edge in range(1, self.spec.edges + 1):
            toward = edge == source + 1
            remote = Endpoint(0x020000010000 | number << 8 | edge, ip + 0x100 + edge, 0xFED000 + 64 * number + edge)
            edges.append(
                WriteEdge(
                    edge,
                    local=Endpoint(0x020000000000 | at & 0xFFFF, ip, 0x100 + 64 * number + edge),
                    remote=remote,
                    reach=0 if toward else subtrees.get(edge, 1 << (edge - 1)),
                    window=None if toward or edge in subtrees else self.window(number, edge),
                    udp_src_port=0xC000 + 64 * number + edge,
                )
            )
        return WriteContext(
            number,
            source,
            tuple(edges),
            source + 1,
            KEY + number,
            window_bytes=1 << 20,
            epoch=epoch,
            first_psn=self.first_psn if first_psn is None else first_psn,
            first_hop=first_hop,
            group=7 + number,
            results=self.window(number, source + 1) if self.spec.combine and first_hop else None,
        )

    def at_both_ends(self) -> list[WriteContext]:
        """A context of the first rank, and, if the program has more than one, another one of the last rank. The switch
        serves both."""
        contexts = [self.star(0, first_hop=False)]
        if self.spec.contexts > 1:
            last, first_psn = self.spec.contexts - 1, self.first_psn ^ 0x800000
            source = self.spec.edges - 1
            contexts.append(
                self.star(source, number=last, at=0x0A010001, first_psn=first_psn, epoch=7, first_hop=False)
            )
        self.serve(*contexts)
        return contexts

    def window(self, number: int, edge: int) -> Window:
        """The window of the destination behind an edge."""
        base = 0x7F00_0000_0000 + (number << 36) + (edge << 28) + 0x40
        return Window(base, 0xD0000000 | number << 8 | edge, SLOT_SHIFT, RING)

    def serve(self, *contexts: WriteContext) -> None:
        """Configure the switch for contexts."""
        self.install(configuration(self.spec, contexts, self.ports))

    def renew(self, context: WriteContext) -> None:
        """Change the state of a context that is served already."""
        entries = configuration(self.spec, [context], self.ports).entries
        self.control.modify(*(entry for entry in entries if entry.table == "contexts"))

    def served(self, source: int = 0, **fields: Any) -> WriteContext:
        """A star that the switch serves."""
        context = self.star(source, **fields)
        self.serve(context)
        return context

    def others(self, context: WriteContext) -> list[int]:
        """The numbers of the edges that do not lead to the source."""
        return [edge.edge for edge in context.edges if edge.edge != context.source]

    def bits(self, edges: Iterable[int]) -> int:
        """The ranks behind edges of a star."""
        return sum(1 << (edge - 1) for edge in edges)

    def edges_of(self, context: WriteContext, bitmap: int) -> list[int]:
        """The edges behind which there are destinations of a bitmap."""
        return [edge.edge for edge in context.edges if edge.reach & bitmap]

    # --- what is sent ---

    def write(
        self,
        context: WriteContext,
        psn: int,
        bitmap: int,
        *,
        offset: int | None = None,
        fence: bool = False,
        ecn: int = 0,
        mweth_fields: Mapping[str, int] | None = None,
    ) -> Write:
        """A write of the source with its ``psn``-th packet, from 0, perhaps with other values in its MWETH."""
        number = serial.add(context.first_psn, psn)
        place = 64 * self.random.randrange(64) if offset is None else offset
        data = self.random.randbytes(self.spec.payload)
        opcode = Opcode.WRITE_ONLY if self.spec.wide else Opcode.WRITE_ONLY_IMM
        edge = context.toward
        header, immediate = b"", None
        if self.spec.wide:
            said = {"version": VERSION, "flags": int(fence) << 3, "hop_limit": HOPS, "group_id": context.group}
            said |= {"immediate": 0xFE0CE, "bitmap": bitmap}
            layout = mweth(self.spec.receivers)
            header = layout.word.pack(**(said | dict(mweth_fields or {}))).to_bytes(layout.size)
        else:
            immediate = ImmDt(bitmap)
        solicited, tos = fence and not self.spec.wide, self._dscp() | ecn
        packet = RocePacket(
            self.framed(edge.remote.mac, edge.local.mac, edge.local.ip),
            self.ip(edge.remote.ip, edge.local.ip, tos=tos, ttl=61),
            UDP(edge.udp_src_port),
            BTH(opcode, edge.local.qp, number, solicited=solicited, ack_request=psn % 4 == 3, fecn=self._marked()),
            reth=RETH(place, context.rkey, len(header) + self.spec.payload),
            immdt=immediate,
            payload=header + data,
        )
        return Write(context, psn, bitmap, place, data, fence, packet.sealed())

    def _dscp(self) -> int:
        return self.random.choice((0, 26, 46)) << 2

    def _marked(self) -> bool:
        return self.random.random() < 0.5

    def answer(self, context: WriteContext, edge: int, psn: int, syndrome: int = ACK) -> RocePacket:
        """What the destination behind an edge, or the switch there, says of its ``psn``-th copy, from 0."""
        return self._from(
            context, edge, BTH(Opcode.ACKNOWLEDGE, 0, serial.add(context.first_psn, psn)), AETH(syndrome, 5)
        )

    def tick(self, context: WriteContext, edge: int, units: int = ticks.EVERY_US // 10) -> RocePacket:
        """The agent sends a tick for an edge, which stands for ``units`` times 10 us."""
        packet = self._from(context, edge, BTH(ticks.OPCODE, 0, 0), AETH(0, units))
        self.send(self.spec.architecture.cpu_port, packet.to_bytes())
        return packet

    def notification(self, context: WriteContext, edge: int) -> RocePacket:
        """A congestion notification from there. What its room holds, nobody looks at."""
        return self._from(context, edge, BTH(Opcode.CNP, 0, 0, becn=True), None, self.random.randbytes(16))

    def _from(
        self, context: WriteContext, edge: int, bth: BTH, aeth: AETH | None = None, payload: bytes = b""
    ) -> RocePacket:
        ends = next(each for each in context.edges if each.edge == edge)
        return RocePacket(
            self.framed(ends.remote.mac, ends.local.mac, ends.local.ip),
            self.ip(ends.remote.ip, ends.local.ip, tos=self._dscp(), ttl=60),
            UDP(50000 + edge),
            # What is made of this packet has neither FECN nor BECN, though its class of service.
            replace(bth, dst_qp=ends.local.qp, fecn=self._marked(), becn=True),
            aeth=aeth,
            payload=payload,
        ).sealed()

    def post(self, write: Write) -> None:
        """The source sends a write."""
        self.send(self.ports[write.context.source], write.packet.to_bytes())

    def say(self, context: WriteContext, edge: int, psn: int, syndrome: int = ACK) -> RocePacket:
        """The destination behind an edge answers its ``psn``-th copy."""
        packet = self.answer(context, edge, psn, syndrome)
        self.send(self.ports[edge], packet.to_bytes())
        return packet

    # --- what is expected ---

    def copy(self, write: Write, edge: int, psn: int) -> Output:
        """The copy of a write that leaves by an edge as the ``psn``-th one there, from 0."""
        context, sent = write.context, write.packet
        ends = next(each for each in context.edges if each.edge == edge)
        number = serial.add(context.first_psn, psn)
        bth = replace(sent.bth, dst_qp=ends.remote.qp, psn=number, ack_request=True)
        made = replace(
            sent,
            eth=self.framed(ends.local.mac, ends.remote.mac, ends.local.ip),
            ip=self.translated(sent.ip, ends.local.ip, ends.remote.ip),
            udp=UDP(ends.udp_src_port),
        )
        if ends.window is not None:
            return self._out(edge, self._delivered(write, made, bth, ends.window), sent)
        if self.spec.wide:
            layout = mweth(self.spec.receivers)
            said = layout.word.unpack(int.from_bytes(sent.payload[: layout.size]))
            said |= {"bitmap": said["bitmap"] & ends.reach, "hop_limit": said["hop_limit"] - 1}
            header = layout.word.pack(**said).to_bytes(layout.size)
            return self._out(edge, replace(made, bth=bth, payload=header + write.data), sent)
        return self._out(edge, replace(made, bth=bth, immdt=ImmDt(write.bitmap & ends.reach)), sent)

    def _delivered(self, write: Write, made: RocePacket, bth: BTH, window: Window) -> RocePacket:
        """A plain WRITE to the destination; a fence has immediate data."""
        place = (bth.psn % RING << SLOT_SHIFT) if self.spec.appends else write.offset
        immediate = ImmDt(0xFE0CE if self.spec.wide else write.context.rank) if write.fence else None
        return replace(
            made,
            bth=replace(bth, opcode=Opcode.WRITE_ONLY_IMM if write.fence else Opcode.WRITE_ONLY, solicited=write.fence),
            reth=RETH(window.base + place, window.rkey, self.spec.payload),
            immdt=immediate,
            payload=write.data,
        )

    def again(self, write: Write, edge: int, psn: int, by: RocePacket) -> Output:
        """The copy of a write when the switch sends it again, made of the packet ``by``: a NAK or a tick."""
        ip = replace(by.ip, tos=by.ip.tos & ~3 | write.packet.ip.tos & 3)
        bth = replace(write.packet.bth, fecn=False)
        return self.copy(replace(write, packet=replace(write.packet, ip=ip, bth=bth, vlan=by.vlan)), edge, psn)

    def reply(self, context: WriteContext, to: RocePacket, start: int, syndrome: int = ACK) -> Output:
        """The source's answer, made of the packet ``to``: all before its ``start``-th packet are everywhere; a NAK asks
        for that one."""
        edge = context.toward
        number = serial.add(context.first_psn, start - (syndrome == ACK))
        ip = self.translated(to.ip, edge.local.ip, edge.remote.ip)
        packet = RocePacket(
            self.framed(edge.local.mac, edge.remote.mac, edge.local.ip),
            replace(ip, tos=ip.tos ^ (ip.tos & 3 == 3)),
            UDP(edge.udp_src_port),
            BTH(Opcode.ACKNOWLEDGE, edge.remote.qp, number),
            aeth=AETH(syndrome, start % (1 << 24)),
            vlan=to.vlan,
        )
        return self._out(context.source, packet, to)

    def _out(self, edge: int, packet: RocePacket, of: RocePacket) -> Output:
        icrc = None if self.spec.icrc.right else of.icrc
        return Output(self.ports[edge], packet.sealed(icrc=icrc).to_bytes())

    def posts(self, write: Write, copies: Mapping[int, int]) -> None:
        """The source sends a write, and copies leave, whose numbers are given by edge, and nothing else does; but where
        each hop repairs, the answer that the write asks for."""
        self.post(write)
        answers = self.spec.holds and write.packet.bth.ack_request
        told = [self.reply(write.context, write.packet, write.psn + 1)] if answers else []
        self.expect([self.copy(write, edge, psn) for edge, psn in copies.items()] + told)

    def says(self, context: WriteContext, edge: int, psn: int, start: int | None, **syndromes: int) -> None:
        """A destination answers, and the source hears that all before ``start`` is everywhere; None: it hears
        nothing. Where each hop repairs, it never does."""
        packet = self.say(context, edge, psn, syndromes.get("syndrome", ACK))
        told = (
            [] if start is None or self.spec.holds else [self.reply(context, packet, start, syndromes.get("told", ACK))]
        )
        self.expect(told)

    # --- counters and registers ---

    def drops(self) -> Counter[str]:
        """Packets dropped since the reset by reason, as ``Module.reason``."""
        found: Counter[str] = Counter()
        for counter in ("IncIngress.drops", "IncEgress.drops"):
            for index, packets in self.counts(counter).items():
                found[self.drop_names.get((counter, index), f"{counter} {index}")] += packets
        return found

    def refused(self, port: int, frame: bytes, reason: str, told: Sequence[Output] = ()) -> None:
        """Check that a frame is dropped for a reason, changes no state, and causes no output but what the source is
        told."""
        before, drops = self._state(), self.drops()
        self.send(port, frame)
        self.expect(told)
        self.equal("dropped", self.drops() - drops, Counter({reason: 1}))
        self.equal(f"registers after a frame to be refused as {reason}", self._state(), before)

    def _state(self) -> dict[str, list[int]]:
        return {name: self.control.registers(name) for name in STATE}


class SourceTest(WriteTest):
    """A scenario of programs where the source repairs losses."""

    by = Repair.SOURCE


class HopTest(WriteTest):
    """A scenario of programs where each hop repairs them."""

    by = Repair.HOP
