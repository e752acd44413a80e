"""A NIC on a network interface, in real time: a compiled host.

Frames are received in batches and sent in batches, at the end of each turn of the loop. ACKs that become due while a
batch is processed are combined (``rc.QueuePair.acknowledge``). Faults can be inserted in front of the NIC, in both
directions: loss, delay and duplication without help from the kernel. Without faults, on a packet socket, machine code
moves the frames.
"""

from __future__ import annotations

import array
import socket
import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import numpy as np

from p4gen.compiled import cached
from p4gen.compiled.hosting import PORT, Why, serve
from p4gen.compiled.memory import NEVER, NONE
from p4gen.compiled.run import run_due
from p4gen.compiled.sockets import EVENT_SIZE, MOST_EVENTS, TIME_SIZE, functions
from p4gen.host.compiled.hosts import CompiledHosts
from p4gen.host.transport.clock import MS
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.host.transport.verbs import Peer, QpConfig, RecvWr, SendWr
from p4gen.packetio import PacketSocket
from p4gen.packetio.mmsg import AT_ONCE, CONTROL, Messages
from p4gen.packetio.sockets import VLAN_TAG
from p4gen.rocev2.codes import ROCE_UDP_PORT

BURST: Final = 64
"""Number of packets sent in one turn before received packets are processed."""
FRAME_ROOM: Final = 9216
"""The most bytes of a frame, unless a NIC is told otherwise."""
_SLOTS: Final = 256
"""The most frames that machine code receives at once."""
_ATTACH_FILTER: Final = 26
_BPF_RET: Final = 0x06
_COUNT_EVERY: Final = 100 * MS
"""How often Python takes over what machine code has counted."""


class FramePort(Protocol):
    """Receives and sends whole frames; ``p4gen.packetio.PacketSocket`` is one."""

    def fileno(self) -> int:
        """A descriptor that is readable while frames wait."""
        ...

    def receive(self) -> list[bytes]:
        """The frames that wait, in order, at most a bounded number of them. Never blocks."""
        ...

    def send(self, frames: Sequence[bytes]) -> int:
        """Send frames in order. Frames that cannot be sent are lost. Returns how many were sent."""
        ...


class Fate(Protocol):
    """What happens to a frame; ``p4gen.net.world.faults.Fate`` is one."""

    @property
    def copies(self) -> Sequence[tuple[int, bytes]]:
        """Each copy with its extra delay in ps; none when the frame is lost."""
        ...

    @property
    def reason(self) -> str:
        """Why the frame is lost; "" if it is not."""
        ...


Trouble = Callable[[bytes, int], Fate]
"""A function from (frame, now) to the frame's fate; ``p4gen.net.world.faults.DirectionFaults.fate`` is one."""


def waits_for() -> str:
    """What ``load`` takes some seconds for; "" if it does not."""
    return "" if cached.is_kept(serve) else "compiling hosts, once"


def load() -> None:
    """Load the machine code of hosts, which processes that are forked from this one then have."""
    hosts = CompiledHosts(FRAME_ROOM, 2)
    one, other = hosts.add(1, 1), hosts.add(2, 2)
    config = QpConfig(adaptive=True)
    room = bytearray(_SLOTS)
    for nic, peer in ((one, other), (other, one)):
        nic.collect()
        pair = nic.create_pair(1, Peer(peer.mac, peer.ip, 1), config, lambda _: None)
        pair.post_recv(RecvWr(0, memoryview(room)))
        pair.post_send(SendWr(0, bytes(_SLOTS)))
    for _ in range(3):
        run_due(hosts.world.place, 0)
        for host, frame in hosts.take_left():
            hosts.nics[1 - host].receive(frame)
    cached.load(serve, 0)


def kernel_sink(udp_port: int = ROCE_UDP_PORT) -> socket.socket:
    """A UDP socket to which the kernel delivers RoCE packets, or those for another port, and which drops them. Without
    it the kernel would answer each packet with "port unreachable". Those over IPv6 it drops by itself: they have no UDP
    checksum (RFC 8200, 8.1).
    """
    found = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    instruction = array.array("B", struct.pack("=HBBI", _BPF_RET, 0, 0, 0))  # return 0: accept nothing
    program = struct.pack("@HP", 1, instruction.buffer_info()[0])
    found.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # others in this namespace have the same one
    found.bind(("", udp_port))
    return found


