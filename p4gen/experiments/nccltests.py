"""The table of nccl-tests: time, algorithm bandwidth and bus bandwidth of a collective by size.

Sizes, counts and factors are those of https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md, so that rows compare
with those of GPUs. What a time is, the caller says: virtual time, or what ranks measured.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import lcm
from typing import Any, Final

from p4gen.errors import InputError
from p4gen.host.transport.clock import SECOND
from p4gen.inputs import quote
from p4gen.vocabulary import DType, ProgramSpec
from p4gen.vocabulary.message import Collective

_ALIGNED: Final = 16
"""Bytes of which a rank's part is a multiple, where ranks have parts."""
_BETWEEN: Final = {
    Collective.ALLREDUCE: 2, Collective.REDUCE_SCATTER: 1, Collective.ALLGATHER: 1, "alltoall": 1,
}  # fmt: skip
"""How often the other ranks' (n - 1) / n of the data pass the slowest link; for others all of it does, once."""
_ROOTED: Final = (Collective.REDUCE, Collective.BROADCAST)
_REDUCING: Final = (Collective.ALLREDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER)
_DIVIDED: Final = (Collective.REDUCE_SCATTER, Collective.ALLGATHER, "alltoall")
_NAMES: Final = {"float32": "float", "float16": "half"}
"""nccl-tests' names of types, where they differ."""
_ELEMENTS: Final = {"uint8": 1}
"""Bytes of elements that no program computes with. Numbers that have scales in packets have 2 at ranks."""


@dataclass(frozen=True)
class Row:
    """A size's figures. Bandwidths are in GB/s (10^9 bytes); None for a Barrier."""

    size: int
    """Bytes: of a rank's data, or of the result, whichever is more."""
    count: int
    """Elements; where ranks have parts, those of one."""
    us: float
    """Mean time of a call."""
    algbw: float | None
    busbw: float | None
    wrong: int
    """Results of ranks that are not NumPy's."""


class BandwidthTable:
    """A table, row by row, of a ``collective`` by ``ranks`` ranks with a program. Raises ``InputError`` for a
    collective that nccl-tests has no factor for."""

    def __init__(self, spec: ProgramSpec, collective: str, ranks: int, root: int) -> None:
        if collective not in {*map(str, Collective), *_DIVIDED}:
            raise InputError(f"--nccl-tests: {quote(collective)} has no bus bandwidth")
        self.collective, self.ranks, self.rows = collective, ranks, list[Row]()
        name = str(getattr(spec, "dtype", "uint8" if spec.uses_memory else "int32"))
        self._type = _NAMES.get(name, name)
        self._element = _ELEMENTS.get(name) or (DType(name).number_format.bytes if name in list(DType) else 2)
        self._unit = lcm(_ALIGNED, spec.unit_bytes) * ranks if collective in _DIVIDED else spec.unit_bytes
        op = str(getattr(spec, "op", "sum"))
        self._op = "none" if collective not in _REDUCING else op if op != "dynamic" else "sum"
        self._root = root if collective in _ROOTED else -1

    def sizes(self, first: int, last: int, factor: int) -> list[int]:
        """The bytes of calls from ``first`` to ``last``, each ``factor`` times the one before, rounded down: to what
        the program's calls are multiples of; where ranks have parts, to parts of a multiple of 16 bytes, too. Those of
        which nothing is left are missing. A Barrier has one size, 0. Raises ``InputError`` if no size is left."""
        if self.collective == Collective.BARRIER:
            return [0]
        found = []
        while first <= last:
            found.append(first // self._unit * self._unit)
            first *= factor
        if not any(found):
            raise InputError(f"--nccl-tests: {self.collective} by {self.ranks} ranks takes {self._unit} bytes at least")
        return [size for size in found if size]

    def add(self, size: int, time: float, wrong: int) -> str:
        """A row, from a call's mean time in ps, and its line."""
        bandwidth = size * SECOND / time / 1e9 if size else None
        factor = _BETWEEN[self.collective] * (self.ranks - 1) / self.ranks if self.collective in _BETWEEN else 1.0
        count = size // self._element // (self.ranks if self.collective in _DIVIDED else 1)
        row = Row(size, count, time / 1e6, bandwidth, None if bandwidth is None else bandwidth * factor, wrong)
        self.rows.append(row)
        figures = [_figure(each) for each in (row.us, row.algbw, row.busbw)]
        return _line(size, count, self._type, self._op, self._root, *figures, wrong)

    @property
    def heading(self) -> list[str]:
        """The lines above the rows."""
        names = _line("size", "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong")
        units = _line("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "")
        return ["#", f"#{names[1:]}", f"#{units[1:]}".rstrip()]

    @property
    def ending(self) -> list[str]:
        """The lines below the rows."""
        wrong, average = sum(row.wrong for row in self.rows), self.average
        found = [f"# Out of bounds values : {wrong} {'FAILED' if wrong else 'OK'}"]
        return found if average is None else [*found, f"# Avg bus bandwidth    : {_figure(average)}"]

    @property
    def average(self) -> float | None:
        """The mean of all rows' bus bandwidths, GB/s; None if there are none."""
        known = [row.busbw for row in self.rows if row.busbw is not None]
        return sum(known) / len(known) if known else None

    def to_dict(self) -> dict[str, Any]:
        """The table as plain data."""
        return {
            "collective": self.collective,
            "ranks": self.ranks,
            "type": self._type,
            "redop": self._op,
            "root": self._root,
            "rows": [asdict(row) for row in self.rows],
            "average_busbw": self.average,
        }


def _line(*cells: object) -> str:
    widths = (12, 12, 8, 6, 6, 9, 8, 8, 6)
    return "  ".join(f"{cell:>{width}}" for cell, width in zip(map(str, cells), widths, strict=True))


def _figure(value: float | None) -> str:
    """Two digits after the point, as nccl-tests has; more where links are slower than its own."""
    if value is None:
        return "N/A"
    return f"{value:.{2 if value >= 10 else 4 if value >= 0.1 else 6}f}"
