"""This process as a host of a manager: its NIC, on a network interface or a verbs device, and its groups."""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

from p4gen.errors import FailedError, InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import MS
from p4gen.host.transport.nicinfo import NicInfo
from p4gen.host.transport.realtime import RealTimeLoop
from p4gen.host.transport.realtime import Station as RealTimeStation
from p4gen.inputs import parsed
from p4gen.manager.api import Code, GroupSpec, HostAddresses, HostInfo, ManagerError
from p4gen.manager.ranks.host import Host
from p4gen.manager.ranks.member import Member
from p4gen.manager.ranks.ranks import TIMEOUT
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.tls import VARIABLE
from p4gen.packetio import PacketSocket, longest_frame
from p4gen.rocev2.headers import ip_text, is_ipv6, mac_text
from p4gen.vocabulary import units
from p4gen.vocabulary.message import ROOTS, Collective

_LOOK_S: Final = 0.005
_SIOCGIFADDR: Final = 0x8915
_IPV6_ADDRESSES: Final = Path("/proc/net/if_inet6")


class Station:
    """One host, shared by all its ranks in this process: made for the first one, closed after the last one."""

    _all: ClassVar[dict[tuple[str, str], Station]] = {}
    _lock: ClassVar[threading.RLock] = threading.RLock()

    def __init__(
        self, address: str, host: str, interface: str | None, timer: str | None, verbs: str | None, tls: str | None
    ) -> None:
        self._users = 0
        self._key = address, host
        with contextlib.ExitStack() as opened:
            self.manager = opened.enter_context(ManagerClient(address, tls=tls))
            # Our NIC keeps packets that come out of order; what a device does, it says below.
            info = HostInfo(host, out_of_order=not verbs)
            self.addresses: HostAddresses = self.manager.register_host(info)
            self.loop = RealTimeLoop()
            if verbs:
                self.nic, nic_info = self._open_device(opened, verbs)
                info = replace(info, nic=nic_info)
                self.manager.register_host(info)
            else:
                self.nic = self._open_socket(opened, interface or interface_with(self.addresses, host))
            opened.callback(self.loop.close)
            self.loop.start()
            timeout = TIMEOUT if timer is None else parsed("timer", units.duration, timer)
            self._host = opened.enter_context(
                Host(
                    self.manager,
                    host,
                    self.nic,
                    timeout_ps=max(timeout, MS),
                    out_of_order=info.out_of_order,
                    info=info.nic,
                )
            )
            self._opened = opened.pop_all()

    def _open_device(self, opened: contextlib.ExitStack, name: str) -> tuple[RealTimeStation, NicInfo]:
        """A verbs device as the host's NIC."""
        from p4gen.host.device.verbs import VerbsStation  # noqa: PLC0415 - pyverbs may be missing

        station = VerbsStation(self.loop, name, self.addresses.ip)
        opened.callback(station.close)
        return station, station.info()

    def _open_socket(self, opened: contextlib.ExitStack, device: str) -> RealTimeStation:
        """Our NIC on a network interface."""
        from p4gen.host.raw import RawNic, kernel_sink, load  # noqa: PLC0415 - Numba, which a device does not need

        _check_mac(device, self.addresses)
        room = longest_frame(device)
        try:
            port = PacketSocket(device, frame_room=room)
        except PermissionError:
            raise InputError("a rank needs packet sockets: run it as root, or with CAP_NET_RAW") from None
        opened.callback(port.close)
        with contextlib.suppress(OSError):  # another process of this host has it
            opened.callback(kernel_sink().close)
        load()
        return RawNic(self.loop, port, self.addresses.mac, self.addresses.ip, frame_room=room)

    @classmethod
    def shared(
        cls,
        manager: str | None,
        host: str | None,
        interface: str | None,
        timer: str | None,
        verbs: str | None,
        tls: str | None,
    ) -> Station:
        """The host of this name, for one more user. Raises ``InputError`` for what is missing or unknown."""
        key = stated(manager, "manager", "P4GEN_MANAGER"), stated(host, "host", "P4GEN_HOST")
        with cls._lock:
            station = cls._all.get(key)
            if station is None:
                given = (
                    value or os.environ.get(variable)
                    for value, variable in (
                        (interface, "P4GEN_INTERFACE"),
                        (timer, "P4GEN_TIMER"),
                        (verbs, "P4GEN_VERBS"),
                        (tls, VARIABLE),
                    )
                )
                station = cls._all[key] = cls(*key, *given)
            station._users += 1
            return station

    def release(self, group: str = "") -> None:
        """One user less. If others stay, the group that this one has abandoned is destroyed; if not, the manager
        notices that the host has gone, and says so to the other ranks."""
        with self._lock:
            self._users -= 1
            if not self._users:
                del self._all[self._key]
                self._opened.close()
            elif group:
                with contextlib.suppress(ManagerError):  # it has gone already
                    self.manager.destroy_group(group)

    def ranks(self, given: Sequence[str] | None) -> tuple[str, ...]:
        """The hosts of a group; none if nobody says."""
        if given is None:
            text = os.environ.get("P4GEN_RANKS", "")
            return tuple(text.split(",")) if text else ()
        return tuple(given)

    def create(self, group: str, ranks: Sequence[str], *, elastic: bool) -> bool:
        """Create a group, if this host is its rank 0 and there is none. Returns whether it was created. Raises
        ``FailedError``."""
        if not ranks or ranks[0] != self._host.name:
            return False
        problem: ManagerError | None = None
        for spec in _requests(group, tuple(ranks), elastic=elastic):
            try:
                self.manager.init_group(spec)
            except ManagerError as error:
                if error.code is Code.EXISTS:
                    return False
                # The program may lack one kind of synchronisation; what the other one lacks says more.
                problem = error if problem is None or problem.code is Code.INVALID else problem
            else:
                return True
        assert problem is not None
        raise problem

    def member(self, group: str, ranks: Sequence[str], timeout: float) -> tuple[Member, tuple[str, ...]]:
        """This host's rank of an active group, and all ranks' hosts. Raises ``InputError`` if the group's are not
        ``ranks``, ``FailedError`` when it is not active within ``timeout`` seconds."""
        until = time.monotonic() + timeout
        member = self._host.member(group, timeout)
        while member.ended or member.rank is None or member.program is None:
            if time.monotonic() > until:
                why = member.ended or member.reason or member.state
                raise FailedError(f"group {group} is not active after {timeout:g} s: {why}")
            time.sleep(_LOOK_S)
            if member.ended:  # an earlier group of this name
                member = self._host.member(group, max(0.0, until - time.monotonic()))
        self.loop.run_there(lambda: member.accept(member.term))
        found = self.manager.group(group).spec.ranks
        if ranks and tuple(ranks) != found:
            raise InputError(f"group {group} has the ranks {' '.join(found)}, not {' '.join(ranks)}")
        return member, found

    def change(self, member: Member, until: float, wanted: Callable[[GroupSpec], Sequence[str]]) -> tuple[str, ...]:
        """Wait until a group has a new term. ``wanted`` finds its ranks in the spec of the present term, and the first
        of them asks the manager. Returns the ranks. Raises ``FailedError`` when the group has ended, or
        ``until``, a time by ``time.monotonic``, has passed."""
        name, term = member.group, member.accepted
        while True:
            spec = self.manager.group(name).spec
            ranks = tuple(wanted(spec)) if spec.term == term else ()
            if ranks and ranks[0] == self._host.name:
                spec = self.manager.set_ranks(name, ranks, term).spec
            if spec.term > term and (member.ended or member.term == spec.term):
                break
            if time.monotonic() > until:
                raise FailedError(f"group {name} has no other ranks yet: {member.reason or member.state}")
            time.sleep(_LOOK_S)
        if member.ended:
            raise FailedError(member.ended)
        self.loop.run_there(lambda: member.accept(spec.term))
        return spec.ranks

    def leave(self, member: Member, patience: float) -> None:
        """Wait until a group that one of its ranks has created is gone, or ``patience`` seconds have passed. Its rank 0
        destroys it."""
        until = time.monotonic() + patience
        if member.rank == 0:
            self.manager.destroy_group(member.group)
        while not member.ended and time.monotonic() < until:
            time.sleep(_LOOK_S)


