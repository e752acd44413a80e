"""ICMP echo of IPv4 or IPv6: ``python -m p4gen.labs.hosts.ping [-c COUNT] [-i SECONDS] ADDRESS``; used in labs if
``ping`` is not installed."""

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
_REQUEST, _REPLY, _IPV6_REQUEST, _IPV6_REPLY = 8, 0, 128, 129
_PATIENCE_S = 2.0
_DATA = bytes(range(48))


def ping(address: str, number: int, identity: int, patience: float = _PATIENCE_S) -> float | None:
    """Send one echo request (RFC 792, RFC 4443). Returns the seconds until its reply, None when there is none. Needs
    CAP_NET_RAW."""
    if ":" in address:
        opened, asked, answered = (socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6), _IPV6_REQUEST, _IPV6_REPLY
    else:
        opened, asked, answered = (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP), _REQUEST, _REPLY
    with socket.socket(*opened) as found:
        head = struct.pack("!BBHHH", asked, 0, 0, identity, number)
        # The kernel computes the checksum of IPv6's, and takes the IP header off.
        message = head[:2] + _checksum(head + _DATA) + head[4:] + _DATA
        began = time.monotonic()
        found.sendto(message, (address, 0))
        while (left := began + patience - time.monotonic()) > 0:
            if select.select([found], [], [], left)[0]:
                reply = found.recv(2048)
                start = 0 if ":" in address else (reply[0] & 15) * 4
                kind, _, _, whose, which = struct.unpack_from("!BBHHH", reply, start)
                if (kind, whose, which) == (answered, identity, number) and reply[start + 8 :] == _DATA:
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
