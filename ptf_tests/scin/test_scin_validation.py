"""Packets that are not as they should be: dropped with a reason before any state is touched."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

from malformed import OTHER_LENGTHS, malformed
from pulls import ANSWERS, Call, PullTest, ranks

from p4gen.arch.ports import CPU_PORT
from p4gen.groups.config import routing
from p4gen.groups.group import NextHop, Route
from p4gen.model.entries import Exact
from p4gen.papers.scin.control import Role, configuration, roles
from p4gen.ptf.icrcs import solved, with_icrc
from p4gen.ptf.scenario import Output
from p4gen.rocev2.codes import ETHERTYPE_VLAN
from p4gen.rocev2.headers import Ethernet, ipv4
from p4gen.rocev2.packet import RocePacket

TAG = 5 << 13 | 100


class MalformedPacketsTouchNothing(PullTest):
    """An arrival, READ responses, ACKs, and a congestion notification: cut off, with a wrong checksum, version,
    partition, length or padding, and in other kinds' lengths; with a tag, too. A tick in
    another length is none."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        following = self.call(call.context, 1, 1, 2)
        answers = [self.answer(call.context, 1, role, call.psn) for role in roles(self.spec)]
        responses = [self.response(call, 1, 0, opcode) for opcode in ANSWERS]
        for packet in (self.arrival(following, 1), *responses, *answers, self.notification(call.context, 1)):
            for vlan in (None, 100):
                for frame, reason in malformed(replace(packet, vlan=vlan)):
                    self.refused(self.port(1), frame, f"ValidatePacket.{reason}")
        tick = self.ticking(call.context)
        for more in OTHER_LENGTHS:
            longer = replace(tick, payload=tick.payload + bytes(more)).sealed()
            self.refused(CPU_PORT, longer.to_bytes(), "LookupTable.wrong_port")
        self.finish(call)


class OtherOpcodesAreUnknown(PullTest):
    """Packets that have the length of those of a call, and another opcode."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        following = self.call(call.context, 1, 1, 2)
        answers = [self.answer(call.context, 1, role, call.data_psn(0)) for role in roles(self.spec)]
        responses = [self.response(call, 1, 0, opcode) for opcode in ANSWERS]
        for packet in (self.arrival(following, 1), *responses, *answers, self.notification(call.context, 1)):
            for opcode in (0x00, 0x12, 0xC2):  # SEND FIRST, ATOMIC ACKNOWLEDGE, and nobody's
                other = replace(packet, bth=replace(packet.bth, opcode=opcode)).sealed()
                self.refused(self.port(1), other.to_bytes(), "ValidatePacket.unknown")
        self.finish(call)


class NotificationsMeanNothing(PullTest):
    """A rank's NIC may notify of congestion on any of its connections: nothing follows. A corrupt one is refused."""

    def runTest(self) -> None:
        context = self.served()
        for role in roles(self.spec):
            said = self.notification(context, 2, role)
            self.refused(self.port(2), said.to_bytes(), "ReplicateData.absorbed")
            if self.spec.icrc.checked:
                corrupt = replace(said, payload=bytes((said.payload[0] ^ 1, *said.payload[1:])))
                self.refused(self.port(2), corrupt.to_bytes(), "CheckIcrc.bad_icrc")
        self.finish(self.begin(context, 1))


class IcrcAtTheLimits(PullTest):
    """A right ICRC of all ones, or of zeros, is right, whatever the packet is."""

    over_ipv6 = False

    def unfit(self) -> str | None:
        return None if self.spec.icrc.checked else "the program does not check the ICRC"

    def runTest(self) -> None:
        context = self.served()
        for number, wanted in enumerate((b"\xff" * 4, bytes(4))):
            call = self.call(context, 1, number, number)
            arrivals = [self.arrival(call, edge) for edge in (1, 2, 3)]
            responses = [self.response(call, edge, 0, ANSWERS[edge - 1]) for edge in (1, 2, 3)]
            acks = [self.answer(context, edge, Role.WRITE, call.data_psn(0)) for edge in (1, 2, 3)]
            for edge, arrival in enumerate(arrivals, 1):
                self.post(edge, with_icrc(arrival, wanted))
            self._waves[context.context, context.epoch, number + 1] = call.waves + 1
            self.expect([*(self.acked(call, edge) for edge in (1, 2, 3)), *self.reads(call, [0])])
            self.post(1, with_icrc(self.notification(context, 1), wanted))
            self.send(CPU_PORT, with_icrc(self.ticking(context), wanted).to_bytes())
            for edge, response in enumerate(responses, 1):
                self.post(edge, with_icrc(response, wanted))
            self.expect(self.writes(call, 0))
            for edge, ack in enumerate(acks, 1):
                self.post(edge, with_icrc(ack, wanted))
            self.expect(self.flags(call))
            self.took_flag(call)


