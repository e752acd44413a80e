"""C loops by hand, which handle a workload as its program does (``roofline.h``)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from p4gen.bench.workload import Workload
from p4gen.errors import FailedError
from p4gen.groups.group import Endpoint

COMPILERS: Final = ("cc", "gcc", "clang")
EDGE: Final = np.dtype([
    ("remote_mac", "<u8"), ("local_mac", "<u8"), ("remote_ip", "<u4"), ("local_ip", "<u4"), ("remote_qp", "<u4"),
    ("local_qp", "<u4"), ("port", "<u4"), ("udp_src_port", "<u4"),
])  # fmt: skip
"""``struct edge``."""
_FOLDER: Final = Path(__file__).parent
_MORE, _LONGER = 4096, 64
"""Frames that a loop sends beyond two for each packet, and bytes by which they are longer than the longest packet: at
most."""


def edge_record(local: Endpoint, remote: Endpoint, port: int, udp_src_port: int) -> tuple[int, ...]:
    """An edge in the order of ``EDGE``."""
    return remote.mac, local.mac, remote.ip, local.ip, remote.qp, local.qp, port, udp_src_port


def compiler() -> str | None:
    """Path of the first C compiler of ``COMPILERS`` that is installed; None without one."""
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


def no_compiler() -> str | None:
    """Why no loop can be built; None if one can."""
    return None if compiler() else f"no C compiler ({', '.join(COMPILERS)}) is on PATH"


class Roofline:
    """The loop in the file ``source``, built into ``folder`` with the best that the machine has, and ready to ``run``.

    ``constants`` are its macros, ``config`` is its ``struct config``. Raises ``FailedError`` if it does not build.
    """

    def __init__(
        self, work: Workload, folder: Path, source: Path, constants: Mapping[str, int], config: np.ndarray[Any, Any]
    ) -> None:
        path, library = compiler(), Path(tempfile.mkdtemp(dir=folder)) / "roofline.so"
        assert path is not None
        command = [path, "-O3", "-march=native", "-shared", "-fPIC", f"-I{_FOLDER}"]
        command += [*(f"-D{name}={value}" for name, value in constants.items()), "-o", str(library), str(source)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise FailedError(f"{path} does not build {source.name}:\n{built.stderr.strip()}")
        self._code = ctypes.CDLL(str(library))
        self._code.roofline.restype = ctypes.c_long
        self._code.state_size.restype = ctypes.c_long
        self._batch, self._config = work.batch, config
        self._state = np.zeros(self._code.state_size(), np.uint8)
        most = 2 * len(self._batch) + _MORE
        size = max(len(packet) for _, packet in work.packets) + _LONGER
        self._sent = np.empty(most * size, np.uint8), np.empty(most, np.int64), np.empty(most, np.int32)
        self.reset()

    def reset(self) -> None:
        """Forget what was processed: the next run begins with the first packet."""
        self._code.reset(ctypes.c_void_p(self._state.ctypes.data))

    def run(self) -> int:
        """Process the whole workload. Returns the number of output frames."""
        batch = self._batch
        arrays = (self._state, self._config, batch.data, batch.offsets, batch.ports)
        pointers = [ctypes.c_void_p(each.ctypes.data) for each in (*arrays, *self._sent)]
        count: int = self._code.roofline(*pointers[:5], ctypes.c_long(len(batch)), *pointers[5:])
        return count

    def packets(self, count: int) -> list[tuple[int, bytes]]:
        """The first ``count`` output frames, as (port, frame)."""
        data, ends, ports = self._sent
        starts = [0, *ends[: count - 1].tolist()] if count else []
        return [
            (int(port), data[start:end].tobytes())
            for port, start, end in zip(ports[:count], starts, ends[:count].tolist(), strict=True)
        ]
