"""Connections that the manager registers, moves and releases at a leaf switch, and those that it learns of."""

from __future__ import annotations

from dataclasses import replace

from leaf import FIRST_SPINE, DestinationTest, LeafTest
from managed import AWAY, SPINES, ManagedTest

from p4gen.groups.addresses import MAPPED
from p4gen.manager.api import Code, ConnectionSpec, ManagerError
from p4gen.papers.themis.control import cm_entries
from p4gen.papers.themis.spec import Blocked, Cm
from p4gen.ptf.scenario import Output
from p4gen.rocev2.cm import RELIABLE, Datagram, Kind, Message, gid_of
from p4gen.rocev2.headers import BTH, Ethernet, IPv4
from p4gen.rocev2.packet import RocePacket, parse

COMING = ConnectionSpec("h0", "h2", 0x100, 0x200)
GOING = ConnectionSpec("h2", "h0", 0x300, 0x400)
MOST = 16
"""Tables with more room are not filled here."""


class _FilteredTest(ManagedTest):
    """A connection that ends at the switch, and whose NACKs it filters."""

    def unfit(self) -> str | None:
        """Needs Themis-D."""
        return super().unfit() or (None if self.spec.filters else "the program filters no NACKs")

    def setUp(self) -> None:
        super().setUp()
        self.status = self.register(COMING)


class ReusedIndexStartsClean(_FilteredTest):
    """A connection that gets the index of another one inherits neither its PSNs nor its blocked NACK."""

    def runTest(self) -> None:
        self.deliver(COMING, 0, 1, 3)
        self.equal("NACK(2) passes", self.passes(COMING, 2), False)
        self.manager.release_connection(self.status.number)
        again = self.register(COMING)
        self.equal("index", again.index, self.status.index)
        self.deliver(COMING, 6)  # of the path of 2, for two and for four paths; it makes no NACK
        self.equal("NACK(9) passes", self.passes(COMING, 9), True)
        self.equal("NACK(1) passes", self.passes(COMING, 1), False)
        self.deliver(COMING, 1)
        self.manager.release_connection(again.number)
        self.register(COMING)
        self.equal("NACK(2) passes", self.passes(COMING, 2), True)


class ChangeOfPathsIsTransparent(_FilteredTest):
    """From the first change at a switch to the last, the NACK of a packet that came late passes."""

    def unfit(self) -> str | None:
        """Needs routes over three of four spines."""
        if self.spec.architecture.masks_hashes:
            return f"{self.spec.arch}: a route has 2^n next hops, not {SPINES - 1}"
        return super().unfit()

    def setUp(self) -> None:
        self.seen: list[tuple[str, bool]] = []
        self.looking = False
        super().setUp()

    def step(self, switch: str, what: str) -> None:
        """See whether the NACK passes now."""
        if self.looking:
            self.seen.append((f"{switch}: {what}", self.passes(COMING, 2)))

    def runTest(self) -> None:
        self.deliver(COMING, 0, 1, 3, 2)
        self.equal("NACK(2) passes", self.passes(COMING, 2), False)
        self.looking = True
        for up, paths in ((False, SPINES - 1), (True, SPINES)):
            self.manager.report_links(AWAY, {1: up})
            self.until_sprayed(paths)
            steps = [what for what, _ in self.seen]
            first, last = steps.index("leaf1: delete answer_flows"), steps.index("leaf1: insert answer_flows")
            sprays = [at for at, what in enumerate(steps) if what.startswith(AWAY) and what.endswith("data_flows")]
            self.equal("changes of the source", len(sprays) > 1, True)
            self.equal("those outside", [at for at in sprays if not first < at < last], [])
            self.equal("NACKs that were blocked", [what for what, passed in self.seen[first:last] if not passed], [])
            self.equal("NACK(2) passes at last", self.passes(COMING, 2), False)
            self.seen.clear()


