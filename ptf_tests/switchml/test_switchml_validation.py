"""What a switch of SwitchML refuses, and what it only routes."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from malformed import malformed_datagram
from updates import UpdateTest

from p4gen.model.entries import Action, Entry, Exact, Lpm
from p4gen.papers.switchml.control import configuration
from p4gen.papers.switchml.frames import Update
from p4gen.rocev2.codes import ETHERTYPE_VLAN
from p4gen.rocev2.headers import UDP, Ethernet, IPv4

TAG = struct.pack("!HH", ETHERTYPE_VLAN, 3 << 13 | 77)


class StrangersAreRefused(UpdateTest):
    """Only a worker contributes to a job, by its own port: nobody's vector counts for another one."""

    def runTest(self) -> None:
        job, other = self.served(), self.served(2, number=9, base=4, slots=2)
        update = self.update(job, self.vectors()[0])
        ethernet, ip = self.headers(job, 0)
        for port in self.spec.architecture.front_ports(4)[1:]:
            self.refused("LookupTable.wrong_port", port, self.frame(update, ethernet, ip))
        stranger = replace(ip, src=ip.src + 100)
        self.refused("LookupTable.unknown_worker", 0, self.frame(update, ethernet, stranger))
        self.refused("LookupTable.unknown_worker", 0, self.frame(update, *self.headers(other, 0)))
        unknown = replace(update, job=8)
        self.refused("LookupTable.unknown_worker", 0, self.frame(unknown, ethernet, ip))
        self.ignored(job, 0, replace(update, epoch=2), "FindJob.wrong_epoch")
        self.complete(job, self.vectors())


class PartsOfAJobAreMissing(UpdateTest):
    """A job whose entry is gone is not served; a worker without addresses gets no copy, and the others do."""

    def runTest(self) -> None:
        job = self.served()
        entries = configuration(self.spec, [job]).entries
        (own,) = (entry for entry in entries if entry.table == "jobs")
        (last,) = (e for e in entries if e.table == "destinations" and e.match["worker"] == Exact(3))
        self.control.delete(own)
        self.ignored(job, 0, self.update(job, self.vectors()[0]), "FindJob.not_served")
        self.control.insert(own)
        self.control.delete(last)
        vectors = self.vectors()
        for worker in range(3):
            self.contribute(job, worker, self.update(job, vectors[worker]))
        self.expect([self.result(job, worker, self.total(job, vectors)) for worker in (0, 1)])
        dropped = self.reasons["egress", "TranslateHeader.unknown_worker"]
        self.equal("drops in egress", self.counts("IncEgress.drops"), {dropped: 1})
        self.control.insert(last)
        self.complete(job, self.vectors(), 1)


class MalformedUpdatesAreRefused(UpdateTest):
    """Wrong lengths and checksums of datagrams change nothing."""

    def unfit(self) -> str | None:
        return super().unfit() or ("the program is for RoCEv2" if self.spec.roce else None)

    def runTest(self) -> None:
        job, vectors = self.served(), self.vectors()
        update = self.update(job, vectors[0])
        ethernet, ip = self.headers(job, 0)
        good = update.frame(ethernet, ip)
        for frame, reason in (
            *self.malformed(good),
            (replace(update, data=update.data[:-4]).frame(ethernet, ip), "bad_length"),
            (replace(update, data=update.data + bytes(4)).frame(ethernet, ip), "bad_length"),
            (replace(update, data=b"").frame(ethernet, ip) + bytes(10), "bad_length"),
        ):
            for tagged in (frame, frame[:12] + TAG + frame[12:]):
                self.refused(f"ValidatePacket.{reason}", 0, tagged)
        self.complete(job, vectors)

    def malformed(self, good: bytes) -> Iterator[tuple[bytes, str]]:
        """Frames with other lengths, as far as the program sees them: a Tofino's ingress does not know the frame's."""
        for frame, reason in malformed_datagram(good):
            if not self.spec.tofino:
                yield frame, reason
            elif frame != good + bytes(1):
                yield frame, "bad_length" if len(frame) == len(good) and reason == "truncated" else reason


