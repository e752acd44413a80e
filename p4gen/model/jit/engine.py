"""The native engine: runs a compiled program on packets, one by one or in batches."""

from __future__ import annotations

import ctypes
import struct
import weakref
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.model.interp.extern_args import leaves
from p4gen.model.jit import exchange as x
from p4gen.model.jit import native
from p4gen.model.jit.build import Site
from p4gen.model.jit.layout import align
from p4gen.model.jit.memory import Bytes
from p4gen.model.jit.program import Generated
from p4gen.model.jit.state import NativeState
from p4gen.model.runner import HoldingRunner, Runner
from p4gen.model.state import Digest
from p4gen.model.trace import Trace
from p4gen.model.values import StructValue
from p4gen.p4 import ir


@dataclass(frozen=True)
class Batch:
    """A batch of packets in ``data``. Packet i is ``data[offsets[i]:offsets[i + 1]]``, on port ``ports[i]``.
    ``sources``, of output packets: the index of the input packet that caused each. ``times``, of input packets: the
    time of arrival (µs); None: the present time. With ``ends``, of input packets, packet i is
    ``data[offsets[i]:ends[i]]``, in any order."""

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    ports: npt.NDArray[np.int32]
    sources: npt.NDArray[np.int32] | None = None
    times: npt.NDArray[np.uint64] | None = None
    ends: npt.NDArray[np.int64] | None = None

    @classmethod
    def of(cls, packets: Iterable[tuple[int, bytes]]) -> Batch:
        """A batch of (port, packet) pairs."""
        listed = list(packets)
        offsets = np.zeros(len(listed) + 1, np.int64)
        np.cumsum([len(data) for _, data in listed], out=offsets[1:])
        data = np.frombuffer(b"".join(d for _, d in listed), np.uint8)
        return cls(data, offsets, np.array([port for port, _ in listed], np.int32))

    def __len__(self) -> int:
        return len(self.ports)

    def packets(self) -> list[tuple[int, bytes]]:
        """The packets as (port, packet) pairs, copied."""
        whole, ends = self.data.tobytes(), self.offsets[1:] if self.ends is None else self.ends
        bounds = zip(self.ports.tolist(), self.offsets.tolist(), ends.tolist(), strict=False)
        return [(port, whole[start:end]) for port, start, end in bounds]


class Generate(Protocol):
    """Compiles the programs of an architecture. ``carryless``: the machine has a carry-less multiplication.

    Raises ``InputError`` with a position for unsupported constructs.
    """

    def __call__(self, program: ir.Program, *, carryless: bool) -> Generated:
        """Compile a program, or return what it was compiled to before: engines of one program share it."""


_SINGLE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64,
    ctypes.c_uint64,
)  # fmt: skip
_BATCH = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


_PAGE = 4096
"""A processor takes a load for one of what was just stored that many bytes away. So the frame to work on lies half a
page beside the first one of those that wait, which is copied to it."""


