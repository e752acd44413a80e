"""BMv2's registers and queues through its Thrift server: only the calls that are needed, in Thrift's binary protocol.

BMv2's own Python stubs are part of its installation and are in no package registry. Protocol:
https://github.com/apache/thrift/blob/master/doc/specs/thrift-binary-protocol.md, multiplexed and unframed.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator

from p4gen.errors import FailedError
from p4gen.model.errors import ControlError

_VERSION_CALL, _VERSION_MASK, _EXCEPTION = 0x80010001, 0xFFFF0000, 3
_STOP, _I32, _I64, _STRING, _LIST = 0, 8, 10, 11, 15
_TIMEOUT_S = 300.0
LIMIT = 2**63 - 1


class ThriftRegisters:
    """Reads and writes registers of the switch whose Thrift server is at ``port`` of this machine.

    BMv2 answers with signed 64-bit numbers; larger values are returned as the largest of them, ``LIMIT``.
    """

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket: socket.socket | None = None

    def registers(self, name: str) -> list[int]:
        """All cells of a register, by its full name, as unsigned numbers.

        Raises ``ControlError`` for a register that BMv2 does not have, and ``FailedError`` when BMv2 has ended.
        """
        with self._connected():
            self._send("standard:bm_register_read_all", _register(name))
            if self._answer() != (_LIST, 0):
                raise self._refused(name)
            element, count = struct.unpack("!bi", self._take(5))
            assert element == _I64
            values = struct.unpack(f"!{count}Q", self._take(8 * count))
            assert self._field() == (_STOP, 0)
            return list(values)

    def reset(self, name: str) -> None:
        """Set all cells of a register to 0. Raises as ``registers``."""
        self._order("standard:bm_register_reset", b"", name)

    def write(self, name: str, index: int, value: int) -> None:
        """Set a cell of a register. Raises as ``registers``, and ``ControlError`` for a number above ``LIMIT``."""
        if value > LIMIT:
            raise ControlError(f"register {name}: BMv2's Thrift server takes no number as large as {value:#x}")
        self._order("standard:bm_register_write", struct.pack("!bhibhq", _I32, 3, index, _I64, 4, value), name)

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def set_queue_depths(self, depth: int) -> bool:
        """Set the length of each egress queue in packets; simple_switch's default is 64. Returns False if this build
        cannot do it, or does not answer."""
        try:
            self._send("simple_switch:set_all_egress_queue_depths", struct.pack("!bhi", _I32, 1, depth))
            return self._answer() == (_I32, 0)
        except OSError:
            return False
        finally:
            self.close()

    def _send(self, method: str, arguments: bytes) -> None:
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self._port), _TIMEOUT_S)
        message = struct.pack("!I", _VERSION_CALL) + _string(method) + struct.pack("!i", 0) + arguments + bytes([_STOP])
        self._socket.sendall(message)

    def _answer(self) -> tuple[int, int]:
        """Type and number of an answer's first field; (stop, 0) if it has none, (exception, 0) for an exception."""
        (version,) = struct.unpack("!I", self._take(4))
        kind = version & ~_VERSION_MASK & 0xFF
        self._take(struct.unpack("!i", self._take(4))[0] + 4)  # the method's name and the sequence number
        field = self._field()
        return (_EXCEPTION, 0) if kind == _EXCEPTION else field

    def _order(self, method: str, arguments: bytes, name: str) -> None:
        """Make a call about a register that has no result."""
        with self._connected():
            self._send(method, _register(name) + arguments)
            if self._answer() != (_STOP, 0):
                raise self._refused(name)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            self.close()
            raise FailedError(f"BMv2's Thrift server at port {self._port} does not answer: {problem}") from None

    def _refused(self, name: str) -> ControlError:
        self.close()  # the rest of the answer is not needed
        return ControlError(f"register {name}: BMv2 does not provide it through Thrift")

    def _field(self) -> tuple[int, int]:
        kind = self._take(1)[0]
        return (kind, struct.unpack("!h", self._take(2))[0]) if kind != _STOP else (_STOP, 0)

    def _take(self, size: int) -> bytes:
        assert self._socket is not None
        data = b""
        while len(data) < size:
            more = self._socket.recv(size - len(data))
            if not more:
                raise ConnectionError("BMv2 closed the connection")
            data += more
        return data


def _register(name: str) -> bytes:
    """The first two arguments of calls about a register: the context and the name."""
    return struct.pack("!bhi", _I32, 1, 0) + struct.pack("!bh", _STRING, 2) + _string(name)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("!i", len(data)) + data
