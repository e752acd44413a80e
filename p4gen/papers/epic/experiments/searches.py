"""EPIC's tables of model checking (7 and 8; sections 5.1 and H): what searches of the generated programs find."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.program import compose, render
from p4gen.verification.scope import GroupScope
from p4gen.verification.smallest import small_program
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "tree-3-2"
PACKETS, LOSSES, WORKERS = 3, 1, 2
MEMORY: Final = {"reduced": 4 << 30, "whole": 40 << 30}
"""Bytes for the set of states, by scale."""


@dataclass(frozen=True)
class PaperSearch:
    """A search that the paper reports: the lines of its model, its time, its depth, and its numbers of states."""

    mode: str
    collective: Collective
    lines: int
    """Of TLA+."""
    time: str
    depth: int
    generated: int
    """Number of all generated states, which are our transitions."""
    distinct: int

    @property
    def name(self) -> str:
        """The row's name, such as ``III allreduce``."""
        return f"{self.mode} {self.collective}"


PAPER: Final = (
    PaperSearch("II", Collective.ALLREDUCE, 1222, "20 s", 77, 3_981_257, 901_703),
    PaperSearch("II", Collective.REDUCE, 1139, "3 s", 57, 52_105, 14_136),
    PaperSearch("II", Collective.BROADCAST, 1108, "10 s", 60, 1_763_880, 320_128),
    PaperSearch("III", Collective.ALLREDUCE, 1741, "146 min", 115, 2_242_781_644, 439_476_508),
    PaperSearch("III", Collective.REDUCE, 1394, "9 s", 65, 2_291_727, 447_972),
    PaperSearch("III", Collective.BROADCAST, 1386, "113 s", 67, 67_902_618, 9_911_424),
)


@dataclass(frozen=True)
class Found:
    """What a search has found."""

    lines: int
    """Of the generated program."""
    states: int
    transitions: int
    levels: int
    seconds: float
    sentence: str
    complete: bool
    violated: bool


def search(mode: str, collective: Collective, reduce: bool, memory: int) -> Found:
    """Search the smallest program of a mode; ``reduce`` leaves out orders of independent events."""
    from p4gen.verification.search.search import Search  # noqa: PLC0415 - the search needs Numba, which is slow to load

    topology = load_topology(NETWORK)
    program = small_program(topology, {"mode": mode})
    scope = GroupScope(topology, program, (collective,), PACKETS, budget=Budget(LOSSES))
    result = Search(System(scope), reduce=reduce, workers=WORKERS, memory=memory).run()
    return Found(
        len(render(compose(program), line_directives=False).text.splitlines()),
        result.distinct,
        result.transitions,
        result.depth,
        result.seconds,
        result.sentence(),
        result.complete,
        result.problem is not None,
    )


def _perform(order: Order) -> Report:
    memory, reduce = MEMORY[order.scale], order.scale != "whole"
    found = order.run([Cell(row.name, search, (row.mode, row.collective, reduce, memory)) for row in PAPER])
    return Report(
        (
            "search",
            "lines of P4",
            "lines of TLA+: paper",
            "states",
            "states: paper",
            "transitions",
            "transitions: paper",
            "levels",
            "levels: paper",
            "time, s",
            "time: paper",
        ),
        tuple(
            (
                row.name,
                float(ours.lines),
                float(row.lines),
                float(ours.states),
                float(row.distinct),
                float(ours.transitions),
                float(row.generated),
                float(ours.levels),
                float(row.depth),
                ours.seconds,
                row.time,
            )
            for row in PAPER
            if (ours := found.get(row.name)) is not None
        ),
        tuple(_checks(found)),
        (
            "the paper checked TLA+ models, written by hand, with TLC on 75 cores; here the generated programs are "
            "searched, of which p4gen verify --export tla writes a model",
            f"{NETWORK}, {PACKETS} packets of each rank, at most {LOSSES} loss"
            + ("; orders of independent events are left out" if reduce else ""),
        ),
        {},
    )


def _checks(found: Mapping[str, Found]) -> list[Check]:
    return [Check(f"{name}: {ours.sentence}", ours.complete and not ours.violated) for name, ours in found.items()]


SEARCHES: Final = Experiment(
    {
        "reduced": "without orders of independent events: half a minute",
        "whole": "all orders: hours and 40 GB of memory",
    },
    _perform,
    check="reduced",
    partly=True,
)
"""Tables 7 and 8, which are of the same searches."""
