"""What a switch of ATP refuses, and what it only routes."""

from __future__ import annotations

import struct
from dataclasses import replace

from gradients import SERVER_PORT, UPLINKS, GradientTest
from malformed import malformed_datagram

from p4gen.model.entries import Exact
from p4gen.papers.atp.headers import Message
from p4gen.rocev2.codes import ETHERTYPE_VLAN
from p4gen.rocev2.headers import UDP, Ethernet, IPv4

TAG = struct.pack("!HH", ETHERTYPE_VLAN, 3 << 13 | 77)


class StrangersAreRefused(GradientTest):
    """Only a job's workers contribute, for themselves and by their own ports, and only its server has results."""

    def runTest(self) -> None:
        site, other = self.served(), self.served(2, number=9)
        ethernet, ip = self.headers(site, 0)
        packet = self.packet(site, [0], self.vectors()[0])
        for port in (1, 2, SERVER_PORT):
            self.refused("LookupTable.stranger", port, packet.frame(ethernet, ip))
        self.refused("LookupTable.stranger", 0, packet.frame(ethernet, replace(ip, src=ip.src + 100)))
        self.refused("LookupTable.stranger", 0, packet.frame(ethernet, replace(self.headers(other, 0)[1], dst=ip.dst)))
        for workers in (0, 2, 3, 1 << 31 | 1):
            wrong = replace(packet, workers=workers)
            self.refused("LookupTable.wrong_workers", 0, wrong.frame(ethernet, ip))
        total = self.complete(site, self.vectors())
        for message in (Message.RESULT, Message.FLOAT_RESULT, Message.ASK):
            result = replace(total, message=message)
            to_worker = replace(ip, dst=site.job.workers[1])
            self.refused("LookupTable.not_the_server", 0, result.frame(ethernet, to_worker))
            self.refused("LookupTable.stranger", 0, self.from_server(site, result))
        for message in (Message.GRADIENT, Message.RESEND, Message.FLOATS):
            self.refused(
                "LookupTable.wrong_workers", SERVER_PORT, self.from_server(site, replace(total, message=message))
            )
        rival = self.packet(site, [0], self.vectors()[0], self.rivals(site.job, site.job))
        self.goes_on(site, 0, rival, replace(rival, collision=1))


class RacksSpeakForTheirWorkers(GradientTest):
    """What comes by an uplink is of the workers there: neither of those here, nor by other ports."""

    def runTest(self) -> None:
        site = self.serve(self.rack(self.job(4), (2, 3)))
        ethernet, ip = self.headers(site, 0)
        both = self.packet(site, (0, 1), self.vectors()[0])
        self.refused("LookupTable.stranger", 2, both.frame(ethernet, ip))
        self.refused("LookupTable.stranger", UPLINKS[0], both.frame(*self.headers(site, 2)))
        for workers in (1 << 2, 1 << 0 | 1 << 3):
            self.refused("LookupTable.wrong_workers", UPLINKS[0], replace(both, workers=workers).frame(ethernet, ip))
        self.stays(site, 0, both, port=UPLINKS[0])


class AServerCanBeAWorker(GradientTest):
    """A worker on the server's host contributes like all others, and gets its copy of the result."""

    def runTest(self) -> None:
        job = self.job()
        job = replace(job, server=job.workers[2])
        site = self.rack(job, range(3))
        own = [replace(each, server=each.ip == job.server) for each in site.entrances if each.port != SERVER_PORT]
        self.serve(replace(site, entrances=tuple(own)))
        total = self.complete(self.sites[0], self.vectors())
        self.answer(self.sites[0], replace(total, message=Message.RESULT), port=2)
        self.complete(self.sites[0], self.vectors())


class PartsOfAJobAreMissing(GradientTest):
    """A job whose entry is gone is not served; a worker without addresses gets no copy, and the others do."""

    def runTest(self) -> None:
        site = self.served()
        self.control.delete(*self.configured("jobs"))
        frame = self.packet(site, [0], self.vectors()[0]).frame(*self.headers(site, 0))
        self.refused("FindJob.not_served", 0, frame)
        self.refused("LookupTable.stranger", 1, frame)
        self.control.insert(*self.configured("jobs"))
        self.control.delete(*(entry for entry in self.configured("copies") if entry.match["copy"] == Exact(3)))
        total = replace(self.complete(site, self.vectors()), message=Message.RESULT)
        self.send(SERVER_PORT, self.from_server(site, total))
        self.expect([self.result(copy, site, total) for copy in site.copies[:2]])
        dropped = self.reasons["egress", "TranslateHeader.unknown_copy"]
        self.equal("drops in egress", self.counts("IncEgress.drops"), {dropped: 1})


