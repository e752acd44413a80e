"""Three tiers: Themis-S changes the UDP source port by PSN, Themis-D changes it back (section 3.2, Figure 3)."""

from __future__ import annotations

from dataclasses import replace

from leaf import ACK, FIRST_SPINE, SPINES, Flow, LeafTest

from p4gen.papers.themis.control import filter_entries, path_map_entries, spray_entry
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.ptf.scenario import Output
from p4gen.rocev2.headers import AETH
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, problems

DELTAS = (0, 0x0101, 0x2A02, 0x3FFF)


class MapTest(LeafTest):
    """Path set 1 of four paths, with a PathMap."""

    def misfit(self, spec: ThemisSpec) -> str | None:
        """Needs a program for three tiers."""
        if spec.tiers == 2:
            return "the program is for two tiers"
        return super().misfit(spec)

    def setUp(self) -> None:
        super().setUp()
        self.path_set(*(1,) * SPINES)
        self.control.insert(*path_map_entries(self.spec, 1, DELTAS))

    def shifted(self, packet: RocePacket, path: int) -> RocePacket:
        """A request on its way over a path: its UDP source port differs, it is marked, and its UDP checksum, if it has
        one, is right."""
        udp = replace(packet.udp, src_port=packet.udp.src_port ^ DELTAS[path])
        changed = replace(packet, udp=udp, bth=replace(packet.bth, reserved6=packet.bth.reserved6 | 1))
        return changed.with_udp_checksum() if packet.udp.checksum else changed


class SourceTest(MapTest):
    """Connection ``flow`` is sprayed."""

    def unfit(self) -> str | None:
        return None if self.spec.sprays else "the program sprays nothing"

    def setUp(self) -> None:
        super().setUp()
        self.flow = self.outgoing()
        self.control.insert(spray_entry(self.themis, self.flow.connection, 1))

    def leaves_as(self, packet: RocePacket, wanted: RocePacket) -> None:
        """A packet as it leaves, with routing's changes undone, by any port."""
        self.send(0, packet.to_bytes())
        output = self.only(self.outputs())
        self.equal("by a spine's port", output.port >= FIRST_SPINE, True)
        self.equal("frame", output.frame.hex(), self.routed(wanted, output.port).hex())


class PathMapXorsPort(SourceTest):
    """The source port is that of the request, XOR the change of its PSN's path; path 0 has none."""

    def runTest(self) -> None:
        for psn in (*range(8), (1 << 24) - 1):
            request = self.flow.request(psn)
            self.leaves_as(request, self.shifted(request, psn % SPINES))


class PathMapMendsUdpChecksum(SourceTest):
    """A UDP checksum stays right, over the whole range of sums; 0 stays 0."""

    def runTest(self) -> None:
        for psn in range(256):
            request = self.flow.request(psn, payload=self.random.randbytes(16)).with_udp_checksum()
            self.leaves_as(request, self.shifted(request, psn % SPINES))


class ChecksumOfZeroIsSentAsOnes(SourceTest):
    """A checksum that comes to 0 with the new port is sent as 0xffff: 0 would mean that there is none (RFC 768)."""

    def runTest(self) -> None:
        request = self.flow.request(1)
        for filler in range(1 << 16):
            packet = replace(request, payload=filler.to_bytes(2) + bytes(6)).with_udp_checksum()
            wanted = self.shifted(packet, 1)
            if wanted.udp.checksum == 0xFFFF:
                self.leaves_as(packet, wanted)
                return
        raise AssertionError("no payload has such a checksum")


class OthersKeepTheirPort(SourceTest):
    """Answers, and requests of other connections, leave as they came."""

    def runTest(self) -> None:
        other = self.outgoing(1)
        for psn in range(SPINES):
            self.ports_taken([other.request(psn)])
            request = self.flow.request(psn)
            bth = replace(request.bth, opcode=Opcode.ACKNOWLEDGE)
            self.ports_taken([replace(request, bth=bth, aeth=AETH(ACK, 1), payload=b"").sealed()])


class DestinationRestoresPort(MapTest):
    """The NIC gets the bytes that were sent, with a right ICRC, and a right UDP checksum if there is one."""

    def unfit(self) -> str | None:
        return None if self.spec.filters else "the program filters no NACKs"

    def runTest(self) -> None:
        flow: Flow = self.incoming()
        self.control.insert(*filter_entries(self.themis, flow.connection, 1, index=0, epoch=1, port=0))
        for psn in range(2 * SPINES):
            for sent in (flow.request(psn), flow.request(psn).with_udp_checksum()):
                self.send(FIRST_SPINE, self.shifted(sent, psn % SPINES).to_bytes())
                output = self.only(self.outputs())
                self.equal("frame", output, Output(0, self.routed(sent, 0)))
                self.equal("what is wrong with it", list(problems(output.frame)), [])


class MarkedRequestsAreMapped(SourceTest):
    """A request that has the mark before it is sprayed is sprayed like any other; its UDP checksum stays right."""

    def runTest(self) -> None:
        for psn in range(SPINES):
            request = self.flow.request(psn)
            marked = replace(request, bth=replace(request.bth, reserved6=1)).with_udp_checksum()
            self.leaves_as(marked, self.shifted(marked, psn % SPINES))


class UnmarkedRequestsKeepTheirPort(MapTest):
    """What the source's leaf has not sprayed reaches the NIC as it was sent, although the connection has an entry."""

    def unfit(self) -> str | None:
        return None if self.spec.filters else "the program filters no NACKs"

    def runTest(self) -> None:
        flow: Flow = self.incoming()
        self.control.insert(*filter_entries(self.themis, flow.connection, 1, index=0, epoch=1, port=0))
        for psn in range(SPINES):
            self.send(FIRST_SPINE, flow.request(psn).to_bytes())
            output = self.only(self.outputs())
            self.equal("frame", output, Output(0, self.routed(flow.request(psn), 0)))


class NacksKeepTheirPort(MapTest):
    """A NACK that passes leaves as it came, whatever path its PSN took."""

    def unfit(self) -> str | None:
        return None if self.spec.filters else "the program filters no NACKs"

    def runTest(self) -> None:
        flow: Flow = self.incoming()
        self.control.insert(*filter_entries(self.themis, flow.connection, 1, index=0, epoch=1, port=0))
        self.ports_taken([flow.answer(psn) for psn in range(2 * SPINES)])
