"""A network namespace for the calling thread and what it starts.

The model's interfaces have fixed names, and its TCP ports to bf_switchd are fixed, too, so two models need two
namespaces. The kernel removes a namespace with its interfaces when the last process in it has ended, even if this one
was killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

from p4gen.errors import FailedError
from p4gen.packetio.ip import ip

_CLONE_NEWNET = 0x40000000
_THIS = "/proc/thread-self/ns/net"


def _call(name: str, *arguments: int) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments):
        number = ctypes.get_errno()
        raise FailedError(f"a network namespace of its own: {name}: {os.strerror(number)}")


@contextlib.contextmanager
def own_network() -> Iterator[None]:
    """In the block, the calling thread and its new threads and processes are in a new network namespace, with loopback.

    Raises ``FailedError`` when the kernel refuses, which it does without CAP_SYS_ADMIN.
    """
    before = os.open(_THIS, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _call("unshare", _CLONE_NEWNET)
        try:
            ip("link set lo up")
            yield
        finally:
            _call("setns", before, _CLONE_NEWNET)
    finally:
        os.close(before)