class TableFullIsRefused(ManagedTest):
    """The reason is given; the connection is routed as before."""

    def unfit(self) -> str | None:
        """Needs tables that are soon full."""
        many = f"the program has room for {self.spec.connections} connections"
        return super().unfit() or (many if self.spec.connections > MOST else None)

    def runTest(self) -> None:
        if self.spec.filters:
            self.fill(COMING, "end")
            self.deliver(COMING, 0, 1, 3, 2)
            self.equal("NACK(2) passes", self.passes(COMING, 2), True)
        if self.spec.sprays:
            before = self.paths(GOING, range(2 * SPINES))
            self.equal("ECMP's paths", len(set(before)), 1)
            self.fill(GOING, "start")
            self.equal("paths", self.paths(GOING, range(2 * SPINES)), before)

    def fill(self, spec: ConnectionSpec, what: str) -> None:
        """Register as many connections as there is room for, then ``spec``."""
        room = self.spec.connections
        for number in range(1, room + 1):
            self.register(replace(spec, source_qp=spec.source_qp + number, destination_qp=spec.destination_qp + number))
        try:
            self.register(spec)
        except ManagerError as error:
            self.equal("code", error.code, Code.NO_ROOM)
            why = f"leaf1: {room} connections {what} there, as many as its program knows (connections)"
            self.equal("reason", error.reason, why)
        else:
            self.fail("the connection was registered")


class GoBackNGetsItsNacks(DestinationTest):
    """A Go-Back-N NIC discards what comes before a gap is filled, and asks for it afterwards.

    Each case is what arrives, and after which packet the NIC sends which NACK. It must leave where the NIC needs it:
    the packet was lost, or was discarded after all larger ones had passed the switch.
    """

    def runTest(self) -> None:
        for nacks in (
            {3: 2, 5: 3},  # 0 1 3 2 5: NACK(2) is not needed, since 2 comes; 3 was discarded, and NACK(3) is
            {3: 2, 7: 3},
        ):
            (late, first), (_, second) = nacks.items()
            self.arrive(0, 1, late, first)
            self.blocked(first)
            self.arrive(max(nacks))
            self.forwarded(second)
            self.arrive(*range(second, max(nacks) + 2))  # the requester goes back
            self.renew()
        # 2 is lost, and a later packet of its path shows it; all that was discarded is sent again, and not asked for.
        self.arrive(0, 1, 3, 4)
        self.forwarded(2)
        self.arrive(2, 3, 4, 5, 6)
        self.equal("verdicts", self.verdicts()["LOST"], 1)
        self.equal("NACKs blocked", "UNKNOWN" in self.verdicts(), False)

    def renew(self) -> None:
        """A fresh generation of the connection."""
        self.unregister(self.flow)
        self.register(self.flow, epoch=self.epoch + 1)


class _CmTest(ManagedTest):
    """The hosts of the switch set up connections by RDMA CM."""

    def unfit(self) -> str | None:
        """Needs a program that copies such messages."""
        return super().unfit() or ("the program copies no RDMA CM messages" if self.spec.cm is Cm.IGNORE else None)

    def setUp(self) -> None:
        super().setUp()
        self.cpu = self.spec.architecture.cpu_port

    def message(self, source: str = "h2", destination: str = "h0") -> RocePacket:
        """A REQ of a host."""
        a, b = self.hosts[source].ip, self.hosts[destination].ip
        gids = {"local_gid": gid_of(a), "remote_gid": gid_of(b)}
        req = Message.of(
            Kind.REQ, 0x1234, local_id=0x77, local_qpn=0x300, transport=RELIABLE, path_mtu=5, private=0xCAFE, **gids
        )
        return Datagram(a, b, req).packet(self.ethernet(self.hosts[source]), tos=0x68)

    def routed(self, packet: RocePacket, outputs: list[Output]) -> None:
        """The message itself leaves as any other packet does."""
        left = [output for output in outputs if output.port != self.cpu]
        self.equal("frames but for the CPU", len(left), 1)
        sent = parse(left[0].frame)
        ip = replace(packet.ip, ttl=packet.ip.ttl - 1)
        ip = replace(ip, checksum=ip.right_checksum()) if isinstance(ip, IPv4) else ip
        self.equal("frame", left[0].frame.hex(), replace(packet, eth=sent.eth, ip=ip).to_bytes().hex())

    def copied(self, port: int, packet: RocePacket) -> bool:
        """Whether the CPU gets the packet as it came; it is routed in any case."""
        outputs = self.exchange(port, packet)
        self.routed(packet, outputs)
        copies = [output.frame for output in outputs if output.port == self.cpu]
        self.equal("copies", [copy.hex() for copy in copies], [packet.to_bytes().hex()] * len(copies))
        return len(copies) == 1


