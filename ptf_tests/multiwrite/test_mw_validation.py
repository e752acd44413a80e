"""Packets that are not as they should be: dropped with a reason before any state is touched."""

from __future__ import annotations

from malformed import malformed
from writes import WriteTest


class MalformedPacketsTouchNothing(WriteTest):
    """A write and an ACK: cut off, with a wrong checksum, version, partition, length or padding, and in other kinds'
    lengths."""

    def runTest(self) -> None:
        context = self.served()
        write = self.write(context, 0, self.bits([2]))
        self.posts(write, {2: 0})
        for edge, packet in (
            (context.source, self.write(context, 1, self.bits([2])).packet),
            (2, self.answer(context, 2, 0)),
        ):
            for frame, reason in malformed(packet, "bad_length"):
                self.refused(self.ports[edge], frame, f"ValidatePacket.{reason}")
        self.posts(self.write(context, 1, self.bits([2])), {2: 1})
