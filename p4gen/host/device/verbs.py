"""A station on a verbs device: its queue pairs, and their completions as events of a loop in real time.

The device numbers queue pairs itself. So a pool of them is made at the start, in RESET; a manager chooses from their
numbers, which ``VerbsStation.info`` tells it. A pair is connected when it is created, and reset when it is destroyed.
"""

from __future__ import annotations

import os
import socket
from collections import Counter, deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from p4gen.errors import FailedError, InputError
from p4gen.host.device.codes import gid_text, spans
from p4gen.host.device.library import CQ, PD, QP, CompChannel, Context, PyverbsError, QPCap, QPInitAttr, enums
from p4gen.host.device.memory import DeviceMemory
from p4gen.host.device.pairs import STATUSES, DevicePair
from p4gen.host.transport.clock import Clock
from p4gen.host.transport.nicinfo import MTUS, NicInfo
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, Recovery, Status
from p4gen.rocev2.headers import ip_text

PAIRS: Final = 64
"""Queue pairs of a pool."""
DEPTH: Final = 127
"""Work requests in each queue of a pair. The queues of 64 pairs, and of as many between hosts, complete as many as
rdma_rxe keeps in one queue."""
_OUTSTANDING: Final = 128
"""Packets that rdma_rxe has unacknowledged at most, less the one that it sends beyond."""
_AT_ONCE: Final = 64
"""Completions that are taken from the device at once."""
_DEVICES: Final = Path("/sys/class/infiniband")
_ROCE_V2: Final = "RoCE v2"


class VerbsNic:
    """A device as a NIC (``p4gen.host.transport.nic.VerbsNic``)."""

    compiled = False

    def __init__(self, loop: RealTimeLoop, name: str, ip: int, pairs: int, depth: int) -> None:
        self.clock: Clock = loop
        self.gid_index = _gid_index(name, ip)
        try:
            self._context = Context(name=name)
            limits, port = self._context.query_device(), self._context.query_port(1)
            self.mtu, self.reads = MTUS[port.active_mtu - 1], limits.max_qp_rd_atom
            self.depth = min(depth, limits.max_qp_wr)
            self.channel, self.descriptor = _channel(self._context)
            self.queue = CQ(self._context, min(4 * self.depth * pairs, limits.max_cqe), None, self.channel, 0)
            self._protection = PD(self._context)
            self._idle = {qp.qp_num: qp for qp in (self._make() for _ in range(pairs))}
        except PyverbsError as error:
            raise InputError(f"device {name}: {error}") from None
        self.memory = self.domain = DeviceMemory(self._protection)
        self.numbers = tuple(self._idle)
        """Those of the pool."""
        self._own: set[int] = set()
        """Those for queue pairs between hosts, which are made when they are needed first."""
        self._free: deque[int] = deque()
        """Those of them that nobody has, the one longest unused first."""
        self.pairs: dict[int, DevicePair] = {}
        self.dropped: Counter[str] = Counter()
        """Nothing: devices count what they drop by names of their own (``VerbsStation.counters``)."""
        self.checks_icrc = True
        self._serial = 0
        self._connections: dict[int, DevicePair] = {}
        """The pairs that work, by the numbers of their connections."""

    def _make(self) -> QP:
        room = QPCap(max_send_wr=self.depth, max_recv_wr=self.depth, max_send_sge=1, max_recv_sge=1)
        wanted = QPInitAttr(qp_type=enums.IBV_QPT_RC, scq=self.queue, rcq=self.queue, cap=room, sq_sig_all=1)
        return QP(self._protection, wanted)

    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> DevicePair:
        """Connect the queue pair of this number. Raises ``ValueError`` when it is in use or not of the pool,
        ``FailedError`` when the peer cannot be reached, or the configuration's MTU is too long."""
        qp = self._idle.get(number)
        if qp is None:
            raise ValueError(f"QP {number:#x} is {'in use' if number in self.pairs else 'none of this device'}")
        self._serial += 1
        pair = DevicePair(self, qp, self._serial, peer, config, on_completion)
        del self._idle[number]
        self.pairs[number] = self._connections[self._serial] = pair
        return pair

    def destroy_pair(self, pair: VerbsPair) -> None:
        """Reset a queue pair, which can then be created again. Packets for it are dropped from now on."""
        assert isinstance(pair, DevicePair)
        del self.pairs[pair.number]
        self.forget(pair.serial)
        pair.reset()
        self._idle[pair.number] = pair.qp
        if pair.number in self._own:
            self._free.append(pair.number)

    def own_numbers(self, count: int) -> tuple[int, ...]:
        """Numbers for queue pairs between hosts (``VerbsNic.own_numbers``), of as many as the pool has at most."""
        more = count - len(self._free)
        if len(self._own) + more > len(self.numbers):
            raise FailedError(
                f"{count} more queue pairs are wanted, and {len(self._free)} of {len(self.numbers)} are free"
            )
        for _ in range(more):
            qp = self._make()
            self._idle[qp.qp_num] = qp
            self._own.add(qp.qp_num)
            self._free.append(qp.qp_num)
        return tuple(self._free.popleft() for _ in range(count))

    def forget(self, serial: int) -> None:
        """Ignore what completes of a connection from now on."""
        self._connections.pop(serial, None)

    def take_completions(self) -> bool:
        """Handle some completions. Returns whether there may be more."""
        count, found = self.queue.poll(_AT_ONCE)
        for each in found:
            serial, receive = divmod(each.wr_id, 2)
            pair = self._connections.get(serial)
            if pair is not None:
                status = STATUSES.get(each.status, Status.BAD_RESPONSE)
                right = receive and status is Status.SUCCESS
                said = socket.ntohl(each.imm_data) if right and each.wc_flags & enums.IBV_WC_WITH_IMM else None
                pair.completed(bool(receive), status, each.byte_len if right else 0, said)
        return bool(count == _AT_ONCE)

    def close(self) -> None:
        """Release the device."""
        self._context.close()


