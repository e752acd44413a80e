"""Receiving and sending frames on network interfaces in batches: packet sockets, recvmmsg, sendmmsg, NumPy arrays."""

from __future__ import annotations

from p4gen.packetio.receive import Frames, Receiver
from p4gen.packetio.send import Sender
from p4gen.packetio.single import PacketSocket
from p4gen.packetio.sockets import kernel_drops, link_is_up, longest_frame, open_socket, sending_socket, wait_for_links

__all__ = [
    "Frames", "PacketSocket", "Receiver", "Sender", "kernel_drops", "link_is_up", "longest_frame", "open_socket",
    "sending_socket", "wait_for_links",
]  # fmt: skip
