"""Figure 1 (§2.2): the cost of random packet spraying with NIC-SR, without and with Themis.

Eight nodes on a leaf-spine network form two rings; each node sends to the next one of its ring. Links lose nothing and
queues do not fill, so that every NACK is a mistake.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.experiments.plot import Series, chart_svg
from p4gen.host.transport.clock import US, duration_text
from p4gen.host.transport.dcqcn_timed import TimedDcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.model import EngineName
from p4gen.net.traffic.series import LABELS, Sample, points, series_csv
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.papers.themis.spec import Spread, ThemisSpec, Variant
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec

LINE: Final = 100_000_000_000
NETWORK: Final = "clos:4x2x2"
SIZES: Final = {"small": 8 << 20, "quick": 2 << 20, "paper": 100_000_000}
SAMPLES: Final = 100
"""Approximate number of points of the time series."""
DCQCN: Final = TimedDcqcnConfig.at(LINE, increase_timer=10 * US, decrease_interval=100 * US)
"""The paper does not say which settings Figure 1 has. With those that it recommends elsewhere (900 us, 4 us) the flows
stop at a tenth of the line's rate; these are the ones of Figure 5's range whose rate comes closest to the 86 %."""
QUEUE: Final = 512
"""PSNs that Themis-D remembers: a last-hop round trip, and the queue toward the host, which comes after the ring."""


@dataclass(frozen=True)
class Scheme:
    """A row: the leaves' program and the NICs' recovery, with the paper's results."""

    name: str
    program: ThemisSpec
    recovery: Recovery
    paper: tuple[float, float, float] | None = None
    """The paper's: spurious retransmissions, sending rate, throughput; % of packets, of the line, of the ideal."""


def _leaf(spread: Spread, variant: Variant | None = None) -> ThemisSpec:
    return ThemisSpec(spread=spread, variant=variant, paths=2, path_sets=1, connections=16, queue=QUEUE, ports=8)


CORE: Final = ThemisSpec(spread=Spread.ECMP, paths=2, path_sets=1, connections=16, ports=8)
"""Spines only forward."""
IDEAL, SPRAYED, BY_PSN, THEMIS, LISTING = SCHEMES = (
    Scheme("ideal: random, oracle", _leaf(Spread.RANDOM), Recovery.ORACLE, (0, 100, 100)),
    Scheme("random, NIC-SR", _leaf(Spread.RANDOM), Recovery.SELECTIVE_REPEAT, (16, 86, 71)),
    Scheme("by PSN, NIC-SR", _leaf(Spread.PSN), Recovery.SELECTIVE_REPEAT),
    Scheme("Themis", _leaf(Spread.THEMIS), Recovery.SELECTIVE_REPEAT),
    Scheme("Themis as listed (§3.4)", _leaf(Spread.THEMIS, Variant.LATE_COMPENSATION), Recovery.SELECTIVE_REPEAT),
)
COLUMNS: Final = (
    "scheme", "spurious, %", "spurious: paper", "rate, % of line", "rate: paper", "throughput, % of ideal",
    "throughput: paper", "NACKs",
)  # fmt: skip


