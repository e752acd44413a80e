"""Themis-S sprays requests by PSN; other packets take ECMP's path (section 3.2). Usually with four paths."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from leaf import ACK, FIRST_SPINE, NAK, RNR, SPINES, Flow, LeafTest

from p4gen.papers.themis.control import PathSet, path_set_entries, spray_entry
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.ptf.scenario import Output
from p4gen.rocev2.headers import AETH, BTH
from p4gen.rocev2.opcodes import Opcode

REQUESTS = (*range(0x0D), 0x13, 0x14, 0x16, 0x17)
ANSWERS = (*range(0x0D, 0x13),)


class SprayTest(LeafTest):
    """Connection ``flow`` is sprayed over ``n`` paths, or those of ``weights``."""

    n = SPINES
    weights: tuple[int, ...] = ()
    writes_only = False

    def misfit(self, spec: ThemisSpec) -> str | None:
        """Needs Themis-S that chooses next hops itself."""
        if not spec.sprays:
            return "the program sprays nothing by PSN"
        if spec.tiers > 2:
            return "the program leaves the choice of next hops to ECMP"
        if spec.architecture.masks_hashes and self.n & (self.n - 1):
            return f"{spec.arch}: a route has 2^n next hops, not {self.n}"
        return super().misfit(spec)

    def setUp(self) -> None:
        super().setUp()
        if self.n != SPINES:
            self.control.delete(*self.ways_out())
            self.route_away(self.n)
        self.path_set(*(self.weights or (1,) * self.n))
        flow = self.outgoing()
        self.flow = replace(flow, connection=replace(flow.connection, writes_only=self.writes_only))
        self.base = self.base_of(self.flow)
        self.register(self.flow)

    def register(self, flow: Flow) -> None:
        """Have the switch spray a connection."""
        self.control.insert(spray_entry(self.themis, flow.connection, 1))

    def paths(self, *psns: int, flow: Flow | None = None) -> list[int]:
        """The spines, from 0, that requests take."""
        flow = flow or self.flow
        return [port - FIRST_SPINE for port in self.ports_taken([flow.request(psn) for psn in psns])]


class SprayFollowsPsn(SprayTest):
    """PSN mod N, counted from P_base (Eq. 1)."""

    def runTest(self) -> None:
        start = self.random.randrange(1 << 20)
        psns = range(start, start + 4 * SPINES)
        self.equal("paths", self.paths(*psns), [(psn % SPINES + self.base) % SPINES for psn in psns])


class OneNextHopIsLeft(SprayTest):
    """Where a route has one next hop, all paths are that one."""

    def runTest(self) -> None:
        self.control.delete(*self.ways_out())
        self.route_away(1)
        self.equal("paths", self.paths(*range(2 * SPINES)), [0] * 2 * SPINES)


class SprayBaseIsEcmps(SprayTest):
    """P_base is the path before registration, for every UDP source port."""

    def runTest(self) -> None:
        bases = set()
        for port in range(51000, 51012):
            flow = replace(self.outgoing(5), request_port=port)
            base = self.base_of(flow)
            bases.add(base)
            self.register(flow)
            self.equal("path of PSN 0", self.paths(0, flow=flow), [base])
            self.equal("path of PSN 1", self.paths(1, flow=flow), [(base + 1) % SPINES])
            self.control.delete(spray_entry(self.themis, flow.connection, 1))
        self.equal("different bases were seen", len(bases) > 1, True)


class SprayIsUniform(SprayTest):
    """256 PSNs, the same number by each path."""

    def runTest(self) -> None:
        self.equal("paths", sorted(Counter(self.paths(*range(256))).values()), [256 // SPINES] * SPINES)


class SprayOfThreePaths(SprayTest):
    """N need not be a power of two: 85 or 86 of 256 PSNs by each of three paths."""

    n = 3

    def runTest(self) -> None:
        taken = self.paths(*range(256))
        self.equal("paths", sorted(Counter(taken).values()), [85, 85, 86])
        self.equal("the next 256", self.paths(*range(256, 262)), taken[:6])


class SprayAcrossTheWrap(SprayTest):
    """2^24 - 2 to 1 go on in turn."""

    def runTest(self) -> None:
        first = (1 << 24) - 2
        wanted = [((first + i) % SPINES + self.base) % SPINES for i in range(4)]
        self.equal("paths", self.paths(*(first + i for i in range(4))), wanted)


class RetransmissionTakesItsPath(SprayTest):
    """The same PSN again takes the same path, whatever came between."""

    def runTest(self) -> None:
        first = self.paths(7, 8, 9)
        self.equal("paths", self.paths(9, 7, 8), [first[2], first[0], first[1]])


class SpoiltRequestsAreSprayed(SprayTest):
    """A request with a wrong ICRC or IPv4 checksum takes the path of its PSN, and its receiver discards it."""

    def runTest(self) -> None:
        for psn in range(SPINES):
            sound = self.flow.request(psn)
            wrong = [replace(sound, icrc=bytes(4))]
            if not self.ipv6:
                wrong.append(replace(sound, ip=replace(sound.ipv4, checksum=sound.ipv4.checksum ^ 0x0400)))
            for packet in wrong:
                self.send(0, packet.to_bytes())
                self.equal("ports", [o.port - FIRST_SPINE for o in self.outputs()], [(psn + self.base) % SPINES])


class WeightsAreKept(SprayTest):
    """Weights 3 : 1 are 192 and 64 of 256 PSNs."""

    n = 2
    weights = (3, 1)

    def runTest(self) -> None:
        self.equal("paths", sorted(Counter(self.paths(*range(256))).values()), [64, 192])


class AnswersAreNotSprayed(SprayTest):
    """ACKs, NAKs, RNR NAKs and CNPs of a QP take ECMP's path."""

    def runTest(self) -> None:
        for psn in range(SPINES):
            packet = self.flow.request(psn)
            for syndrome in (ACK, NAK, RNR):
                bth = replace(packet.bth, opcode=Opcode.ACKNOWLEDGE)
                answer = replace(packet, bth=bth, aeth=AETH(syndrome, 1), payload=b"").sealed()
                self.equal("port", self.ports_taken([answer]), [FIRST_SPINE + self.base])
            cnp = replace(packet, bth=replace(packet.bth, opcode=Opcode.CNP), payload=bytes(16)).sealed()
            self.equal("port", self.ports_taken([cnp]), [FIRST_SPINE + self.base])


