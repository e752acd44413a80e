"""First PSNs of connections whose two directions begin independently of each other, and of all others."""

from __future__ import annotations

import struct
import zlib

from p4gen.rocev2.psn import PSN_MASK


def stream_psn(source_qp: int, destination_qp: int, first_psn: int) -> int:
    """The PSN of the first packet that queue pair ``source_qp`` sends to ``destination_qp``.

    Both ends of a connection derive it from the connection's QPs and from ``first_psn``, which differs from one
    placement of a group to the next. So the two directions, and the connections of a group, begin with unrelated PSNs,
    as connections that a connection manager has established do (InfiniBand 12.6).
    """
    return zlib.crc32(struct.pack(">III", source_qp, destination_qp, first_psn)) & PSN_MASK
