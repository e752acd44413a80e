"""Traces and captures of a running switch, turned on and off while it carries frames."""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from p4gen.model import Trace
from p4gen.switch.device import Device, Outputs
from p4gen.switch.pcap import PcapTap

if TYPE_CHECKING:
    from p4gen.switch.batches import Batches

TRACE_LIMIT: Final = 64 << 20
"""Default size limit of a trace file in bytes: about 3,800 packets of 16 lanes."""

TRACE_END: Final = "tracing ends here"
"""The beginning of the last line of a trace that has reached its limit."""
_LAST_BYTES: Final = 256


class Observer:
    """A layer between ports and a device. While packets are traced or captured, they are handled one by one.

    Each packet's trace is appended to the file ``trace``, up to ``limit`` bytes; ``pcap`` is the folder of captures. If
    one is None, it cannot be turned on. Both are off at first. ``set_trace`` and ``set_capture`` may be called from any
    thread; ``settle`` carries them out in the thread that carries frames.
    """

    def __init__(
        self, device: Device, trace: Path | None, pcap: Path | None, log: logging.Logger, limit: int = TRACE_LIMIT
    ) -> None:
        self._device, self._log = device, log
        self._trace, self._pcap, self._limit = trace, pcap, limit
        self._file: _TraceFile | None = None
        self._tap: PcapTap | None = None
        self._wanted_trace = self._wanted_capture = self._capturing = False
        self._full = False
        self._problem = ""
        self._lock = threading.Lock()
        self.settled = threading.Event()
        """Set while all requests have been carried out or have failed."""
        self.settled.set()

    def set_trace(self, on: bool) -> None:
        """Request that tracing be turned on or off."""
        with self._lock:
            self.settled.clear()
            self._wanted_trace = on

    def set_capture(self, on: bool) -> None:
        """Request that capturing be turned on or off."""
        with self._lock:
            self.settled.clear()
            self._wanted_capture = on

    def state(self) -> dict[str, Any]:
        """Whether traces and captures are on, the size of the trace, and why the last request failed, if it did."""
        return {
            "trace": self._file is not None,
            "trace_file": str(self._trace) if self._trace is not None else None,
            "trace_limit": self._limit,
            "trace_full": self._full,
            "capture": self._capturing,
            "problem": self._problem,
        }

    def settle(self) -> None:
        """Carry out the requests. Raises ``OSError`` if a file cannot be written."""
        if self.settled.is_set():
            return
        with self._lock:
            self._problem = ""
            if self._wanted_trace != (self._file is not None):
                self._wanted_trace = self._turn_trace(self._wanted_trace)
            if self._wanted_capture != self._capturing:
                self._wanted_capture = self._capturing = self._turn_capture(self._wanted_capture)
            self.settled.set()

    def settle_or_log(self) -> None:
        """Like ``settle``, but log a file that cannot be written, and go on."""
        try:
            self.settle()
        except OSError as problem:
            self._log.error("%s", problem)
            with self._lock:
                self._wanted_trace, self._wanted_capture = self._file is not None, self._capturing
                self._problem = str(problem)
                self.settled.set()

    def _turn_trace(self, on: bool) -> bool:
        if self._trace is None:
            return self._refuse("no traces: the switch was started without --trace FILE")
        if on:
            self._file = _TraceFile(self._trace, self._limit)
            self._full = False
            self._device.trace = self._traced
        else:
            self._end_trace()
        self._log.info("tracing to %s %s", self._trace, "begins" if on else "ends")
        return on

    def _traced(self, trace: Trace) -> None:
        file = self._file
        if file is not None and not file.add(f"{trace}\n\n"):
            with self._lock:
                self._full, self._wanted_trace = True, False
                self._end_trace()
            self._log.warning("tracing to %s ends: the file has reached its limit", self._trace)

    def _end_trace(self) -> None:
        self._device.trace = None
        if self._file is not None:
            self._file.close()
            self._file = None

    def _turn_capture(self, on: bool) -> bool:
        if self._pcap is None:
            return self._refuse("no captures: the switch was started without --pcap DIR")
        if self._tap is None:
            self._tap = PcapTap(self._device.send, self._pcap)
        self._tap.flush()
        self._log.info("capturing to %s %s", self._pcap, "begins" if on else "ends")
        return on

    def _refuse(self, why: str) -> bool:
        self._log.warning("%s", why)
        self._problem = why
        return False

    # --- called by ports ---

    def send(self, port: int, frame: bytes) -> Outputs:
        """Process a frame. Returns the output."""
        if self._capturing and self._tap is not None:
            return self._tap.send(port, frame)
        return self._device.send(port, frame)

    def carry(self, batches: Batches, seconds: float) -> bool:
        """Have frames carried in machine code, if the device can; False if they must be given to ``send``."""
        return not self._capturing and self._device.carry(batches, seconds)

    def close(self) -> None:
        """Close the trace and the captures."""
        if self._tap is not None:
            self._tap.close()
        with contextlib.suppress(OSError):
            self._end_trace()


def _tail(path: Path) -> str:
    """The last line of a file that is not empty."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        return (file.read().decode(errors="replace").strip().splitlines() or [""])[-1]


class _TraceFile:
    """A trace file with at most ``limit`` bytes. A file that is already full is started again."""

    def __init__(self, path: Path, limit: int) -> None:
        size = path.stat().st_size if path.exists() else 0
        self._last = f"{TRACE_END}: the file has reached its limit of {limit:,} bytes (--trace-limit)\n\n"
        full = size + len(self._last) >= limit or _tail(path).startswith(TRACE_END)
        self._left = limit - len(self._last) - (0 if full else size)
        self._file: TextIO = path.open("w" if full else "a", encoding="utf-8", buffering=1)

    def add(self, text: str) -> bool:
        """Append a packet's trace. Returns False when there is no room for it; then the file says so, and is
        complete."""
        self._left -= len(text.encode())
        self._file.write(text if self._left >= 0 else self._last)
        return self._left >= 0

    def close(self) -> None:
        """Close the trace file; later packets are not traced."""
        self._file.close()