class VerbsStation:
    """The verbs device ``device_name`` on a loop, with the IPv4 address ``ip`` (``p4gen.host.transport.realtime
    .Station``). It makes ``pairs`` queue pairs, whose queues hold ``depth`` work requests each.

    Raises ``InputError`` when there is no such device with this address, or it has not so many queue pairs.
    """

    def __init__(
        self, loop: RealTimeLoop, device_name: str, ip: int, *, pairs: int = PAIRS, depth: int = DEPTH
    ) -> None:
        self.loop, self.device_name = loop, device_name
        self.nic = VerbsNic(loop, device_name, ip, pairs, depth)
        self._before = _counters(device_name)
        self.nic.queue.req_notify()
        loop.add_reader(self.nic.descriptor, self._look)

    def info(self) -> NicInfo:
        """What a manager has to know of the device."""
        nic = self.nic
        mtus = tuple(mtu for mtu in MTUS if mtu <= nic.mtu)
        return NicInfo(Recovery.GO_BACK_N, mtus, _OUTSTANDING, nic.reads, tuple(spans(nic.numbers)))

    def counters(self) -> dict[str, int]:
        """What the device has counted since the station was made, by its own names."""
        return {name: count - self._before.get(name, 0) for name, count in _counters(self.device_name).items()}

    def close(self) -> None:
        """Remove the NIC from the loop, and release the device. Call it on the loop, or after the loop has ended."""
        self.loop.remove_reader(self.nic.descriptor)
        self.nic.close()

    def _look(self) -> None:
        """There are completions. The device says so once, until it is asked to say so again."""
        self.nic.channel.get_cq_event(self.nic.queue)
        self.nic.queue.ack_events(1)
        self.nic.queue.req_notify()
        self.loop.refresh()
        self._take(None)

    def _take(self, _: object) -> None:
        if self.nic.take_completions():
            self.loop.at(self.loop.now, self._take)


def _channel(context: Context) -> tuple[CompChannel, int]:
    """A channel of completion events, and its descriptor, which pyverbs keeps to itself."""
    before = set(_events())
    made = CompChannel(context)
    (descriptor,) = set(_events()) - before
    return made, descriptor


def _events() -> Iterable[int]:
    """The descriptors of this process that give events of verbs."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.readlink(f"/proc/self/fd/{name}") == "anon_inode:[infinibandevent]":
                yield int(name)
        except OSError:  # that of the folder
            continue


def _gid_index(device: str, ip: int) -> int:
    """The index of an address in a device's table. Raises ``InputError`` if it has none for RoCE v2."""
    port = _DEVICES / device / "ports" / "1"
    if not port.is_dir():
        known = ", ".join(sorted(each.name for each in _DEVICES.glob("*"))) or "none"
        raise InputError(f"there is no verbs device {device} (there is: {known})")
    wanted = gid_text(ip)
    for entry in sorted(port.glob("gids/*"), key=lambda each: int(each.name)):
        try:
            kind = (port / "gid_attrs" / "types" / entry.name).read_text(encoding="ascii").strip()
        except OSError:  # an empty entry
            continue
        if kind == _ROCE_V2 and entry.read_text(encoding="ascii").strip() == wanted:
            return int(entry.name)
    raise InputError(f"device {device} has not the address {ip_text(ip)}: give it to its network interface")


def _counters(device: str) -> dict[str, int]:
    found = {}
    for entry in sorted((_DEVICES / device / "ports" / "1" / "hw_counters").glob("*")):
        text = entry.read_text(encoding="ascii").strip()
        if text.isdecimal() and entry.name != "lifespan":
            found[entry.name] = int(text)
    return found
