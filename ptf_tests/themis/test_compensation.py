"""Themis-D's NACKs in place of those that it has blocked: 0 1 3 over two paths, NACK(2) blocked (section 3.4)."""

from __future__ import annotations

from dataclasses import replace

from leaf import ACK, FIRST_SPINE, RNR, DestinationTest

from p4gen.papers.themis.control import spray_entry
from p4gen.ptf.scenario import Output
from p4gen.rocev2.headers import IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse, problems


class CompensationTest(DestinationTest):
    """NACK(2) of the connection is blocked, and armed."""

    first = 0
    MSN = 0x00CAFE

    def setUp(self) -> None:
        super().setUp()
        self.arrive(self.first, self.first + 1, self.first + 3)
        self.blocked(self.first + 2, msn=self.MSN)

    def made_for(self, request: RocePacket) -> list[Output]:
        """The packets that leave for the fabric when a request arrives, which must reach the host whole."""
        self.send(FIRST_SPINE, request.to_bytes())
        outputs = self.outputs()
        to_host = [output for output in outputs if output.port < FIRST_SPINE]
        self.equal("frames for the host", to_host, [Output(0, self.routed(request, 0))])
        return [output for output in outputs if output.port >= FIRST_SPINE]

    def compensated(self, trigger: int, psn: int) -> RocePacket:
        """The NACK for ``psn`` that leaves when ``trigger`` comes."""
        made = self.made_for(self.flow.request(trigger))
        self.equal("NACKs", len(made), 1)
        self.equal("what is wrong with it", list(problems(made[0].frame)), [])
        packet = parse(made[0].frame)
        self.equal("port", made[0].port, self.hashed(self.flow.answer(psn)))
        self.equal("PSN", packet.bth.psn, psn % (1 << 24))
        return packet


class Figure4cCompensates(CompensationTest):
    """4 takes the path of 2 and comes before it: one NACK(2) goes to the requester."""

    def runTest(self) -> None:
        packet = self.compensated(4, 2)
        requester = self.flow.connection.requester
        self.equal("to", (packet.ip.dst, packet.bth.dst_qp), (requester.ip, requester.qp))
        self.equal("verdicts", self.verdicts()["COMPENSATED"], 1)


class OtherPathDoesNot(CompensationTest):
    """5 took another path and does not show that 2 is lost; 4 does."""

    def runTest(self) -> None:
        self.arrive(5)
        self.compensated(4, 2)


class SmallerPsnDoesNot(CompensationTest):
    """0 takes the path of 2, too, but was sent before it."""

    def runTest(self) -> None:
        self.arrive(0)
        self.compensated(4, 2)


class FarPsnsAreOlderOrNewer(CompensationTest):
    """Nearly half a turn of PSNs before 2, and behind it."""

    def runTest(self) -> None:
        self.arrive(-(5 << 20))
        self.compensated(5 << 20, 2)


class ArrivalDisarms(CompensationTest):
    """2, then 4: silence, and 2 is known to have come."""

    def runTest(self) -> None:
        self.arrive(2, 4)
        self.equal("verdicts", self.verdicts()["DISARMED"], 1)


class OncePerBlock(CompensationTest):
    """4, 6: one NACK."""

    def runTest(self) -> None:
        self.compensated(4, 2)
        self.arrive(6)


class CompensatedNackIsTheNics(CompensationTest):
    """It is the NIC's NACK as it would have left, but for the IPv4 identification or the flow label:
    62 or 82 bytes, MSN, ICRC and all."""

    over_ipv6 = False

    def runTest(self) -> None:
        for opcode, payload in ((Opcode.SEND_MIDDLE, bytes(1024)), (Opcode.WRITE_ONLY, b"with a RETH")):
            request = self.flow.request(4, opcode, payload)
            request = replace(request, ip=replace(request.ip, tos=0x03, ttl=17))
            bth = replace(request.bth, solicited=True, pad_count=-len(payload) % 4, ack_request=True, reserved6=0x20)
            request = replace(request, bth=bth, payload=payload + bytes(bth.pad_count)).sealed().with_udp_checksum()
            made = self.made_for(request)
            self.equal("NACKs", len(made), 1)
            self.equal("bytes", len(made[0].frame), self.nack_bytes)
            self.equal("what is wrong with it", list(problems(made[0].frame)), [])
            nics, ip = self.flow.answer(2, msn=self.MSN), parse(made[0].frame).ip
            own = replace(nics.ipv4, identification=ip.identification) if isinstance(ip, IPv4) else nics.ip
            nics = replace(nics, ip=own if isinstance(own, IPv4) else replace(own, flow_label=0)).sealed()
            self.equal("frame", made[0].frame.hex(), self.routed(nics, made[0].port).hex())
            self.begin_again()

    def begin_again(self) -> None:
        """Arms NACK(2) once more, in a fresh generation of the connection."""
        self.unregister(self.flow)
        self.register(self.flow, epoch=self.epoch + 1)
        self.arrive(0, 1, 3)
        self.blocked(2, msn=self.MSN)


class CompensatedNackIsTheNicsOverIpv6(CompensatedNackIsTheNics):
    over_ipv6 = True


class CompensatedNackIsTagged(CompensationTest):
    """A request with an 802.1Q tag shows the loss as well; the NACK has the same tag."""

    def runTest(self) -> None:
        request = replace(self.flow.request(4), vlan=0x6005)
        made = self.made_for(request)
        self.equal("NACKs", len(made), 1)
        self.equal("bytes", len(made[0].frame), self.nack_bytes + 4)
        packet = parse(made[0].frame)
        self.equal("tag", packet.vlan, 0x6005)
        self.equal("what is wrong with it", list(problems(made[0].frame)), [])


