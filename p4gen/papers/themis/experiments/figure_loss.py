"""Losses on a spine link: how many of them NIC-SR repairs without its timer, by number of paths, loss and design.

Two leaves with two hosts each, which send to the hosts of the other leaf and back. One link between a leaf and a spine
loses packets in both directions: data, ACKs and NAKs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final, NamedTuple

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.host.transport.clock import US, duration_text
from p4gen.host.transport.verbs import Recovery
from p4gen.model import EngineName
from p4gen.net.traffic.repairs import Cause, Repairs
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.themis.spec import Blocked, Evidence, Spread, ThemisSpec, Variant
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec

LINK: Final = "leaf0-spine0"
QUEUE: Final = 512
"""PSNs that Themis-D remembers: a last-hop round trip, and the queue toward the host, which comes after the ring."""
REPAIRED: Final = 0.95
"""The share of losses, but for tails, that must be repaired without a timer."""


ENOUGH: Final = 100
"""Losses that a share for one number of paths must be based on: each of them has one retransmission that may be lost,
and one NAK."""


@dataclass(frozen=True)
class Scheme:
    """A design: the fields of the leaves' program, and the NICs' recovery."""

    name: str
    fields: Mapping[str, object]
    recovery: Recovery = Recovery.SELECTIVE_REPEAT
    right: bool = True
    """Whether it is one of Themis's own, all of whose statements must hold; else its results must be right."""


SCHEMES: Final = (
    Scheme("Themis", {}),
    Scheme("Themis, ACK", {"blocked": Blocked.ACK}),
    Scheme("Themis, classes", {"evidence": Evidence.CLASSES}),
    Scheme("destructive", {"variant": Variant.DESTRUCTIVE_QUEUE}, right=False),
    Scheme("late", {"variant": Variant.LATE_COMPENSATION}, right=False),
    Scheme("by PSN", {"spread": Spread.PSN}, right=False),
    Scheme("Themis, GBN", {}, Recovery.GO_BACK_N, right=False),
)


@dataclass(frozen=True)
class Scale:
    """How much is simulated: the cells, and the size of their flows."""

    size: int
    """Bytes of a flow that go over each path: the lossy link carries as much for every number of paths."""
    paths: tuple[int, ...] = (2, 3, 4, 8, 16)
    losses: tuple[float, ...] = (0, 0.0001, 0.001, 0.01)
    schemes: tuple[Scheme, ...] = SCHEMES


SCALES: Final = {
    "quick": Scale(512 << 10, (2, 3, 8), (0, 0.001, 0.01)),
    "small": Scale(4 << 20),
    "large": Scale(32 << 20, schemes=tuple(scheme for scheme in SCHEMES if scheme.recovery is not Recovery.GO_BACK_N)),
}


class LossCell(NamedTuple):
    """A simulation: a scheme, a number of paths, and the share of packets that ``LINK`` loses."""

    scheme: int
    """Index of its scheme."""
    paths: int
    loss: float


@dataclass(frozen=True)
class LossResult:
    """What came of a cell; all numbers are packets, but for the time in ps."""

    errors: tuple[str, ...]
    sent: int
    resent: int
    naks: int
    lost: int
    """Of these that had not arrived before."""
    copies: int
    timeouts: Mapping[Cause, int]
    time: int

    def because(self, *causes: Cause) -> int:
        """Timeouts with one of these causes."""
        return sum(self.timeouts.get(cause, 0) for cause in causes)


def config(scheme: Scheme, paths: int, loss: float, size: int, seed: int, engine: EngineName = "jit") -> TrafficConfig:
    """The simulation of a cell, in which each flow has ``size`` bytes for each path."""
    network = TopologySpec.model_validate(clos_fields(f"clos:2x{paths}x2") | {"defaults": {"queue": "4M"}})
    fields: dict[str, object] = {"paths": max(2, paths), "path_sets": 1, "connections": 16, "ports": 32}
    if "evidence" not in scheme.fields:
        fields["queue"] = QUEUE
    return TrafficConfig(
        network,
        ThemisSpec.model_validate(fields | dict(scheme.fields)),
        tuple(Traffic(Pattern.NEXT, hosts, size * paths) for hosts in by_position(network)),
        core=ThemisSpec(spread=Spread.ECMP, paths=2, path_sets=1, connections=16, ports=8),
        faults=Faults((Impairment(LINK, loss=loss),)) if loss else Faults(),
        seed=seed,
        recovery=scheme.recovery,
        spray_gbn=True,
        engine=engine,
    )


def simulate(cell: LossCell, scale: str, seed: int, engine: EngineName) -> LossResult:
    """Simulate a cell at one of ``SCALES``, and count losses, repairs and timeouts."""
    at = SCALES[scale]
    simulation = TrafficSimulation(config(at.schemes[cell.scheme], cell.paths, cell.loss, at.size, seed, engine))
    repairs = Repairs(simulation)
    result = simulation.run()
    return LossResult(
        result.errors,
        result.total("sent"),
        result.total("resent"),
        result.total("naks"),
        repairs.lost,
        repairs.copies,
        dict(repairs.timeouts),
        result.duration,
    )


def perform(order: Order) -> Report:
    """Simulate the cells of a scale that the order asks for."""
    scale = SCALES[order.scale]
    every = {
        f"{scale.schemes[number].name}/{paths}/{loss:.2%}": LossCell(number, paths, loss)
        for number, paths, loss in product(range(len(scale.schemes)), scale.paths, scale.losses)
    }
    found = order.run(
        [Cell(name, simulate, (cell, order.scale, order.seed, order.engine)) for name, cell in every.items()]
    )
    outcomes = {every[name]: outcome for name, outcome in found.items()}
    return Report(
        COLUMNS,
        tuple(_row(scale.schemes[cell.scheme], cell, outcome) for cell, outcome in outcomes.items()),
        tuple(_checks(scale.schemes, outcomes)),
        tuple(_assumptions(scale, order.seed)),
        {},
    )


