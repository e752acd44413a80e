"""The roofline: a hand-written C loop that handles these packets as the program does (``roofline.c``)."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np

from p4gen.bench.workload import Bursts
from p4gen.errors import FailedError
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.vocabulary import DType, Numbers, Op

COMPILERS = ("cc", "gcc", "clang")
_EDGE = np.dtype([
    ("remote_mac", "<u8"), ("local_mac", "<u8"), ("remote_ip", "<u4"), ("local_ip", "<u4"), ("remote_qp", "<u4"),
    ("local_qp", "<u4"), ("port", "<u4"), ("udp_src_port", "<u4"),
])  # fmt: skip
_HEADERS, _ICRC = 14 + 20 + 8 + 12, 4


def why_not(work: Bursts) -> str | None:
    """Why there is no roofline for a workload; None when there is one."""
    spec = work.spec
    assert isinstance(spec, EpicSpec)
    if spec.mode is not Mode.II or spec.pipelines > 1:
        return "the C loop is written for mode II and one pipeline"
    if not spec.saturating or spec.numbers != Numbers(Op.SUM, DType.INT32) or not spec.icrc.checked:
        return "the C loop is written for saturating sums of int32 with the ICRC recomputed"
    if compiler() is None:
        return f"no C compiler ({', '.join(COMPILERS)}) is on PATH"
    return None


def compiler() -> str | None:
    """Path of the first C compiler of ``COMPILERS`` that is installed; None without one."""
    return next((path for name in COMPILERS if (path := shutil.which(name))), None)


class Roofline:
    """The loop, built into ``folder`` and ready to ``run``. Raises ``FailedError`` if it does not build."""

    def __init__(self, work: Bursts, folder: Path) -> None:
        spec, library = work.spec, folder / "roofline.so"
        path = compiler()
        assert path is not None
        command = [path, "-O3", "-march=native", "-shared", "-fPIC", f"-DLANES={spec.lanes}"]
        command += [f"-DSLOTS={spec.slots_per_group}", "-o", str(library), str(Path(__file__).with_name("roofline.c"))]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            raise FailedError(f"{path} does not build the roofline:\n{built.stderr.strip()}")
        loaded = ctypes.CDLL(str(library))
        loaded.roofline_init()
        self._loop = loaded.roofline
        self._loop.restype = ctypes.c_long
        self._edges = np.array(
            [
                (e.remote.mac, e.local.mac, e.remote.ip, e.local.ip, e.remote.qp, e.local.qp, e.port, e.udp_src_port)
                for e in work.edges
            ],
            _EDGE,
        )
        self._batch = work.batch
        self._frame = _HEADERS + spec.payload_bytes + _ICRC
        self._state = np.zeros(spec.slots_per_group * (12 + spec.payload_bytes), np.uint8)
        most = len(self._batch) + len(work.edges)
        self._out = np.zeros(most * self._frame, np.uint8)
        self._ports = np.zeros(most, np.int32)

    def reset(self) -> None:
        """Set all slots to the state without contributions."""
        self._state[:] = 0

    def run(self) -> int:
        """Process the whole workload; returns the number of output frames."""
        batch = self._batch
        arrays = (self._state, self._edges)
        count: int = self._loop(
            *(ctypes.c_void_p(a.ctypes.data) for a in arrays),
            len(self._edges),
            ctypes.c_void_p(batch.data.ctypes.data),
            ctypes.c_void_p(batch.offsets.ctypes.data),
            ctypes.c_long(len(batch)),
            ctypes.c_void_p(self._out.ctypes.data),
            ctypes.c_void_p(self._ports.ctypes.data),
        )
        return count

    def packets(self, count: int) -> list[tuple[int, bytes]]:
        """The first ``count`` output frames, as (port, frame)."""
        size = self._frame
        return [(int(self._ports[i]), self._out[i * size : (i + 1) * size].tobytes()) for i in range(count)]
