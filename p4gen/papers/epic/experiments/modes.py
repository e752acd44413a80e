"""The modes compared (EPIC's Figure 10, sections 5.2 and F.2 to F.4), and the law that F.4 gives for loss, by runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from p4gen.errors import FailedError
from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.host.transport.clock import MS, US
from p4gen.model import EngineName
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import SimResult, simulate
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.epic.studies.sweep import EPIC_PROGRAM, roomy, solving
from p4gen.papers.epic.studies.tables import Solution
from p4gen.program.compose import compose
from p4gen.program.text import render
from p4gen.vocabulary.topology import load_topology

MODES: Final = (Solution.MODE_I, Solution.MODE_II, Solution.MODE_III)
SIZE: Final = 1 << 20
"""Bytes of a call, where throughput is what counts."""


def _run(
    solution: Solution, network: str, seed: int, engine: EngineName, loss: float = 0.0, **fields: int
) -> SimResult:
    """An AllReduce. ``fields`` are the program's and, as ``size`` and ``timeout``, the run's. Raises ``FailedError`` if
    it does not end with NumPy's result."""
    size = fields.pop("size", SIZE)
    base = solving(solution, SimConfig(roomy(load_topology(network)), EPIC_PROGRAM, seed=seed, engine=engine))
    faults = Faults((Impairment(loss=loss),) if loss else (), (), ())
    timeout = fields.pop("timeout", base.timeout)
    result = simulate(
        replace(base, program=base.program.model_copy(update=fields), size=size, faults=faults, timeout=timeout)
    )
    if not result.ok or result.last_result is None:
        raise FailedError(f"{solution} on {network}, loss {loss:g}: {result.errors or result.diagnosis}")
    return result


# --- Figure 10 ---

TREE: Final = "tree-3-2"
STAR: Final = "star-8"
LOSS: Final = 0.01
WINDOWS: Final = (4, 8, 16, 32, 64)
"""Messages of four packets."""
ENOUGH: Final = 0.85
"""The share of the throughput with the largest window that a window has to reach."""


def latency(solution: Solution, seed: int, engine: EngineName) -> float:
    """Microseconds of an AllReduce of one message on ``TREE``."""
    return (
        _run(solution, TREE, seed, engine, size=EPIC_PROGRAM.payload_bytes * EPIC_PROGRAM.message).last_result or 0
    ) / US


def lines(solution: Solution, seed: int, engine: EngineName) -> float:
    """Lines of the generated program without comments and empty ones."""
    base = solving(solution, SimConfig(load_topology(TREE), EPIC_PROGRAM, seed=seed, engine=engine))
    text = render(compose(base.program)).text
    return float(sum(bool(line.strip()) and not line.lstrip().startswith("//") for line in text.splitlines()))


def window(solution: Solution, seed: int, engine: EngineName) -> float:
    """KiB of the least window with which an AllReduce on ``TREE`` is as fast as with the largest one."""
    times = {each: _run(solution, TREE, seed, engine, window=each, timeout=MS).last_result or 0 for each in WINDOWS}
    least = next(each for each, time in times.items() if times[WINDOWS[-1]] >= ENOUGH * time)
    return least * EPIC_PROGRAM.message * EPIC_PROGRAM.payload_bytes / 1024


def kept(solution: Solution, seed: int, engine: EngineName) -> float:
    """The share of throughput that is left on ``STAR`` when all links lose ``LOSS`` of their packets."""
    whole, lossy = (_run(solution, STAR, seed, engine, loss) for loss in (0.0, LOSS))
    return whole.duration / lossy.duration


AXES: Final = {
    f"latency of a message on {TREE}, us": latency,
    "lines of the program": lines,
    f"window that suffices on {TREE}, KiB": window,
    f"share of throughput left on {STAR} with {100 * LOSS:g} % loss": kept,
}