class Engine(HoldingRunner):
    """Runs a program's machine code on ``state``, which it moves into a block.

    ``cache`` is the folder of compiled programs, None for none; ``generate`` compiles, and ``interpreter`` makes the
    runner that traces packets on this state. Calls release the GIL; an engine may only be used by one thread at a time.
    Raises ``InputError`` with a position for unsupported constructs.
    """

    def __init__(
        self,
        program: ir.Program,
        state: NativeState,
        cache: Path | None,
        generate: Generate,
        interpreter: Callable[[ir.Program, Any], Runner],
    ) -> None:
        self._program, self.state = program, state
        self._new_interpreter = interpreter
        generated = generate(program, carryless=native.machine().carryless)
        self._generated = generated
        self._code, self.cached = native.load(generated.text, cache)
        state.place(generated.state, generated.types)
        self._single = _SINGLE(self._code.address("single"))
        self._batch = _BATCH(self._code.address("batch"))
        size, frames = generated.frame, generated.frames
        self._temporary = _zeros(generated.temporary)
        work = -(-size * frames // _PAGE) * _PAGE + _PAGE // 2
        self._frames = _zeros(work + size)
        self._queue = _zeros(x.DEPARTURE * frames)
        self._arrivals = _zeros(generated.arrival * frames)
        self._arena = _zeros(generated.arena)
        self._exchange = (ctypes.c_uint64 * (x.EXCHANGE_SIZE // 8))()
        self._set(x.FRAMES, _address(self._frames))
        if frames:
            self._set(x.QUEUE, _address(self._queue))
            self._set(x.ARRIVALS, _address(self._arrivals))
        self._set(x.ARENA, _address(self._arena))
        self._set(x.ARENA_ROOM, generated.arena)
        self._set(x.WORK, _address(self._frames) + work)
        self._io, self._tmp = ctypes.addressof(self._exchange), _address(self._temporary)
        self._interpreter: Runner | None = None
        self._buffers = _Buffers()
        self._staged = np.zeros((2, _STAGED), np.int64), np.zeros(_STAGED, np.int32)
        self._stages = [a.ctypes.data for a in (*self._staged[0], self._staged[1])]
        self._data: tuple[weakref.ref[Any], int] = (lambda: None), 0  # type: ignore[assignment]
        weakref.finalize(self, _release, self._exchange)

    def _set(self, offset: int, value: int) -> None:
        self._exchange[offset // 8] = value

    def _get(self, offset: int) -> int:
        return self._exchange[offset // 8]

    @override
    def hold(self, held: bool) -> None:
        self._set(x.HOLD, held)

    @property
    def places(self) -> tuple[int, int, int]:
        """For callers in machine code: the addresses of the exchange area, of temporary memory, and of ``batch``, which
        takes the state's block and these two. The state must be flushed before."""
        return self._io, self._tmp, self._code.address("batch")

    def takes_batches(self, ports: Iterable[int]) -> bool:
        """Whether batches of packets from these ports may be run at ``places``, without ``run``."""
        return True

    # --- packets ---

    @override
    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process a packet in machine code; with a ``trace``, by the interpreter on the same state."""
        if trace is not None:
            return self._traced(port, packet, trace)
        self.state.flush()
        exchange, state = self._exchange, self.state
        self._single(state.block.address, self._io, self._tmp, packet, len(packet), port, state.clock())
        state.most_passes = max(state.most_passes, exchange[x.ARRIVALS_HEAD // 8])
        if exchange[x.EVENTS_USED // 8]:
            self.take_events()
        count = exchange[x.RECORDS_COUNT // 8]
        if not count:
            return []
        records = ctypes.string_at(exchange[x.RECORDS // 8], count * x.RECORD)
        base = exchange[x.OUT_DATA // 8]
        return [(to, ctypes.string_at(base + start, size)) for start, size, to, _ in _UNPACK.iter_unpack(records)]

    def process_batch(self, batch: Batch) -> Batch:
        """Process all packets of ``batch`` one after the other. Returns all the output in order."""
        data, offsets = np.ascontiguousarray(batch.data, np.uint8), np.ascontiguousarray(batch.offsets, np.int64)
        ports = np.ascontiguousarray(batch.ports, np.int32)
        starts, ends = (offsets[:-1], offsets[1:]) if batch.ends is None else (offsets, batch.ends)
        ends = np.ascontiguousarray(ends, np.int64)
        if not len(starts) == len(ends) == len(ports) or (
            len(starts) and (starts.min() < 0 or ends.max() > len(data) or (ends < starts).any())
        ):
            raise ValueError("offsets must be one more than ports (or as many as ends), ascending, and within the data")
        records, sent = self.run(data, starts, ends, ports, batch.times)
        bounds = np.zeros(len(records) + 1, np.int64)
        np.cumsum(records["size"], out=bounds[1:])
        return Batch(sent, bounds, records["port"].copy(), records["source"].copy())

    def run(
        self, data: Bytes, starts: Any, ends: Any, ports: Any, times: npt.NDArray[np.uint64] | None = None
    ) -> tuple[Any, Bytes]:
        """Like ``process_batch``, for a caller whose arrays are known to be valid: packet i is
        ``data[starts[i]:ends[i]]``.

        ``data`` is contiguous. Returns an array of ``start``, ``size``, ``port`` and ``source`` of all output packets
        in order, and their bytes.
        """
        self.state.flush()
        exchange, count = self._exchange, len(ports)
        if count <= _STAGED:  # asking NumPy for an address takes longer than a few packets do
            bounds, staged = self._staged
            bounds[0, :count], bounds[1, :count], staged[:count] = starts, ends, ports
            at = self._stages
        else:
            arrays = [np.ascontiguousarray(a, t) for a, t in ((starts, np.int64), (ends, np.int64), (ports, np.int32))]
            at = [array.ctypes.data for array in arrays]
        times = None if times is None else np.ascontiguousarray(times, np.uint64)
        if self._data[0]() is not data:
            self._data = weakref.ref(data), data.ctypes.data
        exchange[x.IN_DATA // 8] = self._data[1]
        exchange[x.IN_OFFSETS // 8], exchange[x.IN_ENDS // 8], exchange[x.IN_PORTS // 8] = at
        exchange[x.IN_TIMES // 8] = 0 if times is None else times.ctypes.data
        exchange[x.IN_COUNT // 8] = count
        exchange[x.NOW // 8] = self.state.clock()
        self._batch(self.state.block.address, self._io, self._tmp)
        self.take_events()
        return self.output()

    def output(self) -> tuple[Any, Bytes]:
        """The output of the last batch, as ``run`` returns it. The next batch overwrites it."""
        found = self._get(x.RECORDS_COUNT)
        return self._records(found) if found else _NO_RECORDS, self._output_bytes()

    def _output_bytes(self) -> npt.NDArray[np.uint8]:
        """The output bytes. Large outputs are returned in their buffer, which is reused when they are released: copying
        them, and touching new memory, costs as much as processing the packets."""
        used, data, room = self._get(x.OUT_USED), self._get(x.OUT_DATA), self._get(x.OUT_ROOM)
        if used < _LARGE:
            return np.frombuffer(ctypes.string_at(data, used) if used else b"", np.uint8)
        memory = (ctypes.c_uint8 * used).from_address(data)
        weakref.finalize(memory, self._buffers.give, data, room)
        for offset, value in zip((x.OUT_DATA, x.OUT_ROOM), self._buffers.take(), strict=True):
            self._set(offset, value)
        return np.frombuffer(memoryview(memory), np.uint8)

    def _records(self, count: int) -> Any:
        return np.frombuffer(ctypes.string_at(self._get(x.RECORDS), count * x.RECORD), _RECORD)

    def _traced(self, port: int, packet: bytes, trace: Trace) -> list[tuple[int, bytes]]:
        if self._interpreter is None:
            self._interpreter = self._new_interpreter(self._program, self.state)
        self.state.begin_python()
        try:
            return self._interpreter.process(port, packet, trace)
        finally:
            self.state.end_python()

    # --- events ---

    def take_events(self) -> None:
        """Take over the digests and messages of the last packets. Raises ``Trap`` if the program has trapped."""
        used = self._get(x.EVENTS_USED)
        if not used:
            return
        self._set(x.EVENTS_USED, 0)
        raw, at = ctypes.string_at(self._get(x.EVENTS), used), 0
        while at < used:
            number, size = int.from_bytes(raw[at : at + 8], "little"), int.from_bytes(raw[at + 8 : at + 16], "little")
            begin = at + x.EVENT
            self._event(self._generated.sites[number], raw[begin : begin + size])
            at = begin + size

    def _event(self, site: Site, data: bytes) -> None:
        types, offset, parts = self._generated.types, 0, []
        for of in site.parts:
            parts.append(types.read(of, data, offset))
            offset += align(types.shape(of).size, 8)
        state = self.state
        if site.kind == "digest":
            state.digests.append(Digest(site.text, tuple(leaves("", parts[0], site.parts[0]))))
        elif site.kind == "log":
            state.log.append(_message(site.text, parts))
        else:
            state.trap(site.pos, site.text.replace("{}", str(parts[0]), 1) if parts else site.text)


def _message(text: str, parts: Sequence[object]) -> str:
    for value in parts:
        for part in value.fields if isinstance(value, StructValue) else [value]:
            text = text.replace("{}", str(part), 1)
    return text


_UNPACK = struct.Struct("<qqii")
_RECORD = np.dtype([("start", "<i8"), ("size", "<i8"), ("port", "<i4"), ("source", "<i4")])


def _zeros(size: int) -> npt.NDArray[np.uint8]:
    """Memory aligned to 64 bytes."""
    return np.zeros(size + 64, np.uint8)


def _address(area: npt.NDArray[np.uint8]) -> int:
    return align(area.ctypes.data, 64)


_NO_RECORDS = np.zeros(0, _RECORD)
_STAGED = 1024
"""Number of packets of a batch whose bounds and ports are copied to the exchange area."""
_LARGE = 1 << 16
"""Bytes of output from which its buffer is returned instead of copied."""


class _Buffers:
    """Unused output buffers, as (address, size)."""

    def __init__(self) -> None:
        self._spare: list[tuple[int, int]] = []

    def take(self) -> tuple[int, int]:
        """Take a buffer; (0, 0) if there is none."""
        return self._spare.pop() if self._spare else (0, 0)

    def give(self, address: int, size: int) -> None:
        """Keep a buffer for the next batch, or free it."""
        if len(self._spare) < 2:
            self._spare.append((address, size))
        else:
            _free(address)

    def __del__(self) -> None:
        for address, _ in self._spare:
            _free(address)


def _free(address: int) -> None:
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    free(address)


def _release(area: ctypes.Array[ctypes.c_uint64]) -> None:
    for offset in (x.OUT_DATA, x.RECORDS, x.EVENTS):
        _free(area[offset // 8])
    for offset, room in ((x.QUEUE, x.QUEUE_ROOM), (x.ARRIVALS, x.ARRIVALS_ROOM)):
        if area[room // 8]:
            _free(area[offset // 8])
