"""recvmmsg(2) and sendmmsg(2), and the structures that they take as NumPy types (Linux, 64 bits).

If the C library lacks them, recvmsg(2) and sendmsg(2) are called for each frame; a ``mmsghdr`` begins with the
``msghdr`` that they take.
"""

from __future__ import annotations

import ctypes
import errno
import socket
from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.errors import MissingToolError

Bytes = npt.NDArray[np.uint8]
Words = npt.NDArray[np.int64]

IOVEC = np.dtype([("base", "u8"), ("size", "u8")])
MMSGHDR = np.dtype(
    {
        "names": ["name", "name_size", "iov", "iov_count", "control", "control_size", "flags", "size"],
        "formats": ["u8", "u4", "u8", "u8", "u8", "u8", "i4", "u4"],
        "offsets": [0, 8, 16, 24, 32, 40, 48, 56],
        "itemsize": 64,
    }
)
SOCKADDR_LL = np.dtype(
    {
        "names": ["family", "protocol", "index", "type", "packet_type", "address_size", "address"],
        "formats": ["u2", "u2", "i4", "u2", "u1", "u1", ("u1", 8)],
        "offsets": [0, 2, 4, 8, 10, 11, 12],
        "itemsize": 24,
    }
)
SOCKADDR_LL_SIZE = 20
"""The structure's size as the kernel expects it; the NumPy type above is padded."""
CONTROL = np.dtype(
    {
        "names": ["level", "type", "seconds", "nanoseconds", "aux_level", "aux_type", "status", "tci", "tpid"],
        "formats": ["i4", "i4", "i8", "i8", "i4", "i4", "u4", "u2", "u2"],
        "offsets": [8, 12, 16, 24, 40, 44, 48, 64, 66],
        "itemsize": 72,
    }
)
"""The control messages of a packet socket with SO_TIMESTAMPNS and PACKET_AUXDATA, in the order in which
``packet_recvmsg`` of the kernel (net/packet/af_packet.c) puts them."""

MSG_TRUNC, DONT_WAIT = 0x20, 0x40
AT_ONCE = 1024
"""The most messages that sendmmsg(2) takes (UIO_MAXIOV)."""
VLAN_VALID, TPID_VALID = 1 << 4, 1 << 6
"""Bits of ``status``: the kernel has removed a VLAN tag; ``tpid`` is that of the tag, which is 0x8100 otherwise."""


def _library() -> Any:
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        raise MissingToolError("batched packet sockets need a 64-bit machine")
    return ctypes.CDLL(None, use_errno=True)


def address(name: str) -> int:
    """The address of a function of the C library, for machine code. Raises ``MissingToolError`` if it has none."""
    function = getattr(_library(), name, None)
    if function is None:
        raise MissingToolError(f"the C library has no {name}, which switches on interfaces need")
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _find(name: str, *more: object) -> Any:
    function = getattr(_library(), name, None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_void_p, *more]
        function.restype = ctypes.c_long if name in ("recvmsg", "sendmsg") else ctypes.c_int
    return function


class Messages:
    """``count`` messages of one buffer each. The caller fills in their parts.

    ``recv`` and ``send`` return the number of messages moved, and raise ``OSError`` when the first one fails. With
    ``one_by_one`` they use recvmsg(2) and sendmsg(2).
    """

    def __init__(self, count: int, *, one_by_one: bool = False) -> None:
        self.headers = np.zeros(count, MMSGHDR)
        self.pieces = np.zeros(count, IOVEC)
        self.headers["iov"] = self.pieces.ctypes.data + IOVEC.itemsize * np.arange(count, dtype=np.uint64)
        self.headers["iov_count"] = 1
        self._at = self.headers.ctypes.data
        many = (ctypes.c_uint, ctypes.c_int)
        self._recvmmsg = None if one_by_one else _find("recvmmsg", *many, ctypes.c_void_p)
        self._sendmmsg = None if one_by_one else _find("sendmmsg", *many)
        self._recvmsg, self._sendmsg = _find("recvmsg", ctypes.c_int), _find("sendmsg", ctypes.c_int)

    def __len__(self) -> int:
        return len(self.headers)

    def recv(self, file: int, first: int, count: int) -> int:
        """Receive up to ``count`` frames into the messages from ``first`` on. Returns their number, 0 when none
        waits."""
        at = self._at + MMSGHDR.itemsize * first
        if self._recvmmsg is not None:
            moved: int = self._recvmmsg(file, at, count, DONT_WAIT, None)
            if moved < 0:
                return _nothing()
            return moved
        for done in range(count):
            size = self._recvmsg(file, at + MMSGHDR.itemsize * done, DONT_WAIT)
            if size < 0:
                return done or _nothing()
            self.headers["size"][first + done] = size
        return count

    def send(self, file: int, first: int, count: int) -> int:
        """Send up to ``count`` messages from ``first`` on. Returns their number."""
        at = self._at + MMSGHDR.itemsize * first
        if self._sendmmsg is not None:
            moved: int = self._sendmmsg(file, at, count, DONT_WAIT)
            if moved < 0:
                raise _error()
            return moved
        for done in range(count):
            if self._sendmsg(file, at + MMSGHDR.itemsize * done, DONT_WAIT) < 0:
                if done:
                    return done
                raise _error()
        return count


def _nothing() -> int:
    error = _error()
    if error.errno in (errno.EAGAIN, errno.EINTR):
        return 0
    raise error


def _error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, errno.errorcode.get(number, str(number)))


SOL_SOCKET, SO_TIMESTAMPNS = socket.SOL_SOCKET, 35
SOL_PACKET, PACKET_AUXDATA = 263, 8