class MalformedPacketsAreRefused(GradientTest):
    """Wrong lengths and checksums, and messages that nobody knows, change nothing."""

    def runTest(self) -> None:
        site, vectors = self.served(), self.vectors()
        packet = self.packet(site, [0], vectors[0])
        ethernet, ip = self.headers(site, 0)
        for frame, reason in (
            *malformed_datagram(packet.frame(ethernet, ip)),
            (replace(packet, data=packet.data[:-4]).frame(ethernet, ip), "bad_length"),
            (replace(packet, data=packet.data + bytes(4)).frame(ethernet, ip), "bad_length"),
            (replace(packet, data=b"").frame(ethernet, ip) + bytes(6), "bad_length"),
            (replace(packet, message=6).frame(ethernet, ip), "unknown_message"),
            (replace(packet, message=255).frame(ethernet, ip), "unknown_message"),
        ):
            for tagged in (frame, frame[:12] + TAG + frame[12:]):
                self.refused(f"ValidatePacket.{reason}", 0, tagged)
        self.complete(site, vectors)


class TagsStay(GradientTest):
    """Sums and results have the VLAN tag and the other bits of the last packet's headers; results no UDP checksum."""

    def runTest(self) -> None:
        site = self.served(1)
        packet = self.packet(site, [0], self.vectors(1)[0])
        frame = packet.frame(*self.headers(site, 0, 0xB9), src_port=5000)
        frame = frame[:40] + b"\x12\x34" + frame[42:]
        self.send(0, frame[:12] + TAG + frame[12:])
        on = self.to_server(site, 0, packet, 0xB9).frame
        self.equal(
            "frame", self.only(self.outputs()).frame.hex(), (on[:12] + TAG + on[12:40] + b"\x12\x34" + on[42:]).hex()
        )
        result = replace(packet, message=Message.RESULT)
        frame = self.from_server(site, result, 0xB9)
        frame = frame[:40] + b"\x12\x34" + frame[42:]
        self.send(SERVER_PORT, frame[:12] + TAG + frame[12:])
        copy = self.result(site.copies[0], site, result, 0xB9).frame
        self.equal("frame", self.only(self.outputs()).frame.hex(), (copy[:12] + TAG + copy[12:]).hex())


class OthersAreRouted(GradientTest):
    """Packets of jobs that are not served here, to hosts of no job, and other datagrams are routed as they are."""

    def runTest(self) -> None:
        site = self.served(number=0)
        away = 0xC0A80101
        self.control.insert(self.route(away, 2))
        packet, (ethernet, ip) = self.packet(site, [0], self.vectors()[0]), self.headers(site, 0)
        for port, frame in (
            (2, packet.frame(ethernet, replace(ip, dst=away))),
            (SERVER_PORT, replace(packet, job=8).frame(ethernet, ip)),
            (2, replace(packet, data=b"abc").frame(ethernet, replace(ip, dst=away))),
            (SERVER_PORT, self.to_port(packet.frame(ethernet, ip), 0xA7B1)),
            (SERVER_PORT, packet.frame(ethernet, replace(ip, flags=1))),
            (SERVER_PORT, packet.frame(ethernet, replace(ip, fragment_offset=1))),
            (SERVER_PORT, packet.frame(ethernet, replace(ip, protocol=6))),
            (SERVER_PORT, packet.frame(ethernet, replace(ip, version=5))),
            (SERVER_PORT, packet.frame(ethernet, replace(ip, ihl=6))),
            (SERVER_PORT, replace(packet, data=b"").frame(ethernet, ip)[:46]),  # ends in the header
        ):
            self.send(0, frame)
            left = self.only(self.outputs())
            self.equal("port", left.port, port)
            self.equal("behind IPv4", left.frame[34:].hex(), frame[34:].hex())
            self.equal("TTL", left.frame[22], frame[22] - 1)
        self.complete(site, self.vectors())

    def to_port(self, frame: bytes, port: int) -> bytes:
        """The frame to another UDP port."""
        at = Ethernet.SIZE + IPv4.SIZE
        return frame[:at] + replace(UDP.unpack(frame, at), dst_port=port).pack() + frame[at + UDP.SIZE :]