def _compare(order: Order) -> Report:
    found = order.run(
        [
            Cell(f"{solution}/{number}", axis, (solution, order.seed, order.engine))
            for number, axis in enumerate(AXES.values())
            for solution in MODES
        ]
    )
    first, second, third = ([found[f"{mode}/{number}"] for number in range(len(AXES))] for mode in MODES)
    return Report(
        ("", *MODES),
        tuple(zip(AXES, first, second, third, strict=True)),
        (
            Check("latency: Modes II and III are faster than Mode I", max(second[0], third[0]) < first[0]),
            Check("logic: Mode II is the simplest, then Mode III, then Mode I", second[1] < third[1] < first[1]),
            Check("space: Mode II needs a larger window than Modes I and III", max(first[2], third[2]) < second[2]),
            Check("loss: Mode III keeps more than Mode II", third[3] > second[3]),
        ),
        (
            "packets of 1 KiB, messages of four packets; links of 100 Gb/s and 1 us",
            f"a window suffices when an AllReduce of {SIZE >> 20} MiB reaches {100 * ENOUGH:g} % of the throughput "
            f"with {WINDOWS[-1]} messages; the paper's 4BL and 4(H-1)BL are two such windows",
            "Mode I goes back N; its share of throughput is that of this recovery, where section F.4 assumes one that "
            "costs nothing but the packets lost",
        ),
        {},
    )


COMPARISON: Final = Experiment({"quick": "four axes, three modes: seconds"}, _compare, check="quick")


# --- F.4 ---

TREES: Final[Mapping[str, tuple[int, int]]] = {
    "star-2": (2, 2), "star-4": (2, 4), "star-8": (2, 8), "tree-3-2": (3, 2), "tree-3-4": (3, 4),
}  # fmt: skip
"""H of each network, its tiers with that of the hosts, and D - 1, the children of a switch."""
RATES: Final = (0.001, 0.01, 0.05)
FLAT: Final = 2
"""H of the networks on which the law is judged."""


def remaining(solution: Solution, network: str, loss: float, seed: int, engine: EngineName) -> float:
    """T / B: the share of throughput that is left when all links lose ``loss`` of their packets."""
    # A recovery takes a round trip of the tree; timers before that would send everything twice.
    more = {"timeout": 8 * US * (TREES[network][0] - 1), "size": 4 * SIZE}
    whole, lossy = (_run(solution, network, seed, engine, each, **more) for each in (0.0, loss))
    return whole.duration / lossy.duration


def law(solution: Solution, network: str, loss: float) -> float:
    """T / B by section F.4: r^(2(H-1)) in Mode III, r^(2(H-1)(D-1)) in Mode II."""
    tiers, children = TREES[network]
    return float((1 - loss) ** (2 * (tiers - 1) * (children if solution is Solution.MODE_II else 1)))


def _judge(order: Order) -> Report:
    asked = [
        (solution, network, loss)
        for solution in (Solution.MODE_II, Solution.MODE_III)
        for network in TREES
        for loss in RATES
        if TREES[network][0] == FLAT or loss == RATES[0]
    ]
    names = {each: f"{each[0]}/{each[1]}/{each[2]:g}" for each in asked}
    found = order.run([Cell(names[each], remaining, (*each, order.seed, order.engine)) for each in asked])
    ours = {each: found[name] for each, name in names.items()}
    two, three = (
        {each[1:]: value for each, value in ours.items() if each[0] is mode}
        for mode in (Solution.MODE_II, Solution.MODE_III)
    )
    many = [(network, loss) for network, loss in two if TREES[network] == (FLAT, 8) and loss >= 0.01]
    off = max(abs(value - law(*each)) for each, value in ours.items() if each[2] <= 0.01)
    return Report(
        ("mode", "network", "H", "D - 1", "loss of a link, %", "T/B", "law", "ratio"),
        tuple(
            (solution, network, *TREES[network], 100 * loss, value, said, value / said)
            for (solution, network, loss), value in ours.items()
            for said in (law(solution, network, loss),)
        ),
        (
            Check(f"up to 1 % loss, T/B differs from the law by at most 0.1: {off:.3f}", off <= 0.1),
            Check(
                "Mode III loses less than Mode II with eight children, and 1 % loss or more",
                all(three[each] > two[each] for each in many),
            ),
        ),
        (
            "AllReduces of 4 MiB, packets of 1 KiB; all links lose packets in both directions, ACKs too",
            "T/B: throughput in parts of that without loss; Mode II with NICs that retransmit what was lost and "
            "nothing else, Mode III with SACK",
            "the law multiplies shares as if each loss cost all others a packet's time; in Mode II, losses of the same "
            "packet on several links cost it once, so more is left",
            "with three tiers only 0.1 % loss: more leaves losses between switches to timers, which the law leaves out",
        ),
        {},
    )


LOSS_LAW: Final = Experiment({"quick": "five networks, three rates of loss: half a minute"}, _judge, check="quick")
