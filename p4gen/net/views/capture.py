"""Captures: pcapng files with an interface for each direction of each link, and drops as comments.

Format: draft-ietf-opsawg-pcapng. A frame is recorded on the interface of the direction it was sent on, at the time of
sending, in nanoseconds of virtual time.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import BinaryIO, Final

from p4gen.net.world.watching import Passage

_SECTION: Final = 0x0A0D0D0A
_INTERFACE: Final = 1
_ENHANCED_PACKET: Final = 6
_ETHERNET: Final = 1
_COMMENT: Final = 1
_FLAGS: Final = 2
_IF_NAME: Final = 2
_IF_TSRESOL: Final = 9
_USER_APPLICATION: Final = 4


class PcapngWriter:
    """Writes a pcapng file. ``interfaces`` are the names of its interfaces; a frame names one by its index."""

    def __init__(self, file: BinaryIO, interfaces: Iterable[str]) -> None:
        self._file = file
        head = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
        self._block(_SECTION, head + _option(_USER_APPLICATION, b"p4gen") + _END)
        for name in interfaces:
            options = _option(_IF_NAME, name.encode()) + _option(_IF_TSRESOL, b"\x09") + _END
            self._block(_INTERFACE, struct.pack("<HHI", _ETHERNET, 0, 0) + options)

    def write(
        self, interface: int, time: int, frame: bytes, *, comment: str = "", outbound: bool | None = None
    ) -> None:
        """Add a frame. ``time`` is in nanoseconds; ``outbound`` is None if the interface stands for one direction
        only."""
        head = struct.pack("<IIIII", interface, time >> 32, time & 0xFFFFFFFF, len(frame), len(frame))
        options = _option(_COMMENT, comment.encode()) if comment else b""
        if outbound is not None:
            options += _option(_FLAGS, struct.pack("<I", 2 if outbound else 1))
        self._block(_ENHANCED_PACKET, head + _padded(frame) + (options + _END if options else b""))

    def _block(self, kind: int, body: bytes) -> None:
        length = struct.pack("<I", 12 + len(body))
        self._file.write(struct.pack("<I", kind) + length + body + length)


class Capture:
    """A ``Watcher`` that writes every frame on a link to a file. ``directions`` are the names of all directions, in
    order."""

    def __init__(self, file: BinaryIO, directions: Iterable[str]) -> None:
        self._interfaces = {name: i for i, name in enumerate(directions)}
        self._writer = PcapngWriter(file, self._interfaces)
        self.packets = 0

    def __call__(self, passage: Passage) -> None:
        """Write one frame; the comment of a lost frame gives the reason."""
        self.packets += 1
        interface = self._interfaces[f"{passage.src}>{passage.dst}"]
        comment = f"dropped: {passage.reason}" if passage.arrived is None else ""
        self._writer.write(interface, passage.sent // 1000, passage.frame, comment=comment)


_END: Final = struct.pack("<HH", 0, 0)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)
