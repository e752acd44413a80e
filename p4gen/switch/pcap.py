"""Capture files in libpcap's format (nanosecond variant), and a tap that writes them for a switch's ports."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import BinaryIO

Outputs = list[tuple[int, bytes]]
Send = Callable[[int, bytes], Outputs]

_MAGIC_NS = 0xA1B23C4D
_ETHERNET = 1
_SNAP_LENGTH = 1 << 18


class PcapWriter:
    """One capture file. Raises ``OSError`` where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self._file: BinaryIO = path.open("wb")
        self._file.write(struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, _SNAP_LENGTH, _ETHERNET))

    def write(self, frame: bytes, when: int | None = None) -> None:
        """Add a frame; ``when`` is in nanoseconds since the epoch (default: now)."""
        seconds, nanoseconds = divmod(time.time_ns() if when is None else when, 1_000_000_000)
        self._file.write(struct.pack("<IIII", seconds & 0xFFFFFFFF, nanoseconds, len(frame), len(frame)) + frame)

    def flush(self) -> None:
        """Write all buffered data to the file."""
        self._file.flush()

    def close(self) -> None:
        """Write all buffered data, and close the file."""
        self._file.close()


def write_pcap(path: Path, frames: Iterable[bytes], *, step: int = 1000) -> None:
    """Write a capture of ``frames``, ``step`` nanoseconds apart."""
    writer = PcapWriter(path)
    for number, frame in enumerate(frames):
        writer.write(frame, number * step)
    writer.close()


class PcapTap:
    """Passes frames through ``send`` and captures them: ``port<N>_in.pcap`` and ``port<N>_out.pcap`` in a folder."""

    def __init__(self, send: Send, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._send, self._directory = send, directory
        self._writers: dict[str, PcapWriter] = {}

    def send(self, port: int, frame: bytes) -> Outputs:
        """Process and capture a frame. Returns the output."""
        self._writer(f"port{port}_in").write(frame)
        outputs = self._send(port, frame)
        for number, data in outputs:
            self._writer(f"port{number}_out").write(data)
        return outputs

    def flush(self) -> None:
        """Write all buffered data to the files."""
        for writer in self._writers.values():
            writer.flush()

    def close(self) -> None:
        """Close the files of all ports."""
        for writer in self._writers.values():
            writer.close()

    def _writer(self, name: str) -> PcapWriter:
        if name not in self._writers:
            self._writers[name] = PcapWriter(self._directory / f"{name}.pcap")
        return self._writers[name]
