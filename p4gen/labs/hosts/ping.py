"""ICMP echo: ``python -m p4gen.labs.hosts.ping [-c COUNT] [-i SECONDS] ADDRESS``; used in labs if ``ping`` is not
installed."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import sys
import time
from typing import Final

PING: Final = (sys.executable, "-m", "p4gen.labs.hosts.ping")
"""The command, which is always available."""
_REQUEST, _REPLY = 8, 0
_PATIENCE_S = 2.0
_DATA = bytes(range(48))


def ping(address: str, number: int, identity: int, patience: float = _PATIENCE_S) -> float | None:
    """Send one echo request (RFC 792). Returns the seconds until its reply, None when there is none. Needs
    CAP_NET_RAW."""
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as found:
        head = struct.pack("!BBHHH", _REQUEST, 0, 0, identity, number)
        message = head[:2] + _checksum(head + _DATA) + head[4:] + _DATA
        began = time.monotonic()
        found.sendto(message, (address, 0))
        while (left := began + patience - time.monotonic()) > 0:
            if select.select([found], [], [], left)[0]:
                reply = found.recv(2048)
                start = (reply[0] & 15) * 4
                kind, _, _, whose, which = struct.unpack_from("!BBHHH", reply, start)
                if (kind, whose, which) == (_REPLY, identity, number) and reply[start + 8 :] == _DATA:
                    return time.monotonic() - began
    return None


def _checksum(data: bytes) -> bytes:
    """The Internet checksum (RFC 1071)."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return (~total & 0xFFFF).to_bytes(2)


def main(arguments: list[str]) -> int:
    """Ping ``count`` times or until Ctrl-C, with output like that of ping. Returns 1 when no reply came."""
    options = dict(zip(arguments[:-1:2], arguments[1:-1:2], strict=False))
    address, count, pause = arguments[-1], int(options.get("-c", "0")), float(options.get("-i", "1"))
    sent = received = 0
    with contextlib.suppress(KeyboardInterrupt):
        while not count or sent < count:
            if sent:
                time.sleep(pause)
            sent += 1
            seconds = ping(address, sent & 0xFFFF, os.getpid() & 0xFFFF)
            if seconds is not None:
                received += 1
                _say(f"{len(_DATA) + 8} bytes from {address}: icmp_seq={sent} time={seconds * 1e3:.3f} ms")
    _say(f"{sent} packets transmitted, {received} received, {100 - 100 * received // sent}% packet loss")
    return 0 if received else 1


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
