"""Figure 5 (§5): completion times of AllReduce and AlltoAll by ECMP, adaptive routing and Themis, over the settings of
DCQCN's two timers.

All groups start together, and the slowest one counts. A cell is a collective with a scheme and a setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Final, NamedTuple

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, Value
from p4gen.experiments.plot import Series, chart_svg
from p4gen.host.transport.clock import MS, US, duration_text
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.model import EngineName
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.papers.themis.spec import Spread, ThemisSpec
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec

TI: Final = (900, 300, 100, 50, 10)
"""T_I as the figure has it, us."""
TD: Final = (4, 50, 200)
"""T_D, us."""
PAPER: Final = {Pattern.ALLREDUCE: (15.6, 75.3), Pattern.ALLTOALL: (11.5, 40.7)}
"""Less time than adaptive routing takes, %: the least and the most over all settings. The text gives no single cell."""
NAMES: Final = {Pattern.ALLREDUCE: "AllReduce", Pattern.ALLTOALL: "AlltoAll"}
SCHEMES: Final = {Spread.ECMP: "ECMP", Spread.ADAPTIVE: "adaptive", Spread.THEMIS: "Themis"}
RECOMMENDED: Final = (900, 4)
MTU: Final = 1024
MESSAGE: Final = 64 << 10
QUEUE: Final = 1024
"""PSNs that Themis-D remembers: a last-hop round trip, and the queue toward the host, which comes after the ring."""
BUFFER: Final = 64_000_000
WINDOW: Final = 512
"""Packets outstanding at 100 Gb/s: four times what is under way in a round trip without queues."""
_GIGABIT: Final = 1_000_000_000


@dataclass(frozen=True)
class Scale:
    """The size of the network, of the data, and of the grid of timers."""

    leaves: int
    """And as many spines, and as many hosts on each leaf."""
    line: int
    """Gb/s."""
    size: int
    """Bytes of each host's array."""
    shrink: int = 1
    """What T_I is divided by, as the size is smaller."""
    ti: tuple[int, ...] = TI
    td: tuple[int, ...] = TD
    least: Mapping[Pattern, float] | None = None
    """What the greatest reduction must reach at least, %."""

    @property
    def network(self) -> str:
        """The topology's name, such as ``clos:8x8x8``."""
        return f"clos:{self.leaves}x{self.leaves}x{self.leaves}"


