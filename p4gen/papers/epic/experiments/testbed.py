"""EPIC's tables of its testbed (9 to 14, and with them Figures 12 and 13; section I.3), in virtual time.

What the testbed's hosts do beside sending (copies to the GPU, kernels, control) is one parameter of a library: a time
that is added to each call. It is what a call of 4 KiB of Table 9 takes longer than in virtual time. Nothing else is
fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from statistics import median
from typing import Final, Literal

from p4gen.errors import FailedError
from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, near
from p4gen.experiments.plot import Series, chart_svg
from p4gen.families import family_of, load_spec
from p4gen.host.collectives.algorithms import Algorithm
from p4gen.host.transport.clock import MS, SECOND, US
from p4gen.model import EngineName
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.hosts import simulate_hosts
from p4gen.net.collectives.simulation import simulate
from p4gen.net.order import RunOrder
from p4gen.net.runs import Runs
from p4gen.net.study import Axis, label
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.studies.sweep import roomy
from p4gen.papers.epic.studies.testbed import SIZES, TESTBED, Row
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "star-8"
LARGEST: Final = 64 << 20
"""Bytes; calls of more are extrapolated from the two largest ones that are run, as time grows with the size."""
SMALL: Final = 1 << 20
"""The same at the scale ``quick``."""
_256: Final = 64
_1K: Final = 256
"""Lanes of packets of 256 bytes and 1 KiB."""
_PACKETS: Final = 256
"""That a rank of EPIC may have outstanding: at 256 bytes 64 KiB, what the links hold of a round trip of 5 us."""
COSTS: Final = {"EPIC": 3.18 * US, "SwitchML": 5.66 * US, "ATP": 11.24 * US, "NCCL": 2150 * US}
"""By library: ps that are added to each call, from Table 9's calls of 4 KiB (``CALIBRATED``)."""
CALIBRATED: Final = (Row.EPIC, Row.SWITCHML, Row.ATP_7, Row.RING_1K)
ONLY_COPIED: Final = (Collective.BROADCAST, Collective.ALLGATHER)
"""Collectives in which EPIC's switch adds nothing. Tables 12 and 13 show more than packets of 256 bytes can carry, 75.7
Gb/s: these calls had 1 KiB."""
CLEAR: Final = 1.15
"""Two values of the paper are in a clear order if one is that many times the other."""


@dataclass(frozen=True)
class Solution:
    """How a row is run."""

    library: str
    lanes: Literal[64, 256]
    algorithm: Algorithm | None = None
    """That hosts have of their own."""
    family: str = ""
    """Of its programs; "" is EPIC's."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of its runs, where they are not the default."""


SOLUTIONS: Final[Mapping[Row, Solution]] = {
    Row.EPIC: Solution("EPIC", _256),
    Row.SWITCHML: Solution("SwitchML", _256, family="switchml"),
    Row.ATP_7: Solution("ATP", _256, family="atp", options={"server": "local"}),
    Row.ATP_8: Solution("ATP", _256, family="atp", options={"server": "worker"}),
    Row.RING_1K: Solution("NCCL", _1K, Algorithm.RING),
    Row.RING_256: Solution("NCCL", _256, Algorithm.RING),
    Row.TREE_1K: Solution("NCCL", _1K, Algorithm.TREE),
    Row.TREE_256: Solution("NCCL", _256, Algorithm.TREE),
}


