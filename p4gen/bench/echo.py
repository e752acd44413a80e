"""Sends frames back on the interface they arrive at, one frame per call: the limit of a simple Python program.

``python -m p4gen.bench.echo INTERFACE ...`` runs until its standard input ends.
"""

from __future__ import annotations

import contextlib
import select
import sys

from p4gen.packetio import open_socket


def main() -> None:
    """Run the echo, see the module's docstring."""
    poll, sockets = select.epoll(), {}
    poll.register(0, select.EPOLLIN)
    for name in sys.argv[1:]:
        found = open_socket(name)
        sockets[found.fileno()] = found
        poll.register(found, select.EPOLLIN)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        for file, _ in poll.poll():
            if file == 0:
                return
            with contextlib.suppress(BlockingIOError):
                while True:
                    sockets[file].send(sockets[file].recv(65536))


if __name__ == "__main__":
    main()