class TagsStay(UpdateTest):
    """A result has the VLAN tag and the other bits of the last vector's headers."""

    def runTest(self) -> None:
        job, vectors = self.served(1), self.vectors(1)
        update = self.update(job, vectors[0])
        ethernet, ip = self.headers(job, 0)
        frame = self.frame(update, ethernet, replace(ip, tos=0xB9))
        frame = frame[:40] + b"\x12\x34" + frame[42:]  # a UDP checksum, which the result does not have
        self.send(0, frame[:12] + TAG + frame[12:])
        expected = self.result(job, 0, update, 0xB9).frame
        self.equal("frame", self.only(self.outputs()).frame.hex(), (expected[:12] + TAG + expected[12:]).hex())


class OthersAreRouted(UpdateTest):
    """Updates to another address, and other datagrams to this switch, are routed as they are."""

    def runTest(self) -> None:
        job, port = self.served(), self.spec.architecture.front_port(2)
        hop = Entry("next_hops", {"next_hop": Exact(1)}, Action("send", {"port": port, "src_mac": 5, "dst_mac": 6}))
        away = 0xC0A80101
        for address in (away, job.ip):
            self.control.insert(self.route(address))
        self.control.insert(hop)
        update, (ethernet, ip) = self.update(job, self.vectors()[0]), self.headers(job, 0)
        for frame in (
            self.frame(update, ethernet, replace(ip, dst=away)),
            self.frame(replace(update, data=b"abc"), ethernet, replace(ip, dst=away)),
            self.to_port(self.frame(update, ethernet, ip), 0xBEE1),
            self.altered(update, flags=1),
            self.altered(update, fragment_offset=1),
            self.altered(update, protocol=6),
            self.altered(update, version=5),
            self.altered(update, ihl=6),
            self.frame(replace(update, data=b""), ethernet, ip)[:46],  # ends in the header
        ):
            self.send(0, frame)
            left = self.only(self.outputs())
            self.equal("port", left.port, port)
            self.equal("behind IPv4", left.frame[34:].hex(), frame[34:].hex())
            self.equal("TTL", left.frame[22], frame[22] - 1)
        self.complete(job, self.vectors())

    def route(self, address: int) -> Entry:
        """A route to next hop 1."""
        return Entry("routes", {"hdr.ipv4.dst_addr": Lpm(address, 32)}, Action("set_next_hop", {"id": 1}))

    def altered(self, update: Update, **fields: Any) -> bytes:
        """A frame of the first worker's with another IPv4 header."""
        frame = self.frame(update, *self.headers(self.jobs[0], 0))
        ip = replace(IPv4.unpack(frame, Ethernet.SIZE), **fields)
        return frame[: Ethernet.SIZE] + replace(ip, checksum=ip.right_checksum()).pack() + frame[34:]

    def to_port(self, frame: bytes, port: int) -> bytes:
        """The frame to another UDP port."""
        at = Ethernet.SIZE + IPv4.SIZE
        return frame[:at] + replace(UDP.unpack(frame, at), dst_port=port).pack() + frame[at + UDP.SIZE :]


class SumsAreTheSwitchs(OthersAreRouted):
    """What looks like a sum of the switch and comes from a host reaches no worker, of any job. What is for another UDP
    port is ordinary traffic, whoever has sent it."""

    def runTest(self) -> None:
        job, other = self.served(), self.served(2, number=9, base=4, slots=2)
        worker, ethernet = job.workers[0], Ethernet(job.mac, job.workers[1].mac)
        hop = Entry("next_hops", {"next_hop": Exact(1)}, Action("send", {"port": 0, "src_mac": 5, "dst_mac": 6}))
        self.control.insert(self.route(worker.ip), hop)
        forged = self.update(job, self.vectors()[0])
        for source in (job.ip, other.ip):
            for update in (forged, replace(forged, data=b"abc")):
                for to in (worker.ip, worker.ip + 100):  # the second one has no route
                    self.refused("LookupTable.forged", 1, self.frame(update, ethernet, IPv4(source, to)))
            self.send(1, self.to_port(self.frame(forged, ethernet, IPv4(source, worker.ip)), 0xBEE1))
            self.equal("port", self.only(self.outputs()).port, 0)
        self.complete(job, self.vectors())