class ReadResponsesAreNotSprayed(SprayTest):
    """0x0D to 0x10, and the answer to an atomic operation, stay on P_base."""

    def runTest(self) -> None:
        for opcode in ANSWERS:
            packets = [self.flow.request(psn, opcode) for psn in range(SPINES)]
            self.equal("ports", set(self.ports_taken(packets)), {FIRST_SPINE + self.base})


class ReadRequestsAndAtomicsAre(SprayTest):
    """Every request of a reliable connection is sprayed."""

    def runTest(self) -> None:
        for opcode in REQUESTS:
            packets = [self.flow.request(psn, opcode) for psn in range(SPINES)]
            self.equal(f"ports of {opcode:#x}", len(set(self.ports_taken(packets))), SPINES)


class WritesOnlyAreSprayed(SprayTest):
    """A connection whose NIC takes only WRITEs out of order: the rest stays on P_base."""

    writes_only = True

    def runTest(self) -> None:
        for opcode in REQUESTS:
            packets = [self.flow.request(psn, opcode) for psn in range(SPINES)]
            sprayed = len(set(self.ports_taken(packets))) > 1
            self.equal(f"{opcode:#x} sprayed", sprayed, 0x06 <= opcode <= 0x0B)


class OnlyRcIsSprayed(SprayTest):
    """UC, RD and UD with the same QPN go by their hash, as does QP 1."""

    def runTest(self) -> None:
        for opcode in (0x15, 0x18, 0x20, 0x26, 0x40, 0x64, 0x65, 0xFF):
            packets = [self.flow.request(psn) for psn in range(SPINES)]
            others = [replace(p, bth=replace(p.bth, opcode=opcode)).sealed() for p in packets]
            self.equal(f"ports of {opcode:#x}", set(self.ports_taken(others)), {FIRST_SPINE + self.base})
        managed = [replace(p, bth=BTH(0x64, 1, p.bth.psn)).sealed() for p in packets]
        self.equal("ports of QP 1", len(set(self.ports_taken(managed))), 1)


