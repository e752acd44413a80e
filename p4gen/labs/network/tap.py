"""Captures interfaces into a pcapng file: ``python -m p4gen.labs.network.tap FILE INTERFACE…``, until SIGTERM.

Both directions are captured as the interface sees them: frames that a host's faults dropped before sending are missing;
frames that they will drop after reception are included.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from pathlib import Path

from p4gen.net.views.capture import PcapngWriter

_ETH_P_ALL = 0x0003
_OUTGOING = 4
_RCVBUFFORCE = 33
_BUFFER = 32 << 20
_LONGEST = 1 << 16
_BATCH = 256


def _socket(interface: str) -> socket.socket:
    found = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    with contextlib.suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, _RCVBUFFORCE, _BUFFER)
    found.setblocking(False)
    found.bind((interface, _ETH_P_ALL))
    return found


def main(arguments: list[str]) -> int:
    """Write the frames of interfaces to a pcapng file until SIGTERM. ``arguments`` are the file and the interfaces."""
    path, names = Path(arguments[0]), arguments[1:]
    wakes, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.signal(signal.SIGTERM, lambda *_: os.close(waker))
    sockets = {found.fileno(): (number, found) for number, found in enumerate(map(_socket, names))}
    poll = select.poll()
    for descriptor in (*sockets, wakes):
        poll.register(descriptor, select.POLLIN)
    # The file is created when everything is ready; the parent process waits for it.
    building = path.with_name(f".{path.name}")
    with building.open("wb") as file:
        writer = PcapngWriter(file, names)
        file.flush()
        building.rename(path)
        while True:
            ready = [descriptor for descriptor, _ in poll.poll()]
            for descriptor in ready:
                if descriptor in sockets:
                    _take(*sockets[descriptor], writer)
            file.flush()
            if ready == [wakes]:
                return 0


def _take(number: int, found: socket.socket, writer: PcapngWriter) -> None:
    with contextlib.suppress(OSError):  # no more frames, or the interface is down
        for _ in range(_BATCH):
            frame, place = found.recvfrom(_LONGEST)
            writer.write(number, time.time_ns(), frame, outbound=place[2] == _OUTGOING)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