COLUMNS: Final = (
    "design", "paths", "loss, %", "sent", "lost", "tails", "again", "NAK lost", "silence", "repaired, %", "timeouts",
    "spurious, %", "time, us",
)  # fmt: skip


def _row(scheme: Scheme, cell: LossCell, outcome: LossResult) -> tuple[float | str | None, ...]:
    causes = [float(outcome.because(cause)) for cause in (Cause.TAIL, Cause.AGAIN, Cause.NAK, Cause.SILENCE)]
    share = repaired(outcome)
    spurious = 100 * max(0, outcome.resent - outcome.lost) / outcome.sent
    return (
        scheme.name, float(cell.paths), 100 * cell.loss, float(outcome.sent), float(outcome.lost), *causes,
        None if share is None else 100 * share, float(sum(outcome.timeouts.values())), spurious, outcome.time / US,
    )  # fmt: skip


def repaired(*outcomes: LossResult) -> float | None:
    """The share of losses, but for tails, that no timer had to repair; None if there are none."""
    due = sum(outcome.lost - outcome.because(Cause.TAIL) for outcome in outcomes)
    late = sum(outcome.because(Cause.AGAIN, Cause.NAK, Cause.SILENCE) for outcome in outcomes)
    return 1 - late / due if due else None


def _checks(schemes: Sequence[Scheme], outcomes: Mapping[LossCell, LossResult]) -> Iterator[Check]:
    def where(cell: LossCell) -> str:
        return f"{schemes[cell.scheme].name}, {cell.paths} paths, {cell.loss:.2%}"

    bad = [f"{where(cell)}: {text}" for cell, outcome in outcomes.items() for text in outcome.errors]
    yield Check(
        f"{len(outcomes)} cells: everything has arrived as it was sent" + "".join(f"; {b}" for b in bad), not bad
    )
    mine = {cell: outcome for cell, outcome in outcomes.items() if schemes[cell.scheme].right}
    again = [f"{where(c)}: {o.resent} sent again" for c, o in mine.items() if not c.loss and (o.resent or o.naks)]
    yield Check("without loss, Themis retransmits nothing" + "".join(f"; {text}" for text in again), not again)
    for number, scheme in enumerate(schemes):
        if scheme.right:
            yield from _shares(scheme.name, {cell: o for cell, o in mine.items() if cell.scheme == number})
    silent = [f"{where(cell)}: {o.because(Cause.SILENCE)}" for cell, o in mine.items() if o.because(Cause.SILENCE)]
    yield Check(
        "each of Themis's timeouts has a cause that no filter of NACKs can help: a tail, a second loss of the same "
        "packet, a lost NAK or ACK" + "".join(f"; not {text}" for text in silent),
        not silent,
    )


def _assumptions(scale: Scale, seed: int) -> Iterator[str]:
    some = config(scale.schemes[0], 2, 0.01, scale.size, seed)
    yield (
        f"clos:2xNx2, 100 Gb/s; {LINK} loses packets in both directions; four flows of N x {scale.size:,} bytes; "
        f"payload {some.mtu} bytes, at most {some.window} packets outstanding, timer {duration_text(some.timeout)}"
    )
    yield f"Themis-D remembers {QUEUE} PSNs of each connection; no congestion control"
    yield (
        "ACK: --blocked ack; classes: --evidence classes; destructive and late: the variants destructive-queue and "
        "late-compensation; by PSN: --spread psn, all NACKs pass; GBN: NICs go back N, and are "
        "sprayed all the same (all others are NIC-SR)"
    )
    yield (
        "repaired: without a timeout, of the losses but for tails. The others by what came of them: again: the "
        "retransmission was lost, too (NIC-SR sends one NAK for each expected PSN); silence: no NAK reached the "
        "sender, although none was lost"
    )
    yield (
        "tail: a loss among the last packets, after which none arrives that makes the NIC send a NAK, or none of its "
        "path"
    )
    yield (
        "spurious: retransmissions less losses; a timeout retransmits all packets without an ACK, which is what most "
        "of Themis's are"
    )


def _shares(name: str, outcomes: Mapping[LossCell, LossResult]) -> Iterator[Check]:
    """What must hold of a design: for each rate of loss, and for each number of paths with enough losses to tell."""
    pools = {f"{loss:.2%} loss": [o for c, o in outcomes.items() if c.loss == loss] for _, _, loss in outcomes if loss}
    pools |= {f"{paths} paths": [o for c, o in outcomes.items() if c.paths == paths] for _, paths, _ in outcomes}
    for what, some in pools.items():
        share = repaired(*some)
        tails = sum(outcome.because(Cause.TAIL) for outcome in some)
        due = sum(outcome.lost for outcome in some) - tails
        if share is not None and (due >= ENOUGH or what.endswith("loss")):
            yield Check(
                f"{name}, {what}: {share:.1%} of {due} losses repaired without a timeout ({tails} tails aside); at "
                f"least {REPAIRED:.0%}",
                share >= REPAIRED,
            )


FIGURE_LOSS: Final = Experiment(
    {
        "small": "2 to 16 paths, 4 MiB a path and flow: 140 cells, ten minutes",
        "quick": "2, 3 and 8 paths, 0.5 MiB a path and flow: 63 cells, a minute",
        "large": "32 MiB a path and flow, NIC-SR only: 120 cells, two hours",
    },
    perform,
    partly=True,
)
"""No figure of the paper, which has no losses."""