class UnregisteredQpIsHashed(SprayTest):
    """Another QP of the same hosts has one path."""

    def runTest(self) -> None:
        self.equal("paths", len(set(self.paths(*range(8), flow=self.outgoing(3)))), 1)


class SameRackStays(SprayTest):
    """To a host of the same rack there is one port."""

    def runTest(self) -> None:
        packets = [self.flow.request(psn) for psn in range(SPINES)]
        inside = [replace(packet, ip=replace(packet.ip, dst=self.hosts[1])).sealed() for packet in packets]
        self.equal("ports", self.ports_taken(inside), [1] * SPINES)


class TwoQpsTwoBases(SprayTest):
    """Two connections, their packets interleaved: each has its own sequence."""

    def runTest(self) -> None:
        other = self.outgoing(1)
        base = self.base_of(other)
        self.register(other)
        for psn in range(8):
            self.equal("path", self.paths(psn), [(psn + self.base) % SPINES])
            self.equal("path of the other", self.paths(psn, flow=other), [(psn + base) % SPINES])


class SprayLeavesPacketWhole(SprayTest):
    """All but MAC addresses, TTL and IPv4 checksum stays, of 64 bytes to 4 KiB."""

    def runTest(self) -> None:
        for size in (0, 1, 64, 1024, 4096):
            request = self.flow.request(self.random.randrange(1 << 24), payload=self.random.randbytes(size))
            self.ports_taken([request])


class PathSetShrinks(SprayTest):
    """A path of weight 0 gets nothing, and the others get equal shares."""

    def runTest(self) -> None:
        self.control.delete(*path_set_entries(self.spec, PathSet.equal(1, SPINES)))
        self.path_set(1, 0, 1, 1)
        taken = Counter(self.paths(*range(256)))
        self.equal("the path that is not used", taken[(1 + self.base) % SPINES], 0)
        self.equal("shares", sorted(taken.values()), [85, 85, 86])


class RevertToEcmp(SprayTest):
    """The entry is gone: all packets are on P_base."""

    def runTest(self) -> None:
        self.control.delete(spray_entry(self.themis, self.flow.connection, 1))
        self.equal("paths", set(self.paths(*range(8))), {self.base})


class NoPathSetNoSpray(SprayTest):
    """A connection without its path set takes P_base, and loses no packet."""

    def runTest(self) -> None:
        other = self.outgoing(2)
        base = self.base_of(other)
        self.control.insert(spray_entry(self.themis, other.connection, 2))
        self.equal("paths", set(self.paths(*range(8), flow=other)), {base})


class OtherTrafficIsRouted(SprayTest):
    """IP packets other than RoCE, and fragments, are routed unchanged."""

    def runTest(self) -> None:
        request = self.flow.request(3)
        fragment = replace(request.ip, protocol=44) if self.ipv6 else replace(request.ipv4, flags=1)
        for changed in (
            replace(request, ip=replace(request.ip, protocol=253)),
            replace(request, udp=replace(request.udp, dst_port=4790)),
            replace(request, ip=fragment),
        ):
            frame = changed.sealed()
            self.send(0, frame.to_bytes())
            output = self.only(self.outputs())
            self.equal("frame", output, Output(output.port, self.routed(frame, output.port)))
