"""Packets that are not as they should be: dropped with a reason before any state is touched."""

from __future__ import annotations

from malformed import malformed
from pulls import PullTest

from p4gen.families.scin.control import Role


class MalformedPacketsTouchNothing(PullTest):
    """An arrival, a READ response and ACKs: cut off, with a wrong checksum, version, partition, length or padding, and
    in other kinds' lengths."""

    def runTest(self) -> None:
        call = self.begin(self.served(), 2)
        following = self.call(call.context, 1, 1, 2)
        for packet in (
            self.arrival(following, 1),
            self.response(call, 1, 0),
            self.answer(call.context, 1, Role.SYNC, call.psn),
            self.answer(call.context, 1, Role.WRITE, call.data_psn(0)),
        ):
            for frame, reason in malformed(packet):
                self.refused(self.port(1), frame, f"ValidatePacket.{reason}")
        self.finish(call)