class CmGoesToCpu(_CmTest):
    """Messages of the switch's hosts go to the manager, and to their destination."""

    def runTest(self) -> None:
        for destination in ("h0", "h1", "h3"):
            self.equal("copied", self.copied(self.port_of("h2"), self.message(destination=destination)), True)
        tagged = replace(self.message(), vlan=0x6005)
        self.equal("with a tag", self.copied(self.port_of("h2"), tagged), True)


class CmOfOthersStays(_CmTest):
    """What comes from the fabric has been copied where it began; and no host speaks for another."""

    def runTest(self) -> None:
        self.equal("from the fabric", self.copied(0, self.message("h0", "h2")), False)
        self.equal("under another's address", self.copied(self.port_of("h3"), self.message("h2")), False)
        self.equal("under that of a remote host", self.copied(self.port_of("h3"), self.message("h1")), False)


class OnlyCmGoesToCpu(_CmTest):
    """Other management, other QPs and other services are none of the manager's business."""

    def runTest(self) -> None:
        packet = self.message()
        performance = packet.payload[:9] + bytes([4]) + packet.payload[10:]
        for name, other in (
            ("another class", replace(packet, payload=performance)),
            ("another QP", replace(packet, bth=BTH(packet.bth.opcode, 2, 0))),
            ("another service", replace(packet, bth=BTH(0x04, 1, 0))),
            ("another length", replace(packet, payload=packet.payload + bytes(4))),
        ):
            self.equal(f"{name}: copied", self.copied(self.port_of("h2"), other.sealed()), False)
        self.equal("the message", self.copied(self.port_of("h2"), packet), True)


class CmOfIpv4GoesToCpu(LeafTest):
    """Where RoCEv2 is over both, so do messages of a host with an IPv4 address; no IPv6 header speaks for it."""

    over_ipv6 = False

    def unfit(self) -> str | None:
        """Needs a program that copies messages of both kinds."""
        if self.spec.cm is Cm.IGNORE:
            return "the program copies no RDMA CM messages"
        return None if self.spec.roce_ipv6 else "the program does not take RoCEv2 over IPv6"

    def runTest(self) -> None:
        self.control.insert(*cm_entries(self.spec, {0: self.hosts[0]}))
        ends = self.hosts[0], self.away
        for (src, dst), copied in ((ends, True), ([MAPPED << 32 | ip for ip in ends], False)):
            message = Datagram(src, dst, Message.of(Kind.DREQ, local_id=0x77)).packet(Ethernet(1, 2))
            self.send(0, message.to_bytes())
            copies = [output.frame for output in self.outputs() if output.port == self.spec.architecture.cpu_port]
            self.equal("copies", copies, [message.to_bytes()] * copied)


class CopyIsNoNack(_CmTest):
    """Beside copies for the manager, the switch still makes NACKs from copies of requests."""

    def unfit(self) -> str | None:
        """Needs Themis-D."""
        return super().unfit() or (None if self.spec.filters else "the program filters no NACKs")

    def runTest(self) -> None:
        self.register(COMING)
        self.deliver(COMING, 0, 1, 3)
        nack = self.exchange(self.port_of("h2"), self.answer(COMING, 2))
        self.equal("frames for a blocked NACK", len(nack), 1 if self.spec.blocked is Blocked.ACK else 0)
        self.equal("copied", self.copied(self.port_of("h2"), self.message()), True)
        made = [output for output in self.request(COMING, 6) if output.port < FIRST_SPINE + SPINES - 2]
        self.equal("NACKs made", [parse(output.frame).bth.psn for output in made], [2])