class WhatLeavesHasAnyIcrc(PullTest):
    """Answers to arrivals, READs, WRITEs and flags whose right ICRC is all ones, or zeros: a rank's address is so."""

    def unfit(self) -> str | None:
        return None if self.spec.icrc.right else "the program leaves ICRCs as they come"

    def runTest(self) -> None:
        calls = [self.solved(number, wanted) for number, wanted in enumerate((b"\xff" * 4, bytes(4)))]
        self.install(configuration(self.spec, [call.context for call in calls]))
        for call in calls:
            self.finish(self.started(call))

    def solved(self, number: int, wanted: bytes) -> Call:
        """A call whose packets for some connections have the ICRC."""
        call = self.call(self.context(0b111, 0b011, number=number), 2)
        for edge, role in ((1, Role.SYNC), (3, Role.SYNC), (1, Role.READ), (1, Role.WRITE), (2, Role.WRITE)):
            of = partial(self.icrc, call, edge, role)
            call = self.elsewhere(call, edge, role, solved(of, wanted))
        return call

    def icrc(self, call: Call, edge: int, role: Role, bits: int) -> bytes:
        """That of a packet for a rank's connection, whose address has these bits changed."""
        there = self.elsewhere(call, edge, role, bits)
        if role is Role.SYNC:
            return (self.acked(there, 1) if edge == 1 else self.flag(there, 3)).frame[-4:]
        return (self.data_reads(there, [0])[0] if role is Role.READ else self.write(there, edge, edge - 1)).frame[-4:]

    def elsewhere(self, call: Call, edge: int, role: Role, bits: int) -> Call:
        """The same call with another address at the rank's end of a connection."""
        edges = []
        for each in call.context.edges:
            remote = list(each.remote)
            if each.edge == edge:
                remote[role] = replace(remote[role], ip=remote[role].ip ^ bits)
            edges.append(replace(each, remote=tuple(remote)))
        return replace(call, context=replace(call.context, edges=tuple(edges)))


class ForeignRoceIsRouted(PullTest):
    """Packets for other addresses leave as they came but for a router's changes, whatever they are and say; so do those
    for the switch's own that are no RoCEv2: fragments, other protocols and ports, and with IPv4 options."""

    over_ipv6 = False

    def runTest(self) -> None:
        context = self.served()
        call = self.begin(context, 1)
        hop = NextHop(1, self.port(3), src_mac=0x02BB00000001, dst_mac=0x02CC00000001)
        for entry in routing([Route("0.0.0.0/0", 1)], [hop]):
            self.control.insert(entry)
        answers = [self.answer(context, 1, role, call.psn) for role in roles(self.spec)]
        responses = [self.response(call, 1, 0, opcode) for opcode in ANSWERS]
        hidden = answers[0].udp.pack() + answers[0].transport() + answers[0].icrc
        others = (*responses, *answers, self.notification(context, 1), self.ticking(context))
        for packet in (self.arrival(call, 1), *others):
            ip = packet.ipv4
            for vlan in (None, 100):
                self.routed(replace(packet, ip=replace(ip, dst=ipv4("198.51.100.7")), vlan=vlan), hop)
            for no_roce in (
                replace(ip, flags=1),
                replace(ip, fragment_offset=1),
                replace(ip, protocol=6),
                replace(ip, version=5),
                replace(ip, options=hidden),
            ):
                self.routed(replace(packet, ip=no_roce), hop)
            self.routed(replace(packet, udp=replace(packet.udp, dst_port=4790)), hop)
        self.finish(call)

    def routed(self, packet: RocePacket, hop: NextHop) -> None:
        """Check that a packet leaves as from a router."""
        sent = packet.sealed(icrc=None if packet.ip.version == 4 else packet.icrc)
        left = replace(sent.ipv4, ttl=sent.ipv4.ttl - 1)
        left = replace(left, checksum=left.right_checksum())
        self.send(self.port(1), sent.to_bytes())
        self.expect([Output(hop.port, replace(sent, ip=left, eth=Ethernet(hop.dst_mac, hop.src_mac)).to_bytes())])


