"""Traces and captures of a switch that runs, turned on and off while it carries frames."""

from __future__ import annotations

import contextlib
import logging
import threading
from pathlib import Path
from typing import Any, Final, TextIO

from p4gen.model import Trace
from p4gen.packetio import Frames
from p4gen.switch.device import Device, Outputs
from p4gen.switch.pcap import PcapTap

TRACE_LIMIT: Final = 64 << 20
"""Bytes of a trace file, unless told otherwise: 3,800 packets of 16 lanes, say."""

TRACE_END: Final = "tracing ends here"
"""What the last line of a trace begins with that has reached its limit."""
_LAST_BYTES: Final = 256


class Observer:
    """Stands between ports and a device. While packets are traced or captured, they go one by one.

    ``trace`` is the file to which every packet's whole way is added, up to ``limit`` bytes, ``pcap`` the folder of
    captures; None: not to be had. Neither is on in the beginning. ``set_trace`` and ``set_capture`` may be called from
    any thread: what they ask for is done by ``settle``, in the thread that carries frames.
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
        """Set while all that was asked for is done, or has failed."""
        self.settled.set()

    def set_trace(self, on: bool) -> None:
        """Trace from now on, or no longer; soon."""
        with self._lock:
            self.settled.clear()
            self._wanted_trace = on

    def set_capture(self, on: bool) -> None:
        """Capture from now on, or no longer; soon."""
        with self._lock:
            self.settled.clear()
            self._wanted_capture = on

    def state(self) -> dict[str, Any]:
        """What is on, how large the trace is, and why what was asked for last could not be done."""
        return {
            "trace": self._file is not None,
            "trace_file": str(self._trace) if self._trace is not None else None,
            "trace_limit": self._limit,
            "trace_full": self._full,
            "capture": self._capturing,
            "problem": self._problem,
        }

    def settle(self) -> None:
        """Do what was asked for. OSError: a file cannot be written."""
        if self.settled.is_set():
            return
        with self._lock:
            self._problem = ""
            if self._wanted_trace != (self._file is not None):
                self._wanted_trace = self._turn_trace(self._wanted_trace)
            if self._wanted_capture != self._capturing:
                self._wanted_capture = self._capturing = self._turn_capture(self._wanted_capture)
            self.settled.set()

    def settle_or_say(self) -> None:
        """``settle``, where a file that cannot be written is no reason to stop carrying frames."""
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

    # --- what ports call ---

    def send(self, port: int, frame: bytes) -> Outputs:
        """What leaves when ``frame`` arrives at ``port``."""
        if self._capturing and self._tap is not None:
            return self._tap.send(port, frame)
        return self._device.send(port, frame)

    def send_batch(self, frames: Frames) -> Frames | None:
        """What leaves when ``frames`` arrive; None if they must be given to ``send``."""
        return None if self._capturing else self._device.send_batch(frames)

    def close(self) -> None:
        """Finish all files."""
        if self._tap is not None:
            self._tap.close()
        with contextlib.suppress(OSError):
            self._end_trace()


def _tail(path: Path) -> str:
    """A file's last line but for empty ones."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _LAST_BYTES))
        return (file.read().decode(errors="replace").strip().splitlines() or [""])[-1]


class _TraceFile:
    """A trace that is added to a file, which has ``limit`` bytes at most; one that is full already begins anew."""

    def __init__(self, path: Path, limit: int) -> None:
        size = path.stat().st_size if path.exists() else 0
        self._last = f"{TRACE_END}: the file has reached its limit of {limit:,} bytes (--trace-limit)\n\n"
        full = size + len(self._last) >= limit or _tail(path).startswith(TRACE_END)
        self._left = limit - len(self._last) - (0 if full else size)
        self._file: TextIO = path.open("w" if full else "a", encoding="utf-8", buffering=1)

    def add(self, text: str) -> bool:
        """Add a packet's way. False when there is no room for it: then the file says so, and has its end."""
        self._left -= len(text.encode())
        self._file.write(text if self._left >= 0 else self._last)
        return self._left >= 0

    def close(self) -> None:
        """Finish the file."""
        self._file.close()
