"""BMv2's ports as veth pairs, for builds without the data-plane interface; needs CAP_NET_ADMIN and CAP_NET_RAW."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from p4gen.errors import FailedError, MissingToolError
from p4gen.packetio import wait_for_links
from p4gen.switch.packet import PacketPorts

MTU = 9500
QUIET_S = 0.15
"""Without a frame for so long, a switch on veths is taken to have handled everything: it does not say."""
_PREFIX = "p4g"


@contextlib.contextmanager
def veth_pairs(ports: Iterable[int]) -> Iterator[dict[int, tuple[str, str]]]:
    """A veth pair for each port while the block runs: (the switch's end, ours).

    Raises ``MissingToolError`` without iproute2, and ``FailedError`` where interfaces cannot be made.
    """
    if shutil.which("ip") is None:
        raise MissingToolError("ports on veth interfaces need the ip command (iproute2), which is not on PATH")
    made: dict[int, tuple[str, str]] = {}
    try:
        for port in ports:
            # Names have 15 characters at most; the process id keeps two runs apart.
            name = f"{_PREFIX}{os.getpid() % 1_000_000}-{port}"
            inner, outer = f"{name}s", f"{name}p"
            _ip("link", "add", inner, "mtu", str(MTU), "type", "veth", "peer", "name", outer, "mtu", str(MTU))
            made[port] = (inner, outer)
            for end in made[port]:
                _ip("link", "set", end, "addrgenmode", "none")  # no IPv6 of the kernel's own
                _ip("link", "set", end, "up")
        if not wait_for_links(end for pair in made.values() for end in pair):
            raise FailedError("veth interfaces were made, but do not get a link")
        yield made
    finally:
        for inner, _ in made.values():
            with contextlib.suppress(FailedError):
                _ip("link", "del", inner)


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        raise FailedError(f"ip {' '.join(arguments)}: {done.stderr.strip() or 'failed'} (CAP_NET_ADMIN is needed)")


class VethDataplane:
    """``p4gen.switch.dataplane.Dataplane`` on interfaces, by port. ``settle`` waits until nothing moves any more."""

    def __init__(self, interfaces: Mapping[int, str], received: Callable[[int, bytes], None]) -> None:
        self._received = received
        self._last = time.monotonic()
        self._ports = PacketPorts(self._arrived, interfaces)
        self._thread = threading.Thread(target=self._ports.run, daemon=True)
        self._thread.start()

    def __enter__(self) -> VethDataplane:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def send(self, port: int, frame: bytes) -> None:
        """Hand a frame to the switch."""
        self._last = time.monotonic()
        self._ports.send(port, frame)

    def settle(self) -> None:
        """Wait until no frame has come or gone for a while."""
        while (left := self._last + QUIET_S - time.monotonic()) > 0:
            time.sleep(left)

    def close(self) -> None:
        """Release the interfaces."""
        self._ports.stop()
        self._thread.join()
        self._ports.close()

    def _arrived(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        self._last = time.monotonic()
        self._received(port, frame)
        return []
