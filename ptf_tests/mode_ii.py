"""Groups, contributions and results of EPIC Mode II (section 4.3), as their ranks see them.

Everything that a test expects is derived here from the group's configuration and from NumPy; nothing is asked of
the switch but its outputs, counters and registers. Every output passes the independent checks of p4gen.rocev2.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from base import Output, P4genTest

from p4gen.inc import compose
from p4gen.manager.config import Edge, Endpoint, Group, configure
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, HeaderError, IPv4
from p4gen.rocev2.opcodes import Ack, Opcode, ends_message
from p4gen.rocev2.packet import RocePacket, parse, problems
from p4gen.spec import DType, Icrc, Op

Values = npt.NDArray[np.int64]
"""A packet's elements, one a lane, wide enough that no sum of theirs overflows."""

OUTPUT_TTL = 64
STATE_WORDS = 1 << 11


@dataclass(frozen=True)
class Results:
    """What the ranks of a group have received: for each rank, packets in order."""

    of_rank: tuple[tuple[RocePacket, ...], ...]

    @property
    def total(self) -> int:
        return sum(map(len, self.of_rank))


class ModeIITest(P4genTest):
    """A test with groups. Group g's context is g, its switch address 10.g.0.1, its ranks' 10.g.1.r."""

    def setUp(self) -> None:
        super().setUp()
        self.psn = self.random_psn()
        self.np_random = np.random.default_rng(self.random.getrandbits(64))
        self.drop_names = {
            (f"Inc{drop.module.gress.capitalize()}.drops", drop.index): f"{drop.module.name}.{drop.drop.reason}"
            for drop in compose(self.spec).drops
        }

    # --- groups ---

    def make_group(self, ranks: int, *, context: int = 0, first_port: int = 0, epoch: int = 1) -> Group:
        """A group of ``ranks`` on consecutive ports (wrapping around), not yet configured.

        QPs are the same in every group and on both ends of no edge, so that nothing but the right table lookup
        tells groups and directions apart. Skips the test when the program has no room for so many edges.
        """
        if ranks > self.spec.fan_in:
            self.skipTest(f"the program's fan-in is {self.spec.fan_in}, which {ranks} ranks exceed")
        base, slots = context * self.spec.slots_per_group, self.spec.slots_per_group
        local_ip = 10 << 24 | context << 16 | 1
        edges = tuple(
            Edge(
                edge_id=1 + context * self.spec.fan_in + rank,
                port=(first_port + rank) % self.spec.ports,
                local=Endpoint(0x020000000000 | context << 8, local_ip, 0x100 + rank),
                remote=Endpoint(0x020000010000 | context << 8 | rank, local_ip + 0x100 + rank, 0xFEDC00 + rank),
                udp_src_port=0xC000 + context * 64 + rank,
            )
            for rank in range(ranks)
        )
        return Group(context, edges, base, slots, epoch)

    def serve(self, *groups: Group) -> None:
        """Configure the switch for groups."""
        self.install(configure(self.spec, groups))

    def group_of(self, ranks: int, *, context: int = 0, first_port: int = 0) -> Group:
        """A configured group."""
        group = self.make_group(ranks, context=context, first_port=first_port)
        self.serve(group)
        return group

    def reconfigure(self, *groups: Group) -> None:
        """Give groups that are served already another configuration, entry by entry."""
        config = configure(self.spec, groups)
        self.control.modify(*config.entries)
        for tree in config.multicast_groups:
            self.control.set_multicast_group(tree)

    def random_psn(self) -> int:
        return self.random.randrange(1 << 24)

    def next_psn(self) -> int:
        """A PSN one after that of the call before; the first one is random."""
        self.psn = serial.add(self.psn, 1)
        return self.psn

    # --- what ranks send ---

    def contribution(
        self, group: Group, rank: int, psn: int, values: Values, opcode: int = Opcode.SEND_ONLY
    ) -> RocePacket:
        """The packet by which ``rank`` contributes ``values`` under ``psn``; a message's last one asks for an ACK."""
        return self._from_rank(
            group, rank, BTH(opcode, 0, psn, ack_request=ends_message(opcode)), payload=self.encode(values)
        )

    def acknowledgement(self, group: Group, rank: int, psn: int, syndrome: int = Ack().syndrome) -> RocePacket:
        """An ACK or NAK by the responder of ``rank``."""
        return self._from_rank(group, rank, BTH(Opcode.ACKNOWLEDGE, 0, psn), aeth=AETH(syndrome, msn=psn & 0xFFF))

    def _from_rank(
        self, group: Group, rank: int, bth: BTH, *, aeth: AETH | None = None, payload: bytes = b""
    ) -> RocePacket:
        edge = group.edges[rank]
        return RocePacket(
            Ethernet(edge.local.mac, edge.remote.mac),
            IPv4(edge.remote.ip, edge.local.ip, ttl=63, identification=self.random.getrandbits(16)),
            UDP(49152 + rank),
            replace(bth, dst_qp=edge.local.qp),
            aeth=aeth,
            payload=payload,
        ).sealed()

    def send_from(self, group: Group, rank: int, *packets: RocePacket | bytes) -> None:
        """Send packets, or frames, into the port of ``rank``."""
        port = group.edges[rank].port
        self.send(port, *(p if isinstance(p, bytes) else p.to_bytes() for p in packets))

    def contribute(
        self, group: Group, ranks: Iterable[int], psn: int, values: Sequence[Values], opcode: int = Opcode.SEND_ONLY
    ) -> None:
        """Send the contributions of ``ranks``, in this order; ``values`` is indexed by rank."""
        for rank in ranks:
            self.send_from(group, rank, self.contribution(group, rank, psn, values[rank], opcode))

    # --- arithmetic, from first principles ---

    @property
    def dtype(self) -> type[np.int32 | np.uint32]:
        return np.int32 if self.spec.dtype is DType.INT32 else np.uint32

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest element."""
        info = np.iinfo(self.dtype)
        return int(info.min), int(info.max)

    def encode(self, values: Values) -> bytes:
        """Elements as a payload: big-endian, one after the other."""
        return values.astype(self.dtype).astype(np.dtype(self.dtype).newbyteorder(">")).tobytes()

    def decode(self, payload: bytes) -> Values:
        return np.frombuffer(payload, np.dtype(self.dtype).newbyteorder(">")).astype(np.int64)

    def lanes(self, value: int) -> Values:
        """The same element in every lane."""
        return np.full(self.spec.lanes, value, np.int64)

    def random_values(self, ranks: int) -> list[Values]:
        """A contribution for each rank; no partial sum of them leaves the range of an element."""
        low, high = self.limits
        if self.spec.op is Op.SUM:
            low, high = -(-low // ranks), high // ranks
        return list(self.np_random.integers(low, high, (ranks, self.spec.lanes), np.int64, endpoint=True))

    def reduced(self, values: Sequence[Values]) -> Values:
        """What NumPy says the program's op makes of contributions that do not overflow."""
        functions = {Op.SUM: np.add, Op.MIN: np.minimum, Op.MAX: np.maximum}
        result: Values = functions[self.spec.op].reduce(np.stack(values), axis=0)
        return result

    # --- what ranks receive ---

    def received(self, group: Group) -> Results:
        """All that the ranks of a group got since the last call. Fails when anything else was sent.

        Every packet must be right in itself, and translated: from the switch's end of the edge to the rank's.
        """
        return self.received_by(group)[0]

    def received_by(self, *groups: Group) -> list[Results]:
        """``received`` for several groups that share ports."""
        edges = {
            (edge.port, edge.remote.ip): (g, r) for g, group in enumerate(groups) for r, edge in enumerate(group.edges)
        }
        taken: list[list[list[RocePacket]]] = [[[] for _ in group.edges] for group in groups]
        for output in self.outputs():
            packet = self.parse(output)
            place = edges.get((output.port, packet.ip.dst))
            if place is None:
                raise AssertionError(
                    f"port {output.port}: a packet for {packet.ip.dst:#010x}, who is not there: {packet}"
                )
            g, rank = place
            self.check_translation(groups[g].edges[rank], packet)
            taken[g][rank].append(packet)
        return [Results(tuple(map(tuple, ranks))) for ranks in taken]

    def parse(self, output: Output) -> RocePacket:
        """An output as a RoCEv2 packet, after the checks that any receiver could make."""
        try:
            packet = parse(output.frame)
        except HeaderError as error:
            raise AssertionError(f"port {output.port}: {error}: {output.frame.hex()}") from error
        faults = problems(output.frame)
        if self.spec.icrc is Icrc.IGNORE:
            faults = [fault for fault in faults if "ICRC" not in fault]
        self.equal(f"port {output.port}: faults of {output.frame.hex()}", faults, [])
        return packet

    def check_translation(self, edge: Edge, packet: RocePacket) -> None:
        """The packet goes from this end of ``edge`` to the other, as a NIC's own would."""
        at = f"port {edge.port}"
        self.equal(f"{at}: destination MAC", packet.eth.dst, edge.remote.mac)
        self.equal(f"{at}: source MAC", packet.eth.src, edge.local.mac)
        self.equal(f"{at}: source address", packet.ip.src, edge.local.ip)
        self.equal(f"{at}: destination QP", packet.bth.dst_qp, edge.remote.qp)
        self.equal(f"{at}: UDP source port", packet.udp.src_port, edge.udp_src_port)
        self.equal(f"{at}: UDP checksum", packet.udp.checksum, 0)
        self.equal(f"{at}: TTL", packet.ip.ttl, OUTPUT_TTL)
        self.equal(f"{at}: P_Key", packet.bth.pkey, 0xFFFF)
        self.equal(f"{at}: solicited event", packet.bth.solicited, False)
        self.equal(f"{at}: padding", packet.padding, b"")

    def expect_results(
        self, group: Group, expected: Sequence[tuple[int, Values]], opcodes: Sequence[int] | None = None
    ) -> None:
        """Every rank has received exactly these results, as (PSN, elements), in this order; nobody else a thing."""
        self.check_results(group, self.received(group), expected, opcodes)

    def check_results(
        self,
        group: Group,
        results: Results,
        expected: Sequence[tuple[int, Values]],
        opcodes: Sequence[int] | None = None,
    ) -> None:
        """``expect_results`` on what has been received already."""
        for rank, packets in enumerate(results.of_rank):
            at = f"group {group.context}, rank {rank}"
            self.equal(f"{at}: PSNs of results", [p.bth.psn for p in packets], [psn for psn, _ in expected])
            wanted = opcodes or [Opcode.SEND_ONLY] * len(expected)
            self.equal(f"{at}: opcodes of results", [p.bth.opcode for p in packets], [int(o) for o in wanted])
            for packet, (psn, values) in zip(packets, expected, strict=True):
                # Ranks ask for an ACK at the end of a message, and wait for it.
                asked = ends_message(packet.bth.opcode)
                self.equal(f"{at}, PSN {psn}: ACK requested", packet.bth.ack_request, asked)
                self.equal(f"{at}, PSN {psn}: payload bytes", len(packet.payload), self.spec.payload_bytes)
                got = self.decode(packet.payload)
                wrong = np.flatnonzero(got != values)
                if len(wrong):
                    lane = int(wrong[0])
                    self.fail(
                        f"{at}, PSN {psn}: lane {lane} is {got[lane]}, expected {values[lane]} "
                        f"({len(wrong)} of {len(got)} lanes are wrong)"
                    )

    # --- counters and registers ---

    def drops(self) -> Counter[str]:
        """Packets dropped so far by reason, as ``Module.reason``; the fence leaves no trace here."""
        found: Counter[str] = Counter()
        for counter in ("IncIngress.drops", "IncEgress.drops"):
            for index, packets in self.counts(counter).items():
                found[self.drop_names.get((counter, index), f"{counter}[{index}]")] += packets
        return found

    def losses(self) -> Counter[str]:
        """``drops`` without contributions that wait in their slots, which are no loss."""
        found = self.drops()
        del found["AggregateData.absorbed"]
        return found

    def state(self) -> dict[str, list[int]]:
        """The program's registers: all of them, or for a large buffer as many lanes as are quick to read.

        ``slots`` is always there, which no contribution can get past.
        """
        total = self.spec.groups * self.spec.slots_per_group
        count = min(self.spec.lanes, STATE_WORDS // total)
        lanes = sorted({i * self.spec.lanes // count for i in range(count)}) if count else []
        return {name: self.control.registers(name) for name in ["slots", *(f"lane_{i}.partial" for i in lanes)]}

    def refused(self, group: Group, rank: int, frame: RocePacket | bytes, reason: str) -> None:
        """``frame`` from ``rank``'s port goes nowhere, is counted under ``reason`` once, and touches no state."""
        state, drops = self.state(), self.drops()
        self.send_from(group, rank, frame)
        self.equal(f"frames sent for one to be refused as {reason}", self.outputs(), [])
        self.equal("dropped", self.drops() - drops, Counter({reason: 1}))
        after = self.state()
        changed = [name for name in state if state[name] != after[name]]
        self.equal(f"registers changed by a frame to be refused as {reason}", changed, [])

    def complete(self, group: Group, psn: int) -> None:
        """An undisturbed round under ``psn`` works."""
        values = self.random_values(len(group.edges))
        self.contribute(group, range(len(group.edges)), psn, values)
        self.expect_results(group, [(psn, self.reduced(values))])


def psns(first: int, count: int) -> list[int]:
    """``count`` PSNs from ``first`` on, around the wrap."""
    return [serial.add(first, i) for i in range(count)]
