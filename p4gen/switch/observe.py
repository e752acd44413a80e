"""Traces and captures of a switch that runs, turned on and off while it carries frames."""

from __future__ import annotations

import contextlib
import logging
from pathlib import Path
from typing import TextIO

from p4gen.model import Trace
from p4gen.packetio import Frames
from p4gen.switch.device import Device, Outputs
from p4gen.switch.pcap import PcapTap


class Observer:
    """Stands between ports and a device. While packets are traced or captured, they go one by one.

    ``trace`` is the file to which every packet's whole way is added, ``pcap`` the folder of captures; None: not to be
    had. Neither is on in the beginning. ``toggle_trace`` and ``toggle_capture`` may be called from a signal handler:
    what they ask for is done by ``settle``, in the thread that carries frames.
    """

    def __init__(self, device: Device, trace: Path | None, pcap: Path | None, log: logging.Logger) -> None:
        self._device, self._log = device, log
        self._trace, self._pcap = trace, pcap
        self._file: TextIO | None = None
        self._tap: PcapTap | None = None
        self._wanted_trace = self._wanted_capture = self._capturing = False

    def toggle_trace(self) -> None:
        """Begin or end tracing, soon."""
        self._wanted_trace = not self._wanted_trace

    def toggle_capture(self) -> None:
        """Begin or end capturing, soon."""
        self._wanted_capture = not self._wanted_capture

    def settle(self) -> None:
        """Do what was asked for. OSError: a file cannot be written."""
        if self._wanted_trace != (self._file is not None):
            self._wanted_trace = self._set_trace(self._wanted_trace)
        if self._wanted_capture != self._capturing:
            self._wanted_capture = self._capturing = self._set_capture(self._wanted_capture)

    def settle_or_say(self) -> None:
        """``settle``, where a file that cannot be written is no reason to stop carrying frames."""
        try:
            self.settle()
        except OSError as problem:
            self._wanted_trace, self._wanted_capture = self._file is not None, self._capturing
            self._log.error("%s", problem)

    def _set_trace(self, on: bool) -> bool:
        if self._trace is None:
            self._log.warning("no traces: the switch was started without --trace FILE")
            return False
        if on:
            file = self._file = self._trace.open("a", encoding="utf-8", buffering=1)
            self._device.trace = lambda trace: _write(file, trace)
        elif self._file is not None:
            self._device.trace = None
            self._file.close()
            self._file = None
        self._log.info("tracing to %s %s", self._trace, "begins" if on else "ends")
        return on

    def _set_capture(self, on: bool) -> bool:
        if self._pcap is None:
            self._log.warning("no captures: the switch was started without --pcap DIR")
            return False
        if self._tap is None:
            self._tap = PcapTap(self._device.send, self._pcap)
        self._tap.flush()
        self._log.info("capturing to %s %s", self._pcap, "begins" if on else "ends")
        return on

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
        self._device.trace = None
        if self._tap is not None:
            self._tap.close()
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()


def _write(file: TextIO, trace: Trace) -> None:
    file.write(f"{trace}\n\n")