class RawNic:
    """Connects ``nic`` to ``port``. Both belong to ``loop`` until ``close``, which leaves the port open.

    The port delivers frames of at most ``frame_room`` bytes, and a VLAN tag. Set ``outgoing`` and ``incoming``, the
    faults of each direction, on the loop or before anything is sent; None means no faults.
    """

    def __init__(
        self,
        loop: RealTimeLoop,
        port: FramePort,
        mac: int,
        ip: int,
        *,
        burst: int = BURST,
        frame_room: int = FRAME_ROOM,
    ) -> None:
        self.loop = loop
        self._hosts = CompiledHosts(frame_room + VLAN_TAG, 1, burst=burst)
        self._every = self._hosts.world.all[0]
        self.nic = self._hosts.add(mac, ip)
        self.nic.collect()
        self.outgoing: Trouble | None = None
        self.incoming: Trouble | None = None
        self.lost: Counter[str] = Counter()
        """Number of frames lost by faults, by direction and reason: ``out loss``, ``in link_down``."""
        self.undelivered = 0
        """Number of frames that the port did not send."""
        self._port = port
        self._frames: list[bytes] = []
        self._descriptor = port.fileno()
        self._wire = _Wire(self._hosts, frame_room, self._descriptor, loop) if isinstance(port, PacketSocket) else None
        loop.add_reader(self._descriptor, self._receive)
        loop.run_hosts(self)

    @property
    def truncated(self) -> int:
        """Number of frames dropped by machine code because they were longer than ``frame_room``."""
        return 0 if self._wire is None else self._wire.truncated

    def close(self) -> None:
        """Remove the NIC from the loop. Call it on the loop, or after the loop has ended."""
        self.loop.remove_reader(self._descriptor)
        self.loop.run_hosts(None)

    # --- called by the loop ---

    def due(self) -> int:
        """When something has to be done next."""
        return int(self._hosts.world.heap["time"][0]) if self._every["events"] else NEVER

    def set_time(self, now: int) -> None:
        """Time has passed."""
        self._every["now"] = now

    def wait(self, until: int) -> bool:
        """Be a host in machine code, until a time or until something else is to be done. Returns False if Python has to
        see the frames."""
        if self._wire is None or self.outgoing is not None or self.incoming is not None:
            return False
        why = self._wire.serve(min(until, self.loop.now + _COUNT_EVERY))
        self._hosts.loop.end_run()
        if why & Why.NOT_SENT:
            self._flush()
        return True

    def run(self, now: int) -> None:
        """Do what is due, and send."""
        run_due(self._hosts.world.place, now)
        self._hosts.loop.end_run()
        self._flush()

    def _receive(self) -> None:
        # Broadcasts and multicasts are handled by the kernel; reliable connections do not use them.
        frames = [frame for frame in self._port.receive() if frame and not frame[0] & 1]
        self.loop.refresh()  # a frame is not handled before its time of arrival
        for frame in frames:
            if self.incoming is None:
                self.nic.receive(frame)
            else:
                self._suffer(self.incoming(frame, self.loop.now), "in", self.nic.receive)

    def _suffer(self, fate: Fate, direction: str, go_on: Callable[[bytes], None]) -> None:
        if not fate.copies:
            self.lost[f"{direction} {fate.reason}"] += 1
        for delay, frame in fate.copies:
            if delay:
                self.loop.at(self.loop.now + delay, go_on, frame)
            else:
                go_on(frame)

    def _flush(self) -> None:
        for _, frame in self._hosts.take_left():
            if self.outgoing is None:
                self._frames.append(frame)
            else:
                self._suffer(self.outgoing(frame, self.loop.now), "out", self._frames.append)
        if self._frames:
            frames, self._frames = self._frames, []
            self.undelivered += len(frames) - self._port.send(frames)


class _Wire:
    """A host's packet socket for machine code."""

    def __init__(self, hosts: CompiledHosts, frame_room: int, file: int, loop: RealTimeLoop) -> None:
        self._incoming, self._outgoing = Messages(_SLOTS), Messages(AT_ONCE)
        headers, controls = self._incoming.headers, np.zeros(_SLOTS, CONTROL)
        headers["control"] = controls.ctypes.data + CONTROL.itemsize * np.arange(_SLOTS, dtype=np.uint64)
        headers["control_size"] = CONTROL.itemsize
        self._incoming.pieces["size"] = frame_room
        self._arrays: dict[str, Any] = {
            "events": np.zeros(MOST_EVENTS * EVENT_SIZE, np.uint8),
            "time": np.zeros(TIME_SIZE, np.uint8),
            "headers": headers,
            "pieces": self._incoming.pieces,
            "controls": controls,
            "frames": np.full(_SLOTS, NONE, np.int64),
            "out_headers": self._outgoing.headers,
            "out_pieces": self._outgoing.pieces,
        }
        self._record: Any = np.zeros(1, PORT)
        numbers = {"world": hosts.world.place, "poll": loop.descriptor, "file": file, "slots": _SLOTS} | functions()
        for name, value in (numbers | {name: each.ctypes.data for name, each in self._arrays.items()}).items():
            self._record[name] = value

    @property
    def truncated(self) -> int:
        """Number of frames dropped because they were longer than a slot."""
        return int(self._record["truncated"][0])

    def serve(self, until: int) -> int:
        """Be a host until a time, ps, or until something else is to be done."""
        self._record["until"] = until
        return serve(self._record.ctypes.data)