def config(scheme: Scheme, size: int, seed: int, engine: EngineName = "jit") -> TrafficConfig:
    """The simulation of a row, in which each flow has ``size`` bytes."""
    network = TopologySpec.model_validate(clos_fields(NETWORK) | {"defaults": {"bandwidth": LINE, "queue": "4M"}})
    return TrafficConfig(
        network,
        scheme.program,
        tuple(Traffic(Pattern.NEXT, hosts, size) for hosts in by_position(network)),
        core=CORE,
        seed=seed,
        recovery=scheme.recovery,
        dcqcn=DCQCN,
        interval=max(US, size * 8 * 10**12 // LINE // SAMPLES),
        engine=engine,
    )


@dataclass(frozen=True)
class RingsResult:
    """What came of a row's flows: packets, and means over the flows."""

    errors: tuple[str, ...]
    spurious: float
    """Share of the packets."""
    rate: float
    """Bit/s."""
    throughput: float
    """Bit/s."""
    naks: int
    resent: int
    lost: int
    cnps: int
    samples: tuple[Sample, ...]


def simulate(scheme: int, size: int, seed: int, engine: EngineName) -> RingsResult:
    """Simulate the row of ``SCHEMES`` with this number."""
    result = TrafficSimulation(config(SCHEMES[scheme], size, seed, engine)).run()
    naks, resent, lost, cnps = map(result.total, ("naks", "resent", "lost", "cnps"))
    return RingsResult(
        result.errors, result.spurious, result.rate, result.throughput, naks, resent, lost, cnps, tuple(result.samples)
    )


def _perform(order: Order) -> Report:
    size = SIZES[order.scale]
    found = order.run(
        [Cell(scheme.name, simulate, (number, size, order.seed, order.engine)) for number, scheme in enumerate(SCHEMES)]
    )
    results = {scheme: found[scheme.name] for scheme in SCHEMES}
    ideal = results[IDEAL].throughput
    rows = []
    for scheme, result in results.items():
        paper = scheme.paper or (None, None, None)
        ours = 100 * result.spurious, 100 * result.rate / LINE, 100 * result.throughput / ideal
        pairs = [value for pair in zip(ours, paper, strict=True) for value in pair]
        rows.append((scheme.name, *pairs, float(result.naks)))
    return Report(
        COLUMNS,
        tuple(rows),
        tuple(_checks(results)),
        tuple(_assumptions(size, results)),
        {
            "-series.csv": series_csv(results[SPRAYED].samples),
            "b.svg": _picture("retransmission ratio of h0>h2", size, results, "resent"),
            "c.svg": _picture("sending rate of h0>h2, share of the line's", size, results, "rate"),
        },
    )


def _checks(results: Mapping[Scheme, RingsResult]) -> list[Check]:
    ideal, random = results[IDEAL], results[SPRAYED]
    share = {scheme: result.throughput / ideal.throughput for scheme, result in results.items()}
    expected = (1 - random.spurious) * random.rate / ideal.rate
    themis, listing = results[THEMIS], results[LISTING]
    bad = [f"{scheme.name}: {error}" for scheme, result in results.items() for error in result.errors]
    drops = sum(result.lost for result in results.values())
    return [
        Check("everything has arrived as it was sent" + "".join(f"; {text}" for text in bad), not bad),
        Check(f"links lose nothing: {drops} packets", drops == 0),
        Check("the oracle retransmits nothing", ideal.resent == 0),
        _within("random spraying: spurious retransmissions", random.spurious, 0.08, 0.24),
        _within("random spraying: sending rate of the line's", random.rate / LINE, 0.76, 0.96),
        _within("random spraying: throughput of the ideal", share[SPRAYED], 0.60, 0.82),
        _within("random spraying: throughput less rate x useful share", share[SPRAYED] - expected, -0.03, 0.03),
        _within("Themis: spurious retransmissions", themis.spurious, 0, 0.005),
        _within("Themis: throughput of the ideal", share[THEMIS], 0.97, 1.03),
        Check(
            f"Themis as listed is worse: {listing.spurious:.2%} spurious, {share[LISTING]:.1%} of the ideal",
            listing.spurious > themis.spurious + 0.003 and share[LISTING] < share[THEMIS] - 0.01,
        ),
    ]


def _within(what: str, value: float, low: float, high: float) -> Check:
    return Check(f"{what}: {value:.1%}, between {low:.1%} and {high:.1%}", low <= value <= high)


def _assumptions(size: int, results: Mapping[Scheme, RingsResult]) -> list[str]:
    run = config(IDEAL, size, 0)
    topology = run.topology
    cnps = sum(result.cnps for result in results.values())
    return [
        f"{NETWORK}: 4 leaves with 2 nodes each, 2 spines (the paper does not give their number); 100 Gb/s and "
        f"{duration_text(topology.defaults.delay)} a link, {duration_text(topology.switch_latency)} through a switch, "
        "queues of 4 MiB",
        f"rings {', '.join('{' + ', '.join(each.hosts) + '}' for each in run.traffic)}; {size:,} bytes a node",
        f"payload {run.mtu} bytes, at most {run.window} packets outstanding, an ACK for every {run.ack_every} packets, "
        f"timer {duration_text(run.timeout)}",
        f"DCQCN: T_I {duration_text(DCQCN.increase_timer)}, T_D {duration_text(DCQCN.decrease_interval)} (the paper's "
        f"for this figure are not given), cut by NACKs; links mark nothing: {cnps} CNPs",
        f"Themis-D remembers {QUEUE} PSNs of each connection; spines run a program that only forwards",
        "rate and throughput are means over the flows, each until all of it has arrived; the rate includes headers",
    ]


def _picture(title: str, size: int, results: Mapping[Scheme, RingsResult], what: str) -> str:
    shown: Sequence[Scheme] = (SPRAYED, THEMIS)
    lines, longest = [], 0
    for scheme in shown:
        mine = [point for point in points(results[scheme].samples) if point.flow == "h0>h2"]
        values = [point.resent if what == "resent" else point.rate / LINE for point in mine]
        lines.append(Series(scheme.name, values))
        longest = max(longest, len(mine))
    step = config(SPRAYED, size, 0).interval
    every = max(1, longest // LABELS)
    labels = [f"{(i + 1) * step / US:g}" if i % every == 0 else "" for i in range(longest)]
    return chart_svg(f"Themis, Figure 1: {title}", "time, us", labels, title, lines)


FIGURE_1: Final = Experiment(
    {
        "small": "8 MiB a node, half a minute",
        "quick": "2 MiB a node, ten seconds",
        "paper": "100 MB a node, as printed, some minutes",
    },
    _perform,
    check="small",
)