SCALES: Final = {
    "quick": Scale(4, 100, 75 * (1 << 20) // 10, 10),
    "small": Scale(4, 100, 75 << 20),
    "medium": Scale(8, 100, 16 << 20, 4, least={Pattern.ALLREDUCE: 50, Pattern.ALLTOALL: 25}),
    "paper": Scale(16, 400, 300_000_000),
}


class FlowCell(NamedTuple):
    """One simulation: times in us, as the figure has them."""

    pattern: Pattern
    ti: int
    td: int
    spread: Spread

    @property
    def name(self) -> str:
        """As ``--cells`` has it: ``allreduce/900/4/themis``."""
        return "/".join(map(str, self))


def config(cell: FlowCell, scale: Scale, seed: int, engine: EngineName = "jit") -> TrafficConfig:
    """The simulation of a cell, on the network of a scale."""
    side, line = scale.leaves, scale.line * _GIGABIT
    parts = scale.line / 25
    marks = {"low": round(100_000 * parts), "high": round(400_000 * parts), "share": 0.2}
    network = TopologySpec.model_validate(
        clos_fields(scale.network)
        | {
            "defaults": {"bandwidth": line, "queue": BUFFER, "ecn": marks},
            "buffer": {"size": BUFFER, "alpha": 1},
        }
    )
    leaf = ThemisSpec(spread=cell.spread, paths=side, path_sets=1, connections=side * side, queue=QUEUE, ports=2 * side)
    core = ThemisSpec(spread=Spread.ECMP, paths=2, path_sets=1, connections=16, ports=max(8, side))
    chance = Random(f"{seed} ranks")  # noqa: S311 - a simulation, to be repeatable
    groups = [tuple(chance.sample(hosts, len(hosts))) for hosts in by_position(network)]
    return TrafficConfig(
        network,
        leaf,
        tuple(Traffic(cell.pattern, hosts, scale.size // (4 * side) * 4 * side) for hosts in groups),
        core=core,
        seed=seed,
        dcqcn=TimedDcqcnConfig.at(line, increase_timer=cell.ti * US // scale.shrink, decrease_interval=cell.td * US),
        mtu=MTU,
        window=WINDOW * max(1, scale.line // 100),
        message=MESSAGE,
        arrays=False,
        engine=engine,
    )


def cells(scale: Scale) -> list[FlowCell]:
    """All cells of a scale: each collective with each setting of the timers and each scheme."""
    return [FlowCell(*each) for each in product(PAPER, scale.ti, scale.td, SCHEMES)]


@dataclass(frozen=True)
class TimersResult:
    """What came of a cell; all numbers are packets, but for the time."""

    time: int
    """ps until the slowest group had ended."""
    errors: tuple[str, ...]
    spurious: float
    """Share of the packets."""
    naks: int
    cnps: int
    lost: int
    timeouts: int
    hops: int


def simulate(cell: FlowCell, scale: str, seed: int, engine: EngineName) -> TimersResult:
    """Simulate a cell at one of ``SCALES``."""
    result = TrafficSimulation(config(cell, SCALES[scale], seed, engine)).run()
    naks, cnps, lost, timeouts = map(result.total, ("naks", "cnps", "lost", "timeouts"))
    errors = (*result.errors, *result.stuck)
    return TimersResult(max(result.groups), errors, result.spurious, naks, cnps, lost, timeouts, result.packet_hops)


def perform(order: Order) -> Report:
    """Simulate the cells of a scale that the order asks for."""
    scale = SCALES[order.scale]
    every = {cell.name: cell for cell in cells(scale)}
    found = order.run(
        [Cell(name, simulate, (cell, order.scale, order.seed, order.engine)) for name, cell in every.items()]
    )
    outcomes = {every[name]: outcome for name, outcome in found.items()}
    return Report(
        COLUMNS,
        tuple(_row(setting, outcomes) for setting in _settings(outcomes)),
        tuple(_checks(scale, outcomes)),
        tuple(_assumptions(scale, order, outcomes)),
        {f"-{pattern}.svg": _picture(pattern, scale, outcomes) for pattern in PAPER if _of(pattern, outcomes)},
    )


COLUMNS: Final = (
    "collective", "T_I, us", "T_D, us", "ECMP, ms", "adaptive, ms", "Themis, ms", "less than adaptive, %", "paper's, %",
    "less than ECMP, %", "adaptive: spurious, %", "adaptive: NACKs", "Themis: spurious, %", "Themis: NACKs",
    "ECMP: CNPs",
)  # fmt: skip


def _settings(every: Iterable[FlowCell]) -> list[FlowCell]:
    """One cell for each collective and setting."""
    return list(dict.fromkeys(cell._replace(spread=Spread.THEMIS) for cell in every))


def _of(pattern: Pattern, outcomes: Mapping[FlowCell, TimersResult]) -> list[FlowCell]:
    return [cell for cell in outcomes if cell.pattern is pattern]


def _row(setting: FlowCell, outcomes: Mapping[FlowCell, TimersResult]) -> tuple[Value, ...]:
    """A setting's row; None where a cell was not asked for."""
    ecmp, adaptive, themis = (outcomes.get(setting._replace(spread=spread)) for spread in SCHEMES)
    low, high = PAPER[setting.pattern]

    def less(than: TimersResult | None) -> float | None:
        return 100 * (1 - themis.time / than.time) if themis and than else None

    return (
        NAMES[setting.pattern], float(setting.ti), float(setting.td),
        *(outcome.time / MS if outcome else None for outcome in (ecmp, adaptive, themis)),
        less(adaptive), f"{low}-{high}", less(ecmp),
        *(value for outcome in (adaptive, themis) for value in _disorder(outcome)),
        float(ecmp.cnps) if ecmp else None,
    )  # fmt: skip


def _disorder(outcome: TimersResult | None) -> tuple[float | None, float | None]:
    """Spurious retransmissions, %, and NACKs that reached senders."""
    return (100 * outcome.spurious, float(outcome.naks)) if outcome else (None, None)


def _reductions(
    pattern: Pattern, against: Spread, outcomes: Mapping[FlowCell, TimersResult]
) -> dict[tuple[int, int], float]:
    """How much less time Themis takes, %, by setting."""
    return {
        (cell.ti, cell.td): 100 * (1 - outcomes[cell._replace(spread=Spread.THEMIS)].time / outcome.time)
        for cell, outcome in outcomes.items()
        if cell.pattern is pattern and cell.spread is against and cell._replace(spread=Spread.THEMIS) in outcomes
    }


def _checks(scale: Scale, outcomes: Mapping[FlowCell, TimersResult]) -> Iterator[Check]:
    """What must hold. Statements about ranges and means need all cells."""
    bad = [f"{cell.name}: {text}" for cell, outcome in outcomes.items() for text in outcome.errors]
    yield Check("everything has arrived as it was sent" + "".join(f"; {text}" for text in bad), not bad)
    for pattern, against in product(PAPER, (Spread.ADAPTIVE, Spread.ECMP)):
        gains = _reductions(pattern, against, outcomes)
        if not gains:
            continue
        behind = [f"{ti}/{td} us: {gain:.1f} %" for (ti, td), gain in gains.items() if gain <= 0]
        text = f"{NAMES[pattern]}: Themis takes less time than {SCHEMES[against]} in all {len(gains)} cells"
        yield Check(text + (f", but at {', '.join(behind)}" if behind else ""), not behind)
    if len(outcomes) < len(cells(scale)):
        return
    mean = {}
    for pattern, (low, high) in PAPER.items():
        gains = _reductions(pattern, Spread.ADAPTIVE, outcomes)
        least, most = min(gains.values()), max(gains.values())
        mean[pattern] = sum(gains.values()) / len(gains)
        text = f"{NAMES[pattern]}: {least:.1f} to {most:.1f} % less time than adaptive routing"
        yield Check(f"{text}; the paper's {low} to {high} % overlap", least <= high and most >= low)
        if scale.least is not None:
            yield Check(f"{text}; {scale.least[pattern]:g} % at least once", most >= scale.least[pattern])
    ring, every = mean[Pattern.ALLREDUCE], mean[Pattern.ALLTOALL]
    yield Check(f"AllReduce gains more than AlltoAll: {ring:.1f} % and {every:.1f} %, means of all cells", ring > every)
    yield from _shape(scale, outcomes)


def _shape(scale: Scale, outcomes: Mapping[FlowCell, TimersResult]) -> Iterator[Check]:
    """How adaptive routing depends on the settings."""
    times = {
        (cell.ti, cell.td): outcome.time
        for cell, outcome in outcomes.items()
        if cell.pattern is Pattern.ALLREDUCE and cell.spread is Spread.ADAPTIVE
    }
    if RECOMMENDED in times:
        worst = max(times, key=lambda setting: times[setting])
        yield Check(
            "AllReduce: adaptive routing is slowest at T_I {} us, T_D {} us; expected: {}, {}".format(
                *worst, *RECOMMENDED
            ),
            worst == RECOMMENDED,
        )
    if scale.least is not None:
        best = {td: min(scale.ti, key=lambda ti, td=td: times[ti, td]) for td in scale.td}  # type: ignore[misc]
        inside = [td for td, ti in best.items() if min(scale.ti) < ti < max(scale.ti)]
        text = ", ".join(f"{ti} us at T_D {td} us" for td, ti in best.items())
        yield Check(
            f"AllReduce: adaptive routing is fastest at a T_I between the extremes for some T_D: {text}", bool(inside)
        )


def _assumptions(scale: Scale, order: Order, outcomes: Mapping[FlowCell, TimersResult]) -> list[str]:
    some = config(next(iter(outcomes)), scale, order.seed)
    topology, side = some.topology, scale.leaves
    ecn = topology.defaults.ecn
    assert ecn is not None
    total = {
        name: sum(getattr(outcome, name) for outcome in outcomes.values()) for name in ("lost", "timeouts", "hops")
    }
    shrunk = "" if scale.shrink == 1 else f"; T_I is divided by {scale.shrink}, as the size is smaller; T_D is not"
    return [
        f"{scale.network}, {scale.line} Gb/s and {duration_text(topology.defaults.delay)} a link, "
        f"{duration_text(topology.switch_latency)} through a switch (the paper: 16x16x16, 400 Gb/s, 1 us)",
        f"{side} groups of {side} hosts, one of each leaf, start together; {some.traffic[0].size:,} bytes a host (the "
        f"paper: 300 MB); the slowest group counts{shrunk}",
        "not in the paper, fitted: each group's ranks are in an order of their own, drawn with the seed (with one "
        "order for all, a ring's packets from one leaf go to one other leaf only, and adaptive routing reorders few)",
        f"not in the paper, fitted: all {side - 1} parts of an AlltoAll are sent at once (one after the other, hosts "
        "of one leaf never meet those of another, and hardly anything is reordered)",
        f"AllReduce: a ring, 2 x {side - 1} steps; the messages of collectives are stretches of a pattern, and are "
        "compared when they arrive; adding up takes no time",
        f"not in the paper: ECN marks from {ecn.low:,} bytes on, {ecn.share:.0%} at {ecn.high:,}, then all (HPCC's for "
        f"this bandwidth); payload {some.mtu} bytes; at most {some.window} packets outstanding; an ACK for "
        f"every {some.ack_every} packets; timer {duration_text(some.timeout)}; no PFC; no skew",
        f"{BUFFER:,} bytes of memory a switch, shared with dynamic thresholds; {total['lost']:,} packets lost, "
        f"{total['timeouts']:,} timeouts in all cells",
        "NIC-SR; DCQCN cut by CNPs and NACKs, steps of 5 and 50 Mb/s for each 25 Gb/s, alpha 1 us, g 1/256",
        "adaptive: each packet to the shortest queue of the leaf, with lengths as they are then; ties at random",
        f"Themis-D remembers {QUEUE} PSNs of each connection; spines run a program that only forwards",
        f"{total['hops']:,} packet-hops in {len(outcomes)} of {len(cells(scale))} cells",
    ]


def _picture(pattern: Pattern, scale: Scale, outcomes: Mapping[FlowCell, TimersResult]) -> str:
    settings = list(product(scale.ti, scale.td))

    def times(spread: Spread) -> Iterator[float | None]:
        for setting in settings:
            outcome = outcomes.get(FlowCell(pattern, *setting, spread))
            yield outcome.time / MS if outcome else None

    lines = [Series(name, list(times(spread))) for spread, name in SCHEMES.items()]
    labels = [f"{ti}/{td}" for ti, td in settings]
    title = f"Themis, Figure 5{'ab'[list(PAPER).index(pattern)]}: {NAMES[pattern]}"
    return chart_svg(title, "T_I/T_D, us", labels, "completion time, ms", lines)


FIGURE_5: Final = Experiment(
    {
        "quick": "4x4x4, 7.5 MiB, T_I a tenth: 90 cells of five to ten seconds",
        "small": "4x4x4, 75 MiB: 90 cells of one to two minutes",
        "medium": "8x8x8, 16 MiB, T_I a quarter: 90 cells of one to two minutes",
        "paper": "16x16x16 at 400 Gb/s, 300 MB, as printed: 90 cells of one to two hours, a week of one core",
    },
    perform,
    partly=True,
)
