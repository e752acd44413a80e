"""BMv2's ports as veth pairs, for builds without the data-plane interface; needs CAP_NET_ADMIN and CAP_NET_RAW."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from p4gen.errors import FailedError
from p4gen.packetio import wait_for_links
from p4gen.packetio.ip import ip
from p4gen.switch.fence import Marker, MarkerFence
from p4gen.switch.packet import PacketPorts

MTU = 9500
QUIET_S = 0.15
"""Seconds without a frame after which a switch on veth pairs is assumed to have handled everything; it does not report
it."""
BURST = 64
"""Frames that may be in flight with markers: a veth interface holds about 200 small frames for a slow reader."""
_PREFIX = "p4g"


@contextlib.contextmanager
def veth_pairs(
    ports: Iterable[int], names: Callable[[int], tuple[str, str]] | None = None
) -> Iterator[dict[int, tuple[str, str]]]:
    """A veth pair for each port while the block runs: (the switch's end, the other end), with these ``names``, or with
    names that no other process has.

    Raises ``MissingToolError`` without iproute2, and ``FailedError`` if interfaces cannot be created.
    """
    made: dict[int, tuple[str, str]] = {}
    try:
        for port in ports:
            inner, outer = (names or _own_names)(port)
            ip(f"link add {inner} mtu {MTU} type veth peer name {outer} mtu {MTU}")
            made[port] = (inner, outer)
            ip(*(f"link set {end} addrgenmode none up" for end in made[port]))  # no IPv6 packets from the kernel
        if not wait_for_links(end for pair in made.values() for end in pair):
            raise FailedError("veth interfaces were created, but do not get a link")
        yield made
    finally:
        for inner, _ in made.values():
            with contextlib.suppress(FailedError):
                ip(f"link del {inner}")


def _own_names(port: int) -> tuple[str, str]:
    """Names have 15 characters at most; the process id keeps two runs apart."""
    name = f"{_PREFIX}{os.getpid() % 1_000_000}-{port}"
    return f"{name}s", f"{name}p"


class VethDataplane:
    """``p4gen.switch.dataplane.Dataplane`` on interfaces, by port. ``settle`` waits until there is no more traffic, or,
    with ``markers``, for these. Every time limit is multiplied by ``slower``."""

    def __init__(
        self,
        interfaces: Mapping[int, str],
        received: Callable[[int, bytes], None],
        *,
        slower: float = 1.0,
        markers: Mapping[int, Marker] | None = None,
    ) -> None:
        self._received = received
        self._quiet = QUIET_S * slower
        self._marked = threading.Event()
        self._fence = MarkerFence(markers, self._send, self._wait, slower=slower) if markers else None
        self._unsettled = 0
        self._last = time.monotonic()
        self._ports = PacketPorts(self._arrived, interfaces)
        self._thread = threading.Thread(target=self._ports.run, daemon=True)
        self._thread.start()

    def __enter__(self) -> VethDataplane:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, port: int, frame: bytes) -> None:
        """Give a frame to the switch. With markers, wait for the switch now and then: an interface drops frames for
        which it has no room."""
        if self._fence is not None and self._unsettled == BURST:
            self.settle()
        self._unsettled += 1
        self._send(port, frame)

    def _send(self, port: int, frame: bytes) -> None:
        self._last = time.monotonic()
        self._ports.send(port, frame)

    def settle(self) -> None:
        """Wait until all markers have arrived, if there are any, or no frame has been sent or received for a while.

        Raises ``FailedError`` when a marker does not arrive.
        """
        self._unsettled = 0
        if self._fence is not None:
            self._fence.settle()
            return
        while (left := self._last + self._quiet - time.monotonic()) > 0:
            time.sleep(left)

    def close(self) -> None:
        """Close the sockets of all interfaces."""
        self._ports.stop()
        self._thread.join()
        self._ports.close()

    def _arrived(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        self._last = time.monotonic()
        if self._fence is not None and self._fence.arrived(port, frame):
            self._marked.set()
        else:
            self._received(port, frame)
        return []

    def _wait(self, until: float) -> None:
        """Wait until a marker arrives, or until a time."""
        self._marked.wait(max(0.0, until - time.monotonic()))
        self._marked.clear()
