"""Ranks around a switch that reads and writes their memory, and what they send and get.

Everything that a scenario expects is derived from what its ranks have sent: each frame that leaves is compared byte for
byte with one that is built here, with an ICRC of p4gen.rocev2's own. Packets of a call are counted from 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import blocks
import numpy as np
import numpy.typing as npt

from p4gen.arch.ports import CPU_PORT
from p4gen.groups.group import Endpoint, SwitchConfig
from p4gen.host.collectives.arrays import array_type, folded
from p4gen.papers.scin.codes import NUMBERS, Status
from p4gen.papers.scin.control import PullContext, PullEdge, Role, configuration, roles
from p4gen.papers.scin.headers import ANNOUNCED, BUFFERS, FLAG
from p4gen.papers.scin.spec import ScinSpec
from p4gen.ptf.scenario import Output, SwitchTest, composed
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, ImmDt, ip_header
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.vocabulary import DType, Op, ticks

ACK = Ack().syndrome
NAK = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
INVALID = Nak(NakCode.INVALID_REQUEST).syndrome
REFUSED = Nak(NakCode.REMOTE_ACCESS_ERROR).syndrome
BROKEN = Nak(NakCode.REMOTE_OPERATIONAL_ERROR).syndrome
ANSWERS = (
    Opcode.READ_RESPONSE_FIRST,
    Opcode.READ_RESPONSE_MIDDLE,
    Opcode.READ_RESPONSE_LAST,
    Opcode.READ_RESPONSE_ONLY,
)
STATE = ("arrivals", "active", "next_read", "slots", "release", "flagged", "edge_1.acked", "edge_2.acked",
         "lane_0.partial", "following", "watched", "source", "result")  # fmt: skip
SCALES_STATE = ("scale_slots", "ready", "own_0.own", "top_0.top", "result_0.kept")
Values = npt.NDArray[Any]
WHOLE = {"float32": 1 << 23, "float16": 1 << 10, "bfloat16": 1 << 7}
"""Up to here sums of two whole numbers are exact."""


@dataclass(frozen=True)
class Call:
    """A call: its number from 0, its packets, and how many packets the calls before had."""

    context: PullContext
    number: int
    packets: int
    before: int
    operands: dict[int, list[Values]]
    """What each source has, by packet."""
    scales: dict[int, list[Values]] = field(default_factory=dict)
    """The scales of it."""
    waves: int = 0
    """Waves of the calls before whose scales have been read."""
    form: ScinSpec = field(kw_only=True)
    """The program as the call has it."""

    @property
    def psn(self) -> int:
        """The PSN of its arrivals and flags."""
        return serial.add(self.context.first_psn, self.number)

    def data_psn(self, index: int) -> int:
        """The PSN of a packet of its data."""
        return serial.add(self.context.first_psn, self.before + index)

    def scales_psn(self, wave: int) -> int:
        """The PSN of the scales of a wave."""
        return serial.add(self.context.first_psn, self.waves + wave)


def ranks(mask: int) -> list[int]:
    """The edges in a mask."""
    return [edge for edge in range(1, 33) if mask >> (edge - 1) & 1]


class PullTest(SwitchTest):
    """Ranks of a group: rank i is behind edge i, whose port is counted from the last one."""

    spec: ScinSpec
    kind = ScinSpec

    def setUp(self) -> None:
        super().setUp()
        self.first_psn = self.random.randrange(1 << 24)
        self.contexts: list[PullContext] = []
        self.barriers: Counter[int] = Counter()
        """Of each context."""
        self._waves: dict[tuple[int, int, int], int] = {}
        self._loading: list[tuple[Call, int]] = []
        """Waves whose scales are to be asked for."""
        self.drop_names = {
            (f"Inc{drop.module.gress.capitalize()}.drops", drop.index): f"{drop.module.name}.{drop.drop.reason}"
            for drop in composed(self.spec).drops
        }

    # --- contexts and calls ---

    def context(
        self,
        sources: int = 0b111,
        destinations: int = 0b111,
        *,
        number: int = 0,
        epoch: int = 1,
        first: int = -1,
    ) -> PullContext:
        """A context that the switch does not serve yet. The switch's ends of two contexts have the same queue pairs at
        two addresses."""
        own, pair = number % 2, number // 2
        edges = []
        for edge in ranks(sources | destinations):
            ip, mac = self.address(0x0A000100 + edge), 0x020000010000 | edge
            qps = [256 * pair + 4 * edge + role for role in roles(self.spec)]
            near = tuple(Endpoint(0x020000000001 + own, self.address(0x0A000001 + own), 0x100 + qp) for qp in qps)
            far = tuple(Endpoint(mac, ip, 0xFED000 + qp) for qp in qps)
            place = 0x5000_0000_0000 + (edge << 20) + 8 * number
            edges.append(
                PullEdge(edge, self.port(edge), near, far, place, 0xF1A60000 + edge, 0xC000 + 64 * number + edge)
            )
        psn = self.first_psn if first < 0 else first
        return PullContext(number, tuple(edges), sources, destinations, epoch, psn)

    def served(self, sources: int = 0b111, destinations: int = 0b111, **fields: Any) -> PullContext:
        """A context that the switch serves from now on, beside those that it serves already."""
        context = self.context(sources, destinations, **fields)
        before = configuration(self.spec, self.contexts)
        self.contexts.append(context)
        after = configuration(self.spec, self.contexts)
        self.install(
            SwitchConfig(
                tuple(entry for entry in after.entries if entry not in before.entries),
                tuple(group for group in after.multicast_groups if group not in before.multicast_groups),
                () if before.clone_sessions else after.clone_sessions,
            )
        )
        return context

    def port(self, edge: int) -> int:
        """The port of a rank."""
        return self.spec.edges - edge

    def call(
        self, context: PullContext, packets: int, number: int = 0, before: int = 0, *, exact: bool = False
    ) -> Call:
        """A call with random operands, whose sums fit whatever their order is. Where calls may be ``exact``, it is one
        of whole numbers without scales."""
        form = self.spec.exact_form if exact else self.spec
        waves = self._waves.get((context.context, context.epoch, number), 0)
        if form.scaled:
            drawn = {edge: blocks.draw(form, packets, self.random) for edge in ranks(context.sources)}
            elements, scales = ({edge: both[i] for edge, both in drawn.items()} for i in (0, 1))
            return Call(context, number, packets, before, elements, scales, waves, form=form)
        low, high = (-(1 << 31), 1 << 31) if form.dtype == "int32" else (0, 1 << 32)
        if form.floating:
            low, high = -WHOLE[form.dtype], WHOLE[form.dtype]
        if form.op == "sum":
            low, high = low // 4, high // 4
        operands = {
            edge: [
                np.array([self.random.randrange(low, high) for _ in range(form.lanes)], np.int64)
                for _ in range(packets)
            ]
            for edge in ranks(context.sources)
        }
        return Call(context, number, packets, before, operands, waves=waves, form=form)

    def participants(self, context: PullContext) -> list[int]:
        """All ranks of a context."""
        return ranks(context.sources | context.destinations)

    def begin(self, context: PullContext, packets: int, number: int = 0, before: int = 0) -> Call:
        """All ranks arrive at a call; checks their ACKs and the first READs, and nothing before the last arrival."""
        return self.started(self.call(context, packets, number, before))

    def started(self, call: Call) -> Call:
        """The same for a call with its operands."""
        context, packets = call.context, call.packets
        self._waves[context.context, context.epoch, call.number + 1] = call.waves + self.waves(call) * call.form.scaled
        *early, last = self.participants(context)
        for edge in early:
            self.arrive(call, edge)
            self.expect([self.acked(call, edge)])
        self.arrive(call, last)
        if not packets:
            self.barriers[context.context] += 1
        reads = self.reads(call, range(min(self.spec.waves, self.waves(call))))
        self.expect([self.acked(call, last), *(reads if packets else self.flags(call))])
        return call

    def waves(self, call: Call) -> int:
        """The number of waves of a call."""
        return -(-call.packets // self.spec.wave)

    def of_wave(self, call: Call, wave: int) -> range:
        """The packets of a wave."""
        return range(wave * self.spec.wave, min((wave + 1) * self.spec.wave, call.packets))

    # --- what ranks send ---

    def buffers(self, call: Call, edge: int) -> dict[str, int]:
        """Where a rank's operand and result are in a call."""
        place = (edge << 32) + (call.context.context << 28) + (call.number << 20)
        return {
            "source": 0x1000_0000_0000 + place + 0x40,
            "source_key": 0x50000000 | call.number << 8 | edge,
            "result": 0x2000_0000_0000 + place + 0x80,
            "result_key": 0x60000000 | call.number << 8 | edge,
        }

    def arrival(self, call: Call, edge: int, packets: int | None = None, numbers: int | None = None) -> RocePacket:
        """A rank's arrival, perhaps with something else announced."""
        said = ANNOUNCED.pack(
            numbers=NUMBERS[call.form.dtype] if numbers is None else numbers,
            packets=call.packets if packets is None else packets,
        )
        where = BUFFERS.word.pack(**self.buffers(call, edge)).to_bytes(BUFFERS.size)
        bth = BTH(Opcode.SEND_ONLY_IMM, 0, call.psn, ack_request=True, solicited=True)
        return self._from(call.context, edge, Role.SYNC, bth, immdt=ImmDt(said), payload=where)

    def response(self, call: Call, edge: int, index: int, opcode: Opcode | None = None) -> RocePacket:
        """A source's packet of its operand, by default with the opcode that it has in the READ of a wave."""
        if opcode is None:
            wave = self.of_wave(call, index // self.spec.wave)
            first, last = index == wave[0], index == wave[-1]
            opcode = ANSWERS[3] if first and last else ANSWERS[0] if first else ANSWERS[2] if last else ANSWERS[1]
        values = self.encoded(call, call.operands[edge][index])
        aeth = None if opcode is Opcode.READ_RESPONSE_MIDDLE else AETH(ACK, 7)
        bth = BTH(opcode, 0, call.data_psn(index))
        return self._from(call.context, edge, Role.READ, bth, aeth=aeth, payload=values)

    def encoded(self, call: Call, values: Values) -> bytes:
        """A call's elements as they are on the wire."""
        size = call.form.element_bytes
        kind = np.dtype(np.int8) if call.form.scaled else array_type(DType(call.form.dtype))
        return values.astype(kind).view(f"u{size}").astype(f">u{size}").tobytes()

    def answer(self, context: PullContext, edge: int, role: Role, psn: int, syndrome: int = ACK) -> RocePacket:
        """An ACK or NAK of one of a rank's queue pairs."""
        return self._from(context, edge, role, BTH(Opcode.ACKNOWLEDGE, 0, psn), aeth=AETH(syndrome, 5))

    def _from(self, context: PullContext, edge: int, role: Role, bth: BTH, **parts: Any) -> RocePacket:
        ends = next(each for each in context.edges if each.edge == edge)
        near, far = ends.local[role], ends.remote[role]
        # None of what a rank's packet has on its way is in what the switch makes of it.
        ip = self.ip(far.ip, near.ip, ttl=60, tos=self.random.choice([0, 2, 3, 0x68]))
        fecn, becn = (self.random.random() < 0.2 for _ in range(2))
        return RocePacket(
            self.framed(far.mac, near.mac, far.ip),
            ip,
            UDP(50000 + edge),
            replace(bth, dst_qp=near.qp, fecn=fecn, becn=becn),
            **parts,
        ).sealed()

    def post(self, edge: int, packet: RocePacket) -> None:
        """A rank sends a packet."""
        self.send(self.port(edge), packet.to_bytes())

    def arrive(self, call: Call, edge: int) -> None:
        """A rank arrives."""
        self.post(edge, self.arrival(call, edge))

    def respond(self, call: Call, edges: Iterable[int], *indices: int) -> None:
        """Sources answer READs with these packets, one after the other: a gap sends a cursor round, which later frames
        may overtake on BMv2."""
        for index in indices:
            for edge in edges:
                self.post(edge, self.response(call, edge, index))
                self.settle()

    def ack(self, call: Call, edge: int, index: int, syndrome: int = ACK) -> None:
        """A destination acknowledges a packet of its result, or refuses it."""
        self.post(edge, self.answer(call.context, edge, Role.WRITE, call.data_psn(index), syndrome))

    def took_flag(self, call: Call, *edges: int, status: int = Status.SUCCESS) -> None:
        """Ranks acknowledge their flags."""
        for edge in edges or self.flagged(call):
            self.post(edge, self.answer(call.context, edge, Role.SYNC, self.flag_psn(call, edge, status)))

    def flagged(self, call: Call) -> list[int]:
        """The ranks to which a flag of its own says that a call has ended well."""
        if self.spec.ordered and call.packets:
            return ranks(call.context.sources & ~call.context.destinations)
        return self.participants(call.context)

    def flag_psn(self, call: Call, edge: int, status: int = Status.SUCCESS) -> int:
        """The PSN of a rank's flag: the call's number, unless results are flags. Then ranks that are written to have
        had flags of barriers only before."""
        if not (self.spec.ordered and call.context.destinations >> (edge - 1) & 1):
            return call.psn
        told = self.barriers[call.context.context] + (status != Status.SUCCESS)
        return serial.add(call.context.first_psn, told - 1)

    def notification(self, context: PullContext, edge: int, role: Role = Role.WRITE) -> RocePacket:
        """What a rank's NIC says when packets have met congestion."""
        return self._from(context, edge, role, BTH(Opcode.CNP, 0, 0), payload=self.random.randbytes(16))

    def tick(self, context: PullContext, port: int = CPU_PORT) -> None:
        """The agent's tick for a context."""
        self.send(port, self.ticking(context).to_bytes())

    def ticking(self, context: PullContext) -> RocePacket:
        """The same as a packet."""
        edge = context.edges[0].edge
        return self._from(context, edge, Role.SYNC, BTH(ticks.OPCODE, 0, 0), payload=bytes(4))

    def silence(self, call: Call, ticks: int, again: Sequence[Output]) -> None:
        """So many ticks behind something new, without anything new: ``again`` leaves at the first of them that has no
        news, the second, the fourth and so on, from the 128th on at every 128th."""
        for number in range(ticks):
            self.tick(call.context)
            acts = number and (number & (number - 1) == 0 or number % 128 == 0)
            self.expect(again if acts else [])

    # --- what they get ---

    def _to(self, context: PullContext, edge: int, role: Role, bth: BTH, **parts: Any) -> Output:
        ends = next(each for each in context.edges if each.edge == edge)
        near, far = ends.local[role], ends.remote[role]
        packet = RocePacket(
            self.framed(near.mac, far.mac, far.ip),
            ip_header(near.ip, far.ip),
            UDP(ends.udp_src_port),
            replace(bth, dst_qp=far.qp),
            **parts,
        ).sealed()
        return Output(self.port(edge), packet.to_bytes())

    def acked(self, call: Call, edge: int, syndrome: int = ACK, number: int | None = None) -> Output:
        """The answer to an arrival: of this call, or of another one."""
        psn = serial.add(call.context.first_psn, call.number if number is None else number)
        msn = serial.add(psn - call.context.first_psn, 1)
        return self._to(call.context, edge, Role.SYNC, BTH(Opcode.ACKNOWLEDGE, 0, psn), aeth=AETH(syndrome, msn))

    def read(self, call: Call, edge: int, first: int, packets: int) -> Output:
        """A READ of some packets of a source."""
        where = self.buffers(call, edge)
        reth = RETH(where["source"] + self.offset(call, first), where["source_key"], packets * self.spec.payload)
        bth = BTH(Opcode.READ_REQUEST, 0, call.data_psn(first), ack_request=True)
        return self._to(call.context, edge, Role.READ, bth, reth=reth)

    def reread(self, call: Call, edge: int, first: int, behind: int) -> list[Output]:
        """READs of what is missing from the packet ``first`` up to the one before ``behind``: of each wave the rest."""
        found = []
        while first < behind:
            end = self.of_wave(call, first // self.spec.wave)[-1] + 1
            found.append(self.read(call, edge, first, end - first))
            first = end
        return found

    def reads(self, call: Call, waves: Iterable[int]) -> list[Output]:
        """The READs of waves, of all sources. Of elements with scales these are read first: what is expected are READs
        of scales, and then ``expect`` answers them, and expects those of data."""
        if call.form.scaled:
            waves = list(waves)
            self._loading += [(call, wave) for wave in waves]
            return [self.read_scales(call, edge, wave) for wave in waves for edge in ranks(call.context.sources)]
        return self.data_reads(call, waves)

    def data_reads(self, call: Call, waves: Iterable[int]) -> list[Output]:
        """The READs of waves' data, of all sources."""
        found = [(edge, self.of_wave(call, wave)) for wave in waves for edge in ranks(call.context.sources)]
        return [self.read(call, edge, packets[0], len(packets)) for edge, packets in found]

    def offset(self, call: Call, index: int) -> int:
        """Where a packet is, from the beginning of an operand or result: behind each wave are its scales."""
        return index * self.spec.payload + index // self.spec.wave * call.form.scale_bytes

    def read_scales(self, call: Call, edge: int, wave: int) -> Output:
        """A READ of the scales of a wave."""
        where, packets = self.buffers(call, edge), self.of_wave(call, wave)
        at = where["source"] + self.offset(call, packets[0]) + len(packets) * self.spec.payload
        bth = BTH(Opcode.READ_REQUEST, 0, call.scales_psn(wave), ack_request=True)
        return self._to(call.context, edge, Role.SCALES, bth, reth=RETH(at, where["source_key"], self.spec.scale_bytes))

    def scales(self, call: Call, edge: int, wave: int, opcode: Opcode = ANSWERS[3]) -> RocePacket:
        """A source's scales of a wave."""
        held = {index % self.spec.wave: call.scales[edge][index] for index in self.of_wave(call, wave)}
        bth = BTH(opcode, 0, call.scales_psn(wave))
        payload = blocks.of_wave(self.spec, held)
        return self._from(call.context, edge, Role.SCALES, bth, aeth=AETH(ACK, 7), payload=payload)

    def give_scales(self, call: Call, edges: Iterable[int], *waves: int) -> None:
        """Sources answer READs of scales."""
        for wave in waves:
            for edge in edges:
                self.post(edge, self.scales(call, edge, wave))

    def summed(self, call: Call, index: int) -> tuple[Values, Values]:
        """A packet of a result with scales, and the scales."""
        sources = ranks(call.context.sources)
        operands, scales = ([each[edge][index] for edge in sources] for each in (call.operands, call.scales))
        return blocks.summed(self.spec, operands, scales)

    def result(self, call: Call, index: int) -> Values:
        """A packet of the result."""
        if call.form.scaled:
            return self.summed(call, index)[0]
        if call.form.floating:
            return self.added([call.operands[edge][index] for edge in ranks(call.context.sources)])
        stack = np.stack([call.operands[edge][index] for edge in ranks(call.context.sources)])
        if call.form.op != "sum":
            return np.asarray(stack.min(0) if call.form.op == "min" else stack.max(0))
        total: Values = stack[0]
        low, high = (-(1 << 31), (1 << 31) - 1) if call.form.dtype == "int32" else (0, (1 << 32) - 1)
        for more in stack[1:]:
            total = total + more
            if call.form.overflow == "saturate":
                total = np.clip(total, low, high)
        return total if call.form.overflow == "saturate" else np.asarray((total - low) % (1 << 32) + low)

    def added(self, operands: Sequence[Values]) -> Values:
        """What NumPy makes of floating-point numbers that come in this order: as float32, rounded once. What is not a
        number is the one that a switch makes, unless it is alone."""
        dtype = array_type(DType(self.spec.dtype))
        if len(operands) == 1:
            return operands[0]
        found = folded(Op(self.spec.op), range(len(operands)), [each.astype(dtype) for each in operands])
        return np.where(np.isnan(found), np.array(np.nan, dtype), found)

    def write(self, call: Call, edge: int, index: int, *, again: bool = False, data: Values | None = None) -> Output:
        """The WRITE of a packet of the result."""
        where = self.buffers(call, edge)
        last = index == call.packets - 1
        ends = last or index % self.spec.wave == self.spec.wave - 1
        values = self.encoded(call, self.result(call, index) if data is None else data)
        if call.form.scaled and ends:
            wave = self.of_wave(call, index // self.spec.wave)
            values += blocks.of_wave(self.spec, {each % self.spec.wave: self.summed(call, each)[1] for each in wave})
        reth = RETH(where["result"] + self.offset(call, index), where["result_key"], len(values))
        opcode = Opcode.WRITE_ONLY_IMM if last and self.spec.ordered else Opcode.WRITE_ONLY
        bth = BTH(opcode, 0, call.data_psn(index), ack_request=again or ends)
        immdt = ImmDt(call.psn) if last and self.spec.ordered else None
        return self._to(call.context, edge, Role.WRITE, bth, reth=reth, immdt=immdt, payload=values)

    def writes(self, call: Call, *indices: int, **how: Any) -> list[Output]:
        """The WRITEs of packets of the result to all destinations, and where the last of them is their flag, the flags
        of all others."""
        found = [self.write(call, edge, index, **how) for index in indices for edge in ranks(call.context.destinations)]
        if self.spec.ordered and call.packets - 1 in indices:
            found += [self.flag(call, edge) for edge in self.flagged(call)]
        return found

    def flag(self, call: Call, edge: int, status: int = Status.SUCCESS, psn: int | None = None) -> Output:
        """A rank's flag, perhaps with another PSN than it should have."""
        ends = next(each for each in call.context.edges if each.edge == edge)
        said = FLAG.word.pack(call=call.psn, status=status, reserved=0).to_bytes(FLAG.size)
        return self._to(
            call.context,
            edge,
            Role.SYNC,
            BTH(Opcode.WRITE_ONLY_IMM, 0, self.flag_psn(call, edge, status) if psn is None else psn, ack_request=True),
            reth=RETH(ends.flag_address, ends.flag_key, FLAG.size),
            immdt=ImmDt(status << 24 | call.psn),
            payload=said,
        )

    def flags(self, call: Call, status: int = Status.SUCCESS) -> list[Output]:
        """The flags that follow the last ACK, or an arrival, or end a call with a status."""
        if self.spec.ordered and call.packets and status == Status.SUCCESS:
            return []
        return [self.flag(call, edge, status) for edge in self.participants(call.context)]

    def expect(self, outputs: Iterable[Output]) -> None:
        """Like ``SwitchTest.expect``; programs that leave ICRCs as they come are not asked for right ones."""
        if self.spec.icrc.right:
            super().expect(outputs)
        else:
            cut = [[replace(each, frame=each.frame[:-4]) for each in frames] for frames in (self.outputs(), outputs)]
            self.equal("frames sent", *(sorted((each.port, each.frame.hex()) for each in frames) for frames in cut))
        loading, self._loading = self._loading, []
        for call, wave in loading:
            sources = ranks(call.context.sources)
            self.give_scales(call, self.random.sample(sources, len(sources)), wave)
            self.expect(self.data_reads(call, [wave]))

    def finish(self, call: Call) -> None:
        """From the first READs on: all data comes, all results are acknowledged, all flags are taken."""
        sources, destinations = ranks(call.context.sources), ranks(call.context.destinations)
        for wave in range(self.waves(call)):
            packets = self.of_wave(call, wave)
            self.respond(call, self.random.sample(sources, len(sources)), *packets)
            self.expect(self.writes(call, *packets))
            for edge in destinations[:-1]:
                self.ack(call, edge, packets[-1])
            self.expect_nothing()
            self.ack(call, destinations[-1], packets[-1])
            following = range(wave + self.spec.waves, min(wave + self.spec.waves + 1, self.waves(call)))
            last = wave == self.waves(call) - 1
            self.expect([*self.reads(call, following), *(self.flags(call) if last else [])])
        self.took_flag(call)
        self.expect_nothing()

    def after_flags(self, call: Call) -> Call:
        """The call that an abort is about when all results have been written: the next one, if they were flags."""
        return replace(call, number=call.number + 1, packets=0) if self.spec.ordered else call

    # --- counters and registers ---

    def drops(self) -> Counter[str]:
        """Packets dropped since the reset by reason, as ``Module.reason``."""
        found: Counter[str] = Counter()
        for counter in ("IncIngress.drops", "IncEgress.drops"):
            for index, packets in self.counts(counter).items():
                found[self.drop_names.get((counter, index), f"{counter} {index}")] += packets
        return found

    def refused(self, port: int, frame: bytes, reason: str, told: Sequence[Output] = ()) -> None:
        """Check that a frame is dropped for a reason, changes no state, and causes no output but ``told``."""
        before, drops = self._state(), self.drops()
        self.send(port, frame)
        self.expect(told)
        self.equal(f"dropped, {reason}", (self.drops() - drops)[reason], 1)
        self.equal(f"registers after a frame to be refused as {reason}", self._state(), before)

    @property
    def asker(self) -> str:
        """The module that knows which data has been asked for."""
        return "TrackScales" if self.spec.scaled else "IssueWave"

    def _state(self) -> dict[str, list[int]]:
        names = (*STATE, *(SCALES_STATE if self.spec.scaled else ()))
        return {name: self.control.registers(name) for name in names}