def _requests(group: str, ranks: tuple[str, ...], *, elastic: bool) -> list[GroupSpec]:
    """What to ask the manager for, best first: a queue pair for all calls, or one for each pattern; on a ring of the
    hosts if switches have no place. Of a large group not every rank can be a root in every program."""
    every = frozenset(Collective)
    fewer = frozenset(each for each in Collective if not each.every_root)
    kinds = [
        GroupSpec(group, ranks, sync=sync, collectives=calls, elastic=elastic)
        for calls in ((every, fewer) if len(ranks) > ROOTS else (every,))
        for sync in (PsnSync.REFINED, PsnSync.SUBGROUPS)
    ]
    return kinds + [replace(kind, fallback=True) for kind in kinds if len(ranks) > 1]


def stated(value: str | None, what: str, variable: str) -> str:
    """A value that is given, or that of the environment. Raises ``InputError`` without either."""
    found = value or os.environ.get(variable)
    if not found:
        raise InputError(f"the {what} is not given, and {variable} is not set")
    return found


def interface_with(addresses: HostAddresses, host: str) -> str:
    """The interface that has the address of a host. Raises ``InputError`` if none has."""
    if is_ipv6(addresses.ip):
        with contextlib.suppress(OSError):  # there is no IPv6
            for line in _IPV6_ADDRESSES.read_text(encoding="ascii").splitlines():
                address, *_, name = line.split()
                if int(address, 16) == addresses.ip:
                    return name
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            with contextlib.suppress(OSError):  # it has no address
                answer = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("16s24x", name.encode()))
                if int.from_bytes(answer[20:24], "big") == addresses.ip:
                    return name
    raise InputError(
        f"no interface has {ip_text(addresses.ip)}, the address that the manager gives to {host}: set it with ip "
        "addr add, or name the interface"
    )


def _check_mac(device: str, addresses: HostAddresses) -> None:
    """Raises ``InputError`` unless an interface has the MAC address of a host."""
    try:
        mac = Path("/sys/class/net", device, "address").read_text(encoding="ascii").strip()
    except OSError:
        raise InputError(f"there is no interface {device}") from None
    wanted = mac_text(addresses.mac)
    if mac != wanted:
        raise InputError(f"{device} has the address {mac}; the manager expects {wanted}: ip link set {device} address")