def measured(row: Row, collective: Collective, size: int, seed: int, engine: EngineName) -> int:
    """The time of a call in ps, until each rank has its result. Raises ``FailedError`` if a result is wrong."""
    how, topology = SOLUTIONS[row], roomy(load_topology(NETWORK))
    if how.family:
        spec = load_spec(None, {"mode": how.family, "lanes": how.lanes, "fan_in": len(topology.hosts)})
        runs = family_of(spec).facet(Runs)
        given = {name: each.read(how.options.get(name, each.default)) for name, each in runs.options.items()}
        order = RunOrder(topology, spec, str(collective), size, seed=seed, engine=engine, options=given)
        plain = runs.make(order).run()
        if not plain.ok:
            raise FailedError(f"{row}, {collective} of {size} bytes: {'; '.join((*plain.errors, *plain.stuck))}")
        return plain.duration
    lanes = _1K if row is Row.EPIC and collective in ONLY_COPIED else how.lanes
    program = EpicSpec(lanes=lanes, window=_PACKETS // 4, message=4, groups=1)
    config = SimConfig(topology, program, collective, size, seed=seed, engine=engine, timeout=MS)
    result = simulate(config) if how.algorithm is None else simulate_hosts(config, how.algorithm)
    time = result.duration if collective is Collective.BARRIER else result.last_result
    if not result.ok or time is None:
        raise FailedError(f"{row}, {collective} of {size} bytes: {result.errors or result.diagnosis}")
    return time


@dataclass(frozen=True)
class Measured:
    """A row's value at a size, Gb/s or thousands of Barriers a second."""

    row: Row
    size: int
    ours: float
    paper: float

    @property
    def ratio(self) -> float:
        """Ours in parts of the paper's."""
        return self.ours / self.paper

    @property
    def size_text(self) -> str:
        """The size as text; of a Barrier "-"."""
        return label(Axis.SIZE, self.size) if self.size else "-"

    def __str__(self) -> str:
        return f"{self.row}, {self.size_text}"


def _name(row: Row, size: int) -> str:
    return f"{row}/{label(Axis.SIZE, size)}"


def _perform(collective: Collective, order: Order) -> Report:
    rows, largest = TESTBED[collective], LARGEST if order.scale == "paper" else SMALL
    run = [size for size in next(iter(rows.values())) if size <= largest]
    times = order.run(
        [
            Cell(_name(row, size), measured, (row, collective, size, order.seed, order.engine))
            for row in rows
            for size in run
        ]
    )
    found: list[Measured] = []
    for row, values in rows.items():
        took = {size: times[name] for size in run if (name := _name(row, size)) in times}
        if order.scale == "paper" and len(took) == len(run) > 1:
            (a, before), (b, last) = list(took.items())[-2:]
            took |= {size: last + (size - b) * (last - before) // (b - a) for size in values if size > largest}
        for size, time in took.items():
            call = time + COSTS[SOLUTIONS[row].library]
            found.append(Measured(row, size, (8e-9 * size if size else 1e-3) * SECOND / call, values[size]))
    unit = "Gb/s" if collective is not Collective.BARRIER else "thousands/s"
    sizes = dict.fromkeys(each.size_text for each in found)
    lines: list[Series] = []
    for row in rows:
        mine = {each.size_text: each for each in found if each.row is row}
        ours = [mine[size].ours if size in mine else None for size in sizes]
        paper = [mine[size].paper if size in mine else None for size in sizes]
        lines += [Series(row, ours), Series(f"{row} (paper)", paper, dashed=True)]
    return Report(
        ("solution", "size", f"ours, {unit}", "paper", "ratio", "by"),
        tuple(
            (each.row, each.size_text, each.ours, each.paper, each.ratio, "run" if each.size in run else "extrapolated")
            for each in found
        ),
        tuple(_checks(collective, found)),
        _ASSUMPTIONS,
        {".svg": chart_svg(f"EPIC's testbed: {collective}", "message size", list(sizes), unit, lines)},
    )


def _checks(collective: Collective, found: Sequence[Measured]) -> Iterator[Check]:
    """Whether calls of 4 KiB take the paper's time where they were fitted; and whether what the paper's values say of
    two solutions, ours say too."""
    if collective is Collective.ALLREDUCE:
        fitted = [each for each in found if each.size == SIZES[0] and each.row in CALIBRATED]
        yield from (near(str(each), each.ours, each.paper, 0.02) for each in fitted)
    clear = [(a, b) for a, b in permutations(found, 2) if a.size == b.size and a.paper > CLEAR * b.paper]
    other = "; ".join(f"{a} and {b.row}" for a, b in clear if b.ours > CLEAR * a.ours)
    text = f"of {len(clear)} pairs of values that differ by more than 15 % in the paper, none differs so the other way"
    yield Check(text + (f", but for {other}" if other else ""), not other)
    yield near("median of ours in parts of the paper's", median(each.ratio for each in found), 1.0, 0.25)


_ASSUMPTIONS: Final = (
    "star-8: links of 100 Gb/s and 1 us; packets of 256 bytes as Tofino's, of 1 KiB where it adds nothing (the paper's "
    "values are above what 256 bytes can carry), of NCCL's rows as they say",
    "time runs from the first rank's call until each rank has its result, and the library's time for a call comes on "
    f"top: {', '.join(f'{name} {cost / US:g} us' for name, cost in COSTS.items())}, from Table 9's calls of 4 KiB",
    "nothing else is fitted: what hosts take for a byte, and what PCIe and GPUs limit, is not in ours",
    f"calls above {LARGEST >> 20} MiB are extrapolated from the two largest that are run",
    "EPIC's phases of a ReduceScatter or an AllGather run at the same time, the paper's one after the other",
)
TESTBED_SCALES: Final = {
    "paper": f"up to {LARGEST >> 20} MiB, larger calls extrapolated: ten minutes for Table 9, a minute for others",
    "quick": f"up to {SMALL >> 20} MiB",
}


def _experiment(collective: Collective) -> Experiment:
    return Experiment(TESTBED_SCALES, lambda order: _perform(collective, order), check="quick", partly=True)


TABLES: Final = {f"table-{9 + number}": _experiment(collective) for number, collective in enumerate(TESTBED)}
"""The experiments of this module by name."""
