"""The ICRC of copies and answers where a program patches it, and what becomes of packets with a wrong one.

All other scenarios compare each frame that leaves with its ICRC, too; these are about the ICRC alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from writes import Write, WriteTest

from p4gen.papers.multiwrite.control import WriteContext
from p4gen.ptf.icrcs import solved
from p4gen.rocev2 import icrc
from p4gen.rocev2.packet import RocePacket, parse


class _PatchTest(WriteTest):
    """A scenario of programs that patch ICRCs."""

    def unfit(self) -> str | None:
        return None if self.spec.icrc.patched else "the program does not patch ICRCs"


class PatchEqualsRecompute(_PatchTest):
    """Whatever headers and data are, a copy's patched ICRC is the one that is computed over the whole copy: of copies
    for destinations and for switches, of fences, of writes with any mark and any TTL."""

    def runTest(self) -> None:
        context = self.served(behind={3: self.bits([3, self.spec.edges + 1])})
        edges = self.others(context)
        counted = dict.fromkeys(edges, 0)
        for psn in range(24):
            named = self.random.sample(edges, self.random.randint(1, len(edges)))
            write = self.write(context, psn, self.bits(named), fence=psn % 5 == 4, ecn=self.random.randrange(4))
            ip = replace(write.packet.ip, ttl=self.random.randrange(1, 256))
            self.posts(replace(write, packet=replace(write.packet, ip=ip).sealed()), {e: counted[e] for e in named})
            for edge in named:
                self.say(context, edge, counted[edge])
                counted[edge] += 1
            self.outputs()


class CorruptStaysCorrupt(_PatchTest):
    """A write whose data is corrupt is one at its destinations, whose NICs drop it: the error in its ICRC stays what
    it was, bit for bit. Once the destination has reported the gap and the source has sent it again, the copy is
    right."""

    def runTest(self) -> None:
        context = self.served()
        everybody = self.others(context)
        for psn in range(3):
            good = self.write(context, psn, self.bits(everybody))
            self.post(self._corrupt(good))
            for output in self.outputs():
                packet = parse(output.frame)
                self.equal("a copy with a right ICRC", icrc.check(output.frame), False)
                right = self._error(good.packet.icrc, self._corrupt(good).packet.sealed().icrc)
                self.equal("the error of the ICRC", self._error(packet.icrc, packet.sealed().icrc), right)
            self.posts(good, dict.fromkeys(everybody, psn))

    def _corrupt(self, write: Write) -> Write:
        """The write with a wrong bit in its data, and the ICRC of the right data."""
        payload = bytearray(write.packet.payload)
        at = len(payload) - 1 - write.psn * (self.spec.payload - 1) // 2
        payload[at] ^= 1 << (3 * write.psn)
        return replace(write, packet=replace(write.packet, payload=bytes(payload)))

    def _error(self, one: bytes, other: bytes) -> int:
        return int.from_bytes(one) ^ int.from_bytes(other)


class CorruptAnswersTouchNothing(WriteTest):
    """An answer or a notification with a wrong ICRC is dropped before it reaches any state: it would acknowledge what
    nobody has."""

    def unfit(self) -> str | None:
        checks = self.spec.icrc.checked or self.spec.icrc.patched
        return None if checks else "the program does not check ICRCs"

    def runTest(self) -> None:
        context = self.served()
        self.posts(self.write(context, 0, self.bits([2])), {2: 0})
        for packet in (self.answer(context, 2, 0), self.notification(context, 2)):
            wrong = replace(packet, icrc=bytes([packet.icrc[0] ^ 1, *packet.icrc[1:]]))
            self.refused(self.ports[2], wrong.to_bytes(), "CheckIcrc.bad_icrc")
        self.says(context, 2, 0, 1)


class IcrcsAtTheLimits(WriteTest):
    """A right ICRC of all ones, or of zeros, is right, whether a packet comes or leaves with it; and, where ICRCs are
    patched, so is one that is made of such a part."""

    over_ipv6 = False

    def runTest(self) -> None:
        for wanted in (b"\xff" * 4, bytes(4)):
            for of_packet in (self.whole, self.headers) if self.spec.icrc.patched else (self.whole,):
                self.arrive(of_packet, wanted)
                for behind, fence in (({}, False), ({}, True), ({2: 0b10 | 1 << self.spec.edges}, False)):
                    self.leaves(of_packet, wanted, behind, fence)

    def whole(self, packet: RocePacket) -> bytes:
        """A packet's ICRC."""
        return packet.sealed().icrc

    def headers(self, packet: RocePacket) -> bytes:
        """What it would be without the data."""
        return icrc.icrc(replace(packet.sealed(), payload=b"").ip_packet())

    def arrive(self, of_packet: Callable[[RocePacket], bytes], wanted: bytes) -> None:
        """A write, its answers and a notification come with such an ICRC."""
        self.control.reset()
        context = self.served()
        write = self.write(context, 0, self.bits([2, 3]))
        self.posts(replace(write, packet=self.freed(write.packet, of_packet, wanted)), {2: 0, 3: 0})
        for edge in (2, 3):
            answer = self.freed(self.answer(context, edge, 0), of_packet, wanted)
            self.send(self.ports[edge], answer.to_bytes())
            self.expect([self.reply(context, answer, 1)] if edge == 3 and not self.spec.holds else [])
        notification = self.freed(self.notification(context, 2), of_packet, wanted)
        self.send(self.ports[2], notification.to_bytes())
        self.equal("ports", [output.port for output in self.outputs()], [self.ports[context.source]])

    def leaves(
        self, of_packet: Callable[[RocePacket], bytes], wanted: bytes, behind: dict[int, int], fence: bool
    ) -> None:
        """A copy leaves with it, and so does the answer."""
        self.control.reset()
        context = self.star(behind=behind)
        write = self.write(context, 0, self.bits([2]), fence=fence)
        copy = self.freed(parse(self.copy(write, 2, 0).frame), of_packet, wanted)
        context = self.sending(context, 2, copy)
        answer = self.answer(context, 2, 0)
        told = self.freed(parse(self.reply(context, answer, 1).frame), of_packet, wanted)
        context = self.sending(context, context.source, told)
        self.serve(context)
        ip = replace(write.packet.ipv4, identification=copy.ipv4.identification)
        self.posts(replace(write, context=context, packet=replace(write.packet, ip=ip).sealed()), {2: 0})
        answer = replace(answer, ip=replace(answer.ipv4, identification=told.ipv4.identification)).sealed()
        self.send(self.ports[2], answer.to_bytes())
        self.expect([] if self.spec.holds else [self.reply(context, answer, 1)])

    def sending(self, context: WriteContext, edge: int, packet: RocePacket) -> WriteContext:
        """The context with the UDP source port of a packet at an edge."""
        edges = (replace(e, udp_src_port=packet.udp.src_port) if e.edge == edge else e for e in context.edges)
        return replace(context, edges=tuple(edges))

    def freed(self, packet: RocePacket, of_packet: Callable[[RocePacket], bytes], wanted: bytes) -> RocePacket:
        """A packet with an identification and a source port for which this is right."""

        def changed(bits: int) -> RocePacket:
            ip, udp = replace(packet.ipv4, identification=bits & 0xFFFF), replace(packet.udp, src_port=bits >> 16)
            return replace(packet, ip=ip, udp=udp).sealed()

        return changed(solved(lambda bits: of_packet(changed(bits)), wanted))