class TriggerGoesOnUnchanged(CompensationTest):
    """4 reaches the NIC whole, of 64 bytes to 4 KiB."""

    def runTest(self) -> None:
        for size in (2, 4096):
            request = self.flow.request(4, payload=self.random.randbytes(size))
            self.made_for(request)


class OwnNackIsNotFiltered(CompensationTest):
    """The NACK that the switch makes is not judged or blocked itself."""

    def runTest(self) -> None:
        before = self.verdicts()
        self.compensated(4, 2)
        self.equal("verdicts", self.verdicts(), before | {"COMPENSATED": 1})


class CompensatedNackFollowsRoutes(CompensationTest):
    """After a change of routes, it takes the new port."""

    def runTest(self) -> None:
        self.control.delete(*self.ways_out())
        self.control.insert(*self.ways_out(1, FIRST_SPINE + 3))
        (made,) = self.made_for(self.flow.request(4))
        self.equal("port", made.port, FIRST_SPINE + 3)


class CompensationAcrossTheWrap(CompensationTest):
    """BePSN is the last PSN before the wrap, the trigger is after it."""

    first = (1 << 24) - 3

    def runTest(self) -> None:
        self.compensated(1, (1 << 24) - 1)


class NewerBlockReplaces(CompensationTest):
    """NACK(2), its arrival, NACK(6): only 6 is armed."""

    def runTest(self) -> None:
        self.arrive(2, 5, 7)
        self.blocked(6)
        self.compensated(8, 6)
        self.arrive(10)


class NewerNackThatPassesReplaces(CompensationTest):
    """NACK(5) passes, as 7 shows its loss. It also says that 2 has arrived, so 4 shows nothing."""

    def runTest(self) -> None:
        self.arrive(7)
        self.forwarded(5)
        self.arrive(4)


class AckBeyondDisarms(CompensationTest):
    """ACK(3), then 4: silence."""

    def runTest(self) -> None:
        self.passes(self.flow.answer(3, ACK))
        self.arrive(4)


class AckBeforeDoesNot(CompensationTest):
    """ACK(1) does not cover 2: 4 still shows its loss."""

    def runTest(self) -> None:
        self.passes(self.flow.answer(1, ACK))
        self.compensated(4, 2)


class RnrNakDisarmsNothing(CompensationTest):
    """Neither RNR NAK(3) nor a NAK that ends the connection shows that 2 has arrived."""

    def runTest(self) -> None:
        for syndrome in (RNR, 0x61):
            self.passes(self.flow.answer(3, syndrome))
        self.compensated(4, 2)


class ClassIsNotDistance(CompensationTest):
    """Three paths, 252 253 255, NACK(254): 257 is three PSNs on, but the order of paths starts again at 256."""

    n = 3
    first = 252

    def runTest(self) -> None:
        self.arrive(256, 257)
        self.compensated(258, 254)


class OldBlockIsForgotten(CompensationTest):
    """A connection that takes over the words of state of another does not get that one's NACK."""

    def runTest(self) -> None:
        self.unregister(self.flow)
        self.register(self.flow, epoch=2)
        self.arrive(4)


class TwoConnectionsTwoBlocks(CompensationTest):
    """Another connection's requests show no loss of this one's."""

    def runTest(self) -> None:
        other = self.incoming(1)
        self.register(other, index=1)
        self.arrive(4, 6, flow=other)
        self.compensated(4, 2)


class WordsAreAConnectionsOwn(DestinationTest):
    """Four connections side by side: each is judged by its own PSNs, and gets its own NACK."""

    n = 4

    def runTest(self) -> None:
        self.unregister(self.flow)
        flows = [(self.incoming(1 + index), first << 12) for index, first in enumerate((3, 1, 4, 2))]
        for index, (flow, _) in enumerate(flows):
            self.register(flow, index=index)
        for flow, first in flows:
            self.arrive(*range(first, first + 4), flow=flow)
        for flow, first in flows:
            self.arrive(first + 5, first + 8, flow=flow)
        for index, (flow, first) in enumerate(flows):
            self.forwarded(first + 4, flow)
            self.forwarded(first + 1, flow)
            found = {name: count for name, count in self.verdicts(index).items() if name != "UNDECIDED"}
            self.equal("verdicts", found, {"LOST": 1, "LAST_HOP": 1})
            self.blocked(first + 6, flow, msn=index + 1)
        if self.themis.sprays:  # a connection that begins here has none of these words
            away = self.outgoing()
            self.control.insert(spray_entry(self.themis, away.connection, 1))
            self.ports_taken(map(away.request, range(4)))
        for index, (flow, first) in enumerate(flows):
            self.send(FIRST_SPINE, flow.request(first + 10).to_bytes())
            made = [parse(output.frame) for output in self.outputs() if output.port >= FIRST_SPINE]
            answer = flow.answer(first + 6, msn=index + 1)
            self.equal("NACKs", [(p.udp, p.bth, p.aeth) for p in made], [(answer.udp, answer.bth, answer.aeth)])


class LostAgainIsLeftToTheTimer(CompensationTest):
    """A retransmission that is lost as well gets no second NACK: the NIC sends none, and the switch made its one."""

    def runTest(self) -> None:
        self.compensated(4, 2)
        self.arrive(6, 8, 10)
