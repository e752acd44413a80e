"""Groups, what their ranks send, and what they receive, for all modes.

A *rank* here is the index of an edge of a context: at its other end is a rank of the group, or a whole subtree.
Everything that a test expects is derived from the group's configuration and from NumPy; only outputs, counters and
registers are read from the switch. Every output passes the independent checks of p4gen.rocev2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from base import Output, P4genTest
from elements import Numbers, Values

from p4gen.groups.config import configure
from p4gen.groups.group import Edge, Endpoint, GroupContext, Memory, Pattern
from p4gen.host.collectives.control import Control
from p4gen.layout import Word
from p4gen.p4rt.session import RequestError
from p4gen.p4rt.status import Code
from p4gen.program.module import Register
from p4gen.ptf.scenario import composed
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, UDP, HeaderError, ImmDt, IPv6, ip_text
from p4gen.rocev2.opcodes import Ack, Opcode, ends_message, starts_message
from p4gen.rocev2.packet import RocePacket, parse, problems
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective, max_packets, message_of

OUTPUT_TTL = 64
STATE_WORDS = 1 << 11
STATE_ARRAYS = 8
FRAGMENTS_AND_OPTIONS: tuple[dict[str, Any], ...] = (
    {"flags": 0b001},
    {"flags": 0, "fragment_offset": 8},
    {"flags": 0b001, "fragment_offset": 1},
    {"options": bytes(4)},
    {"options": bytes(40)},
)
"""Fields of IPv4 headers that RoCEv2 forbids (InfiniBand A17.3.1)."""
CONTRIBUTIONS = (
    Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY, Opcode.SEND_ONLY_IMM,
)  # fmt: skip
WRITTEN = {
    Opcode.WRITE_FIRST: Opcode.SEND_FIRST,
    Opcode.WRITE_MIDDLE: Opcode.SEND_MIDDLE,
    Opcode.WRITE_LAST_IMM: Opcode.SEND_LAST,
    Opcode.WRITE_ONLY_IMM: Opcode.SEND_ONLY,
}
"""Opcodes of results that are written, and of those that are sent."""


@dataclass(frozen=True)
class Results:
    """The packets that were sent over each edge of a group, in order."""

    of_rank: tuple[tuple[RocePacket, ...], ...]

    @property
    def total(self) -> int:
        return sum(map(len, self.of_rank))


def allreduce(parent: int | None = None) -> Pattern:
    """AllReduce and Barrier at a node whose edge ``parent`` leads to the root of the IncTree; None at that root."""
    return Pattern(Collective.ALLREDUCE, 0, parent)


def reduce_to(root: int, toward: int) -> Pattern:
    """Reduce to the rank ``root``, which is reached over the edge ``toward``."""
    return Pattern(Collective.REDUCE, root, toward)


def broadcast_from(root: int, toward: int) -> Pattern:
    """Broadcast from the rank ``root``, which is reached over the edge ``toward``."""
    return Pattern(Collective.BROADCAST, root, toward)


class IncTest(P4genTest):
    """A test with groups.

    Group g's context is g; on the wire switch g is 10.g.0.1, and rank r of its groups 10.g.1.r; over IPv6 these are the
    last 32 bits of addresses in fd00::/96.
    """

    numbers = Numbers()
    """Operation and number format: the spec's or, with op dynamic, those that control messages announce."""
    vlan: int | None = None
    """Tag control information of the 802.1Q tag of all frames; None: no tags."""

    def setUp(self) -> None:
        super().setUp()
        self.first_psn = self.random.randrange(1 << 24)
        self.np_random = np.random.default_rng(self.random.getrandbits(64))
        self._quiet_drops: Counter[str] = Counter()
        drops = composed(self.spec).drops
        self.drop_names = {
            (f"Inc{drop.module.gress.capitalize()}.drops", drop.index): f"{drop.module.name}.{drop.drop.reason}"
            for drop in drops
        }
        self.no_losses = {f"{drop.module.name}.{drop.drop.reason}" for drop in drops if not drop.drop.loss}
        if self.spec.op is not Op.DYNAMIC:
            self.numbers = Numbers(self.spec.op, self.spec.dtype)

    @property
    def front(self) -> tuple[int, ...]:
        """The switch's ports for hosts."""
        return self.spec.architecture.front_ports(self.spec.ports)

    # --- groups ---

    def make_group(
        self,
        ranks: int,
        *,
        context: int = 0,
        first_port: int = 0,
        epoch: int = 1,
        patterns: Sequence[Pattern] = (allreduce(),),
        pipeline: int = 0,
        switch: int | None = None,
        channel: int = 0,
        ipv6: bool | None = None,
    ) -> GroupContext:
        """A context with ``ranks`` edges on consecutive ports of a pipeline (wrapping around), not yet configured.

        QPs are the same on every switch and differ at both ends of an edge, so that only the right table look-up
        distinguishes groups and directions. Contexts of one ``switch`` (by default there is one for each context) share
        its addresses; their ``channel`` must differ, and with it their QPs. ``ipv6`` is the kind of its addresses, by
        default the scenario's. Skips the test when the program has no room for that many edges.
        """
        if ranks > self.spec.fan_in:
            self.skipTest(f"the program's fan-in is {self.spec.fan_in}, which {ranks} ranks exceed")
        switch = context if switch is None else switch
        local_ip, ports = self.address(10 << 24 | switch << 16 | 1, ipv6=ipv6), self.spec.ports // self.spec.pipelines
        front = self.front
        edges = tuple(
            Edge(
                edge_id=1 + context * self.spec.fan_in + rank,
                port=front[pipeline * ports + (first_port + rank) % ports],
                local=Endpoint(0x020000000000 | switch << 8, local_ip, 0x100 + 64 * channel + rank),
                remote=Endpoint(
                    0x020000010000 | switch << 8 | rank, local_ip + 0x100 + rank, 0xFED000 + 64 * channel + rank
                ),
                udp_src_port=0xC000 + context * 64 + rank,
                first_received=self.random.randrange(1 << 24) if self.spec.own_psns else 0,
                first_sent=self.random.randrange(1 << 24) if self.spec.own_psns else 0,
                memory=self.random_memory() if self.spec.uses_memory else None,
            )
            for rank in range(ranks)
        )
        slots = self.spec.slots_per_group
        if not self.spec.mode.augmented:
            return GroupContext(context, edges, context * slots, slots, epoch, tuple(patterns), pipeline)
        base = 2 * context * slots
        return GroupContext(context, edges, base, slots, epoch, tuple(patterns), pipeline, base + slots, self.first_psn)

    def random_memory(self) -> Memory:
        """What a rank offers for the results of a context."""
        size = self.spec.channel_memory
        address = self.random.choice((self.random.randrange(1 << 48), (1 << 64) - size - self.random.randrange(1 << 8)))
        return Memory(address, self.random.randrange(1 << 32), size)

    def serve(self, *groups: GroupContext) -> None:
        """Configure the switch for groups."""
        self.install(configure(self.spec, groups))

    def reconfigure(self, *groups: GroupContext) -> None:
        """Change the configuration of groups that are already served, entry by entry."""
        config = configure(self.spec, groups)
        self.control.modify(*config.entries)
        config.replicate(self.control)

    def random_psn(self) -> int:
        """A random PSN in the first quarter of those that groups announce by default, which leaves room for streams
        after it; the first one if order matters."""
        ahead = 0 if self.spec.loss_recovery.in_order else self.random.randrange((self.most_packets + 1) // 4)
        return serial.add(self.first_psn, 1 + ahead)

    # --- what ranks send ---

    def contribution(
        self, group: GroupContext, rank: int, psn: int, values: Values, opcode: int = Opcode.SEND_ONLY
    ) -> RocePacket:
        """The packet with which ``rank`` contributes ``values`` under ``psn``; the last of a message asks for an
        ACK."""
        bth = BTH(opcode, 0, psn, ack_request=ends_message(opcode))
        return self.from_rank(group, rank, bth, payload=self.encode(values))

    def announcement(self, group: GroupContext, rank: int, psn: int, value: int | Control) -> RocePacket:
        """The control message with which ``rank`` announces ``value`` under ``psn``."""
        packet = self.from_rank(group, rank, BTH(Opcode.SEND_ONLY_IMM, 0, psn, ack_request=True))
        immediate = value if isinstance(value, int) else value.encode()
        return replace(packet, immdt=ImmDt(immediate)).sealed()

    def call(self, pattern: Pattern | Collective = Collective.ALLREDUCE, packets: int | None = None) -> Control:
        """The control message for a collective of ``packets`` packets of ``self.numbers``, by default the most."""
        named, numbers = pattern if isinstance(pattern, Pattern) else Pattern(pattern), self.numbers
        count, roots = self.most_packets if packets is None else packets, self.spec.roots
        return Control(named.collective, count, named.root, numbers.op, numbers.dtype, roots)

    @property
    def most_packets(self) -> int:
        """The most packets that a control message announces."""
        return max_packets(self.spec.roots)

    @property
    def immediates(self) -> Word:
        """The layout of control messages."""
        return message_of(self.spec.roots)

    def acknowledgement(self, group: GroupContext, rank: int, psn: int, syndrome: int = Ack().syndrome) -> RocePacket:
        """An ACK or NAK by the responder of ``rank``."""
        return self.from_rank(group, rank, BTH(Opcode.ACKNOWLEDGE, 0, psn), aeth=AETH(syndrome, msn=psn & 0xFFF))

    def notification(self, group: GroupContext, rank: int, room: int = 16) -> RocePacket:
        """A congestion notification by the responder of ``rank``."""
        return self.from_rank(group, rank, BTH(Opcode.CNP, 0, 0, becn=True), payload=bytes(room))

    def from_rank(
        self, group: GroupContext, rank: int, bth: BTH, *, aeth: AETH | None = None, payload: bytes = b""
    ) -> RocePacket:
        """A packet from the other end of an edge to the switch's end. Where connections have PSNs of their own, that of
        ``bth`` is the packet's number on its way (``on_the_wire``)."""
        edge = group.edges[rank]
        answers = bth.opcode == Opcode.ACKNOWLEDGE
        if self.spec.own_psns and (answers or bth.opcode in CONTRIBUTIONS):
            bth = replace(bth, psn=self.on_the_wire(group, rank, bth.psn, sent=answers))
        packet = RocePacket(
            self.framed(edge.remote.mac, edge.local.mac, edge.local.ip),
            self.ip(edge.remote.ip, edge.local.ip, ttl=63),
            UDP(49152 + rank),
            replace(bth, dst_qp=edge.local.qp),
            aeth=aeth,
            payload=payload,
            vlan=self.vlan,
        )
        return packet.sealed()

    def on_the_wire(self, group: GroupContext, rank: int, number: int, *, sent: bool) -> int:
        """The PSN of a packet with this number over an edge: one that the switch has ``sent``, or one that it receives.
        They are the same unless connections have PSNs of their own."""
        if not self.spec.own_psns:
            return number
        edge = group.edges[rank]
        first = edge.first_sent if sent else edge.first_received
        return serial.add(first, serial.diff(number, group.first_psn))

    def numbered(self, group: GroupContext, rank: int, packet: RocePacket) -> RocePacket:
        """A packet that ``rank`` received with its number in the place of its PSN."""
        if not self.spec.own_psns or packet.bth.opcode == Opcode.CNP:
            return packet
        edge = group.edges[rank]
        first = edge.first_received if packet.bth.opcode == Opcode.ACKNOWLEDGE else edge.first_sent
        number = serial.add(group.first_psn, serial.diff(packet.bth.psn, first))
        return replace(packet, bth=replace(packet.bth, psn=number))

    def send_from(self, group: GroupContext, rank: int, *packets: RocePacket | bytes) -> None:
        """Send packets, or frames, into the port of ``rank``."""
        port = group.edges[rank].port
        self.send(port, *(p if isinstance(p, bytes) else p.to_bytes() for p in packets))

    def contribute(
        self,
        group: GroupContext,
        ranks: Iterable[int],
        psn: int,
        values: Sequence[Values],
        opcode: int = Opcode.SEND_ONLY,
    ) -> None:
        """Send the contributions of ``ranks``, in this order; ``values`` is indexed by rank."""
        for rank in ranks:
            self.send_from(group, rank, self.contribution(group, rank, psn, values[rank], opcode))

    def announce(self, group: GroupContext, ranks: Iterable[int], psn: int, value: int | Control) -> None:
        """Send the control messages of ``ranks``, in this order."""
        for rank in ranks:
            self.send_from(group, rank, self.announcement(group, rank, psn, value))

    # --- arithmetic ---

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest element."""
        return self.numbers.limits

    def encode(self, values: Values) -> bytes:
        """Elements as a payload."""
        return self.numbers.encode(values)

    def decode(self, payload: bytes) -> Values:
        """A payload's elements."""
        return self.numbers.decode(payload)

    def lanes(self, value: int) -> Values:
        """The same element everywhere in a packet."""
        return np.full(self.spec.elements, value, np.int64)

    def random_values(self, ranks: int) -> list[Values]:
        """A contribution for each rank; no partial sum of them leaves the range of an element."""
        return self.numbers.random(self.np_random, ranks, self.spec.elements)

    def reduced(self, values: Sequence[Values]) -> Values:
        """NumPy's reduction of contributions, without overflow."""
        return self.numbers.reduced(values)

    # --- what ranks receive ---

    def received(self, group: GroupContext) -> Results:
        """Everything that the ranks of a group received since the last call. Fails when anything else was sent.

        Every packet must be valid in itself, and translated: from the switch's end of the edge to the rank's.
        """
        return self.received_by(group)[0]

    def received_by(self, *groups: GroupContext) -> list[Results]:
        """``received`` for several groups that share ports."""
        edges = {
            (edge.port, edge.remote.ip, edge.remote.qp): (g, r)
            for g, group in enumerate(groups)
            for r, edge in enumerate(group.edges)
        }
        taken: list[list[list[RocePacket]]] = [[[] for _ in group.edges] for group in groups]
        for output in self.outputs():
            packet = self.parse(output)
            place = edges.get((output.port, packet.ip.dst, packet.bth.dst_qp))
            if place is None:
                raise AssertionError(
                    f"port {output.port}: a packet for {ip_text(packet.ip.dst)}, QP {packet.bth.dst_qp:#08x}, "
                    f"who is not there: {packet}"
                )
            g, rank = place
            edge = groups[g].edges[rank]
            self.check_translation(edge, packet)
            taken[g][rank].append(self.numbered(groups[g], rank, self.unplaced(edge, packet)))
        return [Results(tuple(map(tuple, ranks))) for ranks in taken]

    def parse(self, output: Output) -> RocePacket:
        """An output as a RoCEv2 packet, after the checks that any receiver could make."""
        try:
            packet = parse(output.frame)
        except HeaderError as error:
            raise AssertionError(f"port {output.port}: {error}: {output.frame.hex()}") from error
        faults = problems(output.frame)
        if not self.spec.icrc.right:
            faults = [fault for fault in faults if "ICRC" not in fault]
        self.equal(f"port {output.port}: faults of {output.frame.hex()}", faults, [])
        return packet

    def check_translation(self, edge: Edge, packet: RocePacket) -> None:
        """Check that the packet goes from this end of ``edge`` to the other, like a packet from a NIC."""
        at = f"port {edge.port}"
        self.equal(f"{at}: destination MAC", packet.eth.dst, edge.remote.mac)
        self.equal(f"{at}: source MAC", packet.eth.src, edge.local.mac)
        self.equal(f"{at}: source address", packet.ip.src, edge.local.ip)
        self.equal(f"{at}: UDP source port", packet.udp.src_port, edge.udp_src_port)
        self.equal(f"{at}: UDP checksum", packet.udp.checksum, 0)
        self.equal(f"{at}: TTL", packet.ip.ttl, OUTPUT_TTL)
        if isinstance(packet.ip, IPv6):  # routers may choose paths by it
            self.equal(f"{at}: flow label", packet.ip.flow_label, 0)
        self.equal(f"{at}: P_Key", packet.bth.pkey, 0xFFFF)
        self.equal(f"{at}: solicited event", packet.bth.solicited, False)
        self.equal(f"{at}: padding", packet.padding, b"")
        self.equal(f"{at}: VLAN tag", packet.vlan, self.vlan)

    def unplaced(self, edge: Edge, packet: RocePacket) -> RocePacket:
        """What ``edge`` would be sent if results were no WRITEs into memory. Checks what its NIC, and its rank, look at
        beside that."""
        memory, opcode = edge.memory, packet.bth.opcode
        written = WRITTEN.get(Opcode(opcode)) if opcode in list(Opcode) else None
        if memory is None or not self.spec.uses_memory or not packet.payload or opcode == Opcode.CNP:
            self.equal(f"port {edge.port}: a WRITE", written, None)
            return packet
        at = f"port {edge.port}, {Opcode(opcode).name} of PSN {packet.bth.psn}"
        if written is None:
            raise AssertionError(f"{at}: is no WRITE of a result")
        if packet.reth is not None:
            place = packet.bth.psn % self.spec.ring * self.spec.payload_bytes
            self.equal(f"{at}: address", packet.reth.address, memory.address + place)
            self.equal(f"{at}: key", packet.reth.rkey, memory.rkey)
            only = opcode == Opcode.WRITE_ONLY_IMM
            sizes = [self.spec.payload_bytes * packets for packets in range(1, 1 + (1 if only else self.spec.message))]
            self.equal(f"{at}: {packet.reth.dma_length} bytes of a message", packet.reth.dma_length in sizes, True)
        immediate = None if packet.immdt is None else packet.immdt.value
        self.equal(f"{at}: immediate data", immediate, packet.bth.psn if ends_message(opcode) else None)
        self.equal(f"{at}: has a RETH", packet.reth is not None, starts_message(opcode))
        return replace(packet, bth=replace(packet.bth, opcode=int(written)), reth=None, immdt=None)

    def check_payload(self, at: str, packet: RocePacket, values: Values) -> None:
        """Check that the packet's payload is exactly ``values``."""
        self.equal(f"{at}: payload bytes", len(packet.payload), self.spec.payload_bytes)
        bits = f"u{self.numbers.dtype.number_format.bytes}"
        wrong = np.flatnonzero(np.frombuffer(packet.payload, bits) != np.frombuffer(self.encode(values), bits))
        if len(wrong):
            lane, got = int(wrong[0]), self.decode(packet.payload)
            self.fail(
                f"{at}: lane {lane} is {got[lane]}, expected {values[lane]} "
                f"({len(wrong)} of {len(got)} lanes are wrong)"
            )

    # --- counters and registers ---

    def all_drops(self) -> Counter[str]:
        """Packets dropped since the reset by reason, as ``Module.reason``."""
        found: Counter[str] = Counter()
        for counter in ("IncIngress.drops", "IncEgress.drops"):
            for index, packets in self.counts(counter).items():
                found[self.drop_names.get((counter, index), f"{counter}[{index}]")] += packets
        return found

    def drops(self) -> Counter[str]:
        """``all_drops`` without those of quiet announcements."""
        return self.all_drops() - self._quiet_drops

    def losses(self) -> Counter[str]:
        """``drops`` without packets that were processed and then dropped."""
        return Counter({reason: count for reason, count in self.drops().items() if reason not in self.no_losses})

    def discount(self) -> None:
        """Ignore the packets dropped so far."""
        self._quiet_drops = self.all_drops()

    def state(self) -> dict[str, list[int]]:
        """The program's registers: all cells, or of large arrays as many as can be read quickly."""
        kept = (register for module in composed(self.spec).modules for register in module.keeps)
        return {name: self.control.registers(name) for register in kept for name in self._some(register)}

    def write_register(self, name: str, index: int, value: int) -> None:
        """Set a cell of a register. Skips the test on a switch that lets no controller do so, as BMv2 by P4Runtime."""
        try:
            self.control.write_register(name, index, value)
        except RequestError as error:
            if Code.UNIMPLEMENTED not in (error.code, *(code for _, code, _ in error.failures)):
                raise
            self.skipTest("the switch lets no controller write registers")

    def _some(self, register: Register) -> list[str]:
        instances, parts = int(register.instances), register.name.split("*")
        if len(parts) == 1:
            return [register.name]
        count = min(instances, STATE_ARRAYS, STATE_WORDS // int(register.entries))
        chosen = sorted({i * instances // count for i in range(count)}) if count else []
        places = (np.unravel_index(i, register.instances.values) for i in chosen)
        return ["".join(chain(*zip(parts, map(str, place), strict=False), parts[-1:])) for place in places]

    def refused(self, group: GroupContext, rank: int, frame: RocePacket | bytes, reason: str) -> None:
        """Check that ``frame`` from ``rank``'s port causes no output, is counted once under ``reason``, and changes no
        state.

        With Go-Back-N, a packet that only its slot refuses still advances the ePSN.
        """
        self.refused_at(group.edges[rank].port, frame, reason)

    def refused_at(self, port: int, frame: RocePacket | bytes, reason: str) -> None:
        """The same of a frame that comes in by any port."""
        state, drops = self.state(), self.all_drops()
        self.send(port, frame if isinstance(frame, bytes) else frame.to_bytes())
        self.equal(f"frames sent for one to be refused as {reason}", self.outputs(), [])
        self.equal("dropped", self.all_drops() - drops, Counter({reason: 1}))
        after = self.state()
        passed = {"expected"} if reason.startswith("CheckDuplicate") else set()
        changed = [name for name in state if state[name] != after[name] and name not in passed]
        self.equal(f"registers changed by a frame to be refused as {reason}", changed, [])


def psns(first: int, count: int) -> list[int]:
    """``count`` PSNs from ``first`` on, around the wrap."""
    return [serial.add(first, i) for i in range(count)]
