"""What compiled code knows of sockets: the functions of the C library that it calls, the time, and when to go on."""

from __future__ import annotations

import platform
from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.machine import call_c, load64
from p4gen.packetio.mmsg import address

FUNCTIONS: Final = {
    "wait": "epoll_wait", "receive": "recvmmsg", "send": "sendmmsg", "clock": "clock_gettime", "pause": "usleep",
}  # fmt: skip
"""The functions by the columns of records with their addresses."""
EVENT_SIZE: Final = 12 if platform.machine() == "x86_64" else 16
"""Bytes of an epoll_event; the descriptor is the word after the first."""
MOST_EVENTS: Final = 64
"""The most descriptors that one wait finds ready."""
PAUSE_US: Final = 50
"""Microseconds from a batch of frames to the next wait. Meanwhile several frames arrive, and who sends them wakes
nobody, which takes as long as sending one."""
TIME_SIZE: Final = 16
"""Bytes of a timespec."""
_S, _MS, _WORD = 1_000_000_000, 1_000_000, 8
_CLOCK_MONOTONIC: Final = 1


def functions() -> dict[str, int]:
    """The addresses of the functions, by column. Raises ``MissingToolError`` if the C library lacks one."""
    return {column: address(name) for column, name in FUNCTIONS.items()}


@compiled
def now(clock: int, room: int) -> int:
    """The time, ns; ``room`` is the address of a timespec."""
    call_c(clock, _CLOCK_MONOTONIC, room, 0, 0, 0)
    return load64(room) * _S + load64(room + _WORD)


@compiled
def milliseconds(left: int) -> int:
    """How long to wait for ``left`` ns, rounded up: who wakes too early would have to wait again."""
    return max(0, (left + _MS - 1) // _MS)