class TagsStay(PullTest):
    """What is made of a tagged packet has its tag, so that priorities hold."""

    def runTest(self) -> None:
        call = self.call(self.served(), 1)
        for edge in (1, 2, 3):
            self.post(edge, replace(self.arrival(call, edge), vlan=TAG))
        if self.spec.scaled:
            asked = [self.read_scales(call, edge, 0) for edge in (1, 2, 3)]
        else:
            asked = self.data_reads(call, [0])
        self.expect(map(_tagged, [*(self.acked(call, edge) for edge in (1, 2, 3)), *asked]))
        if self.spec.scaled:
            self.give_scales(call, (1, 2, 3), 0)
            self.expect(self.data_reads(call, [0]))
        for edge, vlan in ((1, None), (2, TAG ^ 1), (3, TAG)):
            self.post(edge, replace(self.response(call, edge, 0), vlan=vlan))
        self.expect(map(_tagged, self.writes(call, 0)))


def _tagged(output: Output) -> Output:
    """The same with a tag."""
    tag = ETHERTYPE_VLAN.to_bytes(2) + TAG.to_bytes(2)
    return replace(output, frame=output.frame[:12] + tag + output.frame[12:])


class CopiesForUnknownRanksAreDropped(PullTest):
    """A rank without addresses, or without a place for its flag, gets nothing, and is counted; others get theirs."""

    def runTest(self) -> None:
        context = self.served()
        self.took_flag(self.begin(context, 0))
        entries = configuration(self.spec, [context]).entries
        for number, (table, keys, reason) in enumerate(
            (
                ("flags", {"edge": Exact(2)}, "MakeFlag.unknown_edge"),
                ("edges", {"edge": Exact(2), "role": Exact(Role.SYNC)}, "TranslateHeader.unknown_edge"),
            ),
            1,
        ):
            (lacking,) = (each for each in entries if each.table == table and keys.items() <= each.match.items())
            call = self.call(context, 0, number)
            for edge in (1, 2):
                self.arrive(call, edge)
            self.expect([self.acked(call, edge) for edge in (1, 2)])
            self.control.delete(lacking)
            before = self.drops()
            self.barriers[context.context] += 1
            self.arrive(call, 3)
            self.expect([self.acked(call, 3), self.flag(call, 1), self.flag(call, 3)])
            self.equal("drops", self.drops() - before, Counter({reason: 1}))
            self.control.insert(lacking)
            self.took_flag(call)


class EveryPassIsCounted(PullTest):
    """Packets and copies that have done their work are counted as such, each once, and nothing else is: so there are no
    passes and no copies beside those of which there have to be."""

    def unfit(self) -> str | None:
        return "cursors and scales take passes of their own" if self.spec.scaled else None

    def runTest(self) -> None:
        for number, (sources, destinations) in enumerate(((0b111, 0b111), (0b011, 0b110))):
            context, size = self.served(sources, destinations, number=number), self.spec.wave
            before = self.drops()
            call = self.begin(context, size)
            # A cursor starts the call, and another one finds no wave behind the only one.
            absorbed = 2 if self.spec.waves > 1 else 1
            self.respond(call, ranks(sources), *range(size))
            self.expect(self.writes(call, *range(size)))
            absorbed += size * (len(ranks(sources)) - 1)
            for edge in ranks(destinations):
                self.ack(call, edge, size - 1)
            self.expect(self.flags(call))
            absorbed += len(ranks(destinations)) - (0 if self.spec.ordered else 1)
            self.took_flag(call)
            absorbed += len(self.flagged(call))
            found = Counter({"ReplicateData.absorbed": absorbed})
            if self.spec.ordered and sources & ~destinations:
                found["PrunePort.not_wanted"] = 2
            self.equal("drops", self.drops() - before, found)
