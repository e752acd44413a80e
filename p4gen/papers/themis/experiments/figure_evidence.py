"""What Themis-D judges NACKs by, compared: a queue of PSNs and classes, under losses in the fabric and on the last hop.

The network and the flows are those of Figure 1, without congestion control: after a loss, flows go on at the line's
rate, and packets overtake each other as before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.model import EngineName
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig, by_position
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.themis.experiments import figure_1
from p4gen.papers.themis.memory import figures
from p4gen.papers.themis.spec import Evidence, ThemisSpec
from p4gen.papers.themis.verdicts import BLOCKED, PASSED, VERDICT_COUNTER, VERDICTS, Verdict
from p4gen.plan.placement.placer import switch_of
from p4gen.program import compose
from p4gen.vocabulary.clos import clos_fields
from p4gen.vocabulary.topology import TopologySpec

SIZES: Final = {"small": 8 << 20, "quick": 2 << 20}
SPINES: Final = (2, 4, 8)
COLUMNS: Final = (
    "spines, loss, evidence", "NACKs", "passes", "passed, %", "blocked, %", "made, %", "lost", "spurious", "timeouts",
    "Gb/s",
)  # fmt: skip


@dataclass(frozen=True)
class Loss:
    """Where packets are lost, and what share of them."""

    name: str
    share: float = 0
    last_hop: bool = False
    """On links from leaves to hosts; else on the links of spine 0."""

    def faults(self, network: TopologySpec) -> Faults:
        """The faults of the links of ``network``; none if nothing is lost."""
        if not self.share:
            return Faults()
        if self.last_hop:
            return Faults(
                tuple(Impairment(f"{switch_of(network, host)}>{host}", loss=self.share) for host in network.hosts)
            )
        return Faults((Impairment("spine0", loss=self.share),))


NONE, RARE, OFTEN, LAST = LOSSES = (
    Loss("none"),
    Loss("0.1 % spine", 0.001),
    Loss("1 % spine", 0.01),
    Loss("0.3 % last hop", 0.003, last_hop=True),
)


@dataclass(frozen=True)
class Run:
    """A row: a number of spines, where packets are lost, and by what Themis-D judges."""

    spines: int
    loss: Loss
    evidence: Evidence

    def program(self) -> ThemisSpec:
        """The program of the leaves, which judges by ``evidence``."""
        queue = {"queue": figure_1.QUEUE} if self.evidence is Evidence.QUEUE else {}
        common = {"evidence": self.evidence, "paths": self.spines, "path_sets": 1, "connections": 16, "ports": 16}
        return ThemisSpec.model_validate(common | queue)

    def config(self, size: int, seed: int, engine: EngineName) -> TrafficConfig:
        """The simulation of the row, in which each flow has ``size`` bytes."""
        line = {"bandwidth": figure_1.LINE, "queue": "4M"}
        network = TopologySpec.model_validate(clos_fields(f"clos:4x{self.spines}x2") | {"defaults": line})
        return TrafficConfig(
            network,
            self.program(),
            tuple(Traffic(Pattern.NEXT, hosts, size) for hosts in by_position(network)),
            core=figure_1.CORE,
            faults=self.loss.faults(network),
            seed=seed,
            engine=engine,
        )


@dataclass(frozen=True)
class EvidenceResult:
    """What came of a run, in packets, and the verdicts of all leaves."""

    errors: tuple[str, ...]
    lost: int
    resent: int
    timeouts: int
    throughput: float
    """Bit/s."""
    counts: Mapping[Verdict, int]

    @property
    def verdicts(self) -> Counter[Verdict]:
        """The number of each verdict."""
        return Counter(self.counts)

    def share(self, which: Iterable[Verdict]) -> float | None:
        """The part of all NACKs with these verdicts, %."""
        return 100 * sum(self.verdicts[verdict] for verdict in which) / self.nacks if self.nacks else None

    @property
    def nacks(self) -> int:
        """NACKs of NICs that have been judged."""
        return sum(self.verdicts[verdict] for verdict in PASSED + BLOCKED)


def simulate(run: Run, size: int, seed: int, engine: EngineName) -> EvidenceResult:
    """Simulate a run, and add up the verdicts of all leaves."""
    simulation = TrafficSimulation(run.config(size, seed, engine))
    result = simulation.run()
    verdicts: Counter[Verdict] = Counter()
    for name, spec in simulation.specs.items():
        assert isinstance(spec, ThemisSpec)
        if spec.filters:
            cells = simulation.network.switches[name].counters(VERDICT_COUNTER)
            for index, cell in enumerate(cells):
                if cell.packets:
                    verdicts[Verdict(index % VERDICTS)] += cell.packets
    lost, resent, timeouts = map(result.total, ("lost", "resent", "timeouts"))
    return EvidenceResult(result.errors, lost, resent, timeouts, result.throughput, verdicts)


def perform(order: Order, spines: Sequence[int] = SPINES) -> Report:
    """All runs with these numbers of spines."""
    size = SIZES[order.scale]
    every = {
        f"{run.spines} spines/{run.loss.name}/{run.evidence}": run
        for run in (Run(*each) for each in product(spines, LOSSES, Evidence))
    }
    found = order.run([Cell(name, simulate, (run, size, order.seed, order.engine)) for name, run in every.items()])
    outcomes = {run: found[name] for name, run in every.items()}
    return Report(COLUMNS, tuple(map(_row, outcomes, outcomes.values())), tuple(_checks(outcomes)), _assumed(size), {})


def _row(run: Run, outcome: EvidenceResult) -> tuple[float | str | None, ...]:
    verdicts, nacks = outcome.verdicts, outcome.nacks
    return (
        f"{run.spines}, {run.loss.name}, {run.evidence}",
        float(nacks),
        (nacks + verdicts[Verdict.UNDECIDED]) / nacks if nacks else None,
        outcome.share(PASSED),
        outcome.share(BLOCKED),
        outcome.share((Verdict.COMPENSATED,)),
        float(outcome.lost),
        float(max(0, outcome.resent - outcome.lost)),
        float(outcome.timeouts),
        outcome.throughput / 1e9,
    )


def _checks(outcomes: Mapping[Run, EvidenceResult]) -> Iterator[Check]:
    bad = [f"{run}: {error}" for run, outcome in outcomes.items() for error in outcome.errors]
    yield Check("everything has arrived as it was sent" + "".join(f"; {text}" for text in bad), not bad)
    for evidence in Evidence:
        of = {run: outcome for run, outcome in outcomes.items() if run.evidence is evidence}
        resent = sum(outcome.resent for run, outcome in of.items() if run.loss is NONE)
        yield Check(f"{evidence}: without loss nothing is sent twice: {resent} packets", resent == 0)
        lost, timeouts = _totals(of, "lost"), _totals(of, "timeouts")
        text = f"{evidence}: at most a tenth of the losses on spine 0, tails included, are left to the timer"
        yield Check(f"{text}: {timeouts} of {lost}", timeouts <= 0.1 * lost)
    pairs = [
        (outcome.verdicts, outcomes[replace(run, evidence=Evidence.CLASSES)].verdicts)
        for run, outcome in outcomes.items()
        if run.loss is NONE and run.evidence is Evidence.QUEUE
    ]
    same = all(queue[verdict] == classes[verdict] for queue, classes in pairs for verdict in Verdict if verdict)
    yield Check("without loss both give the same verdicts", same)
    one_pass = all(not o.verdicts[Verdict.UNDECIDED] for run, o in outcomes.items() if run.evidence is Evidence.CLASSES)
    yield Check("classes: a NACK takes one pass", one_pass)


def _totals(outcomes: Mapping[Run, EvidenceResult], name: str) -> int:
    """A counter of the runs with losses on spine 0."""
    return sum(getattr(outcome, name) for run, outcome in outcomes.items() if run.loss in (RARE, OFTEN))


def _assumed(size: int) -> tuple[str, ...]:
    def taken(**fields: object) -> str:
        return f"{figures(compose(ThemisSpec.model_validate(fields)))['evidence']:,} B"

    by_class: Sequence[str] = [f"{taken(paths=n, evidence='classes')} for {n} paths" for n in (4, 16, 64)]
    return (
        f"network and flows as in Figure 1, with 2, 4 and 8 spines; {size:,} bytes a node; NIC-SR, timer 1 ms, no "
        "congestion control",
        "spine 0's links lose packets of both directions, the last hop's are those from leaves to hosts",
        f"the queue has {figure_1.QUEUE} PSNs of each connection, 16 of them compared in a pass",
        "passes: of a NACK through the switch; made: NACKs that the switch makes in place of blocked ones; spurious: "
        "retransmissions less losses, most of them after timeouts, which retransmit all packets without an ACK",
        f"evidence of 1,600 connections: a queue of 128 PSNs {taken()}, of {figure_1.QUEUE} "
        f"{taken(queue=figure_1.QUEUE)}; classes {', '.join(by_class)}",
    )


FIGURE_EVIDENCE: Final = Experiment(
    {"small": "8 MiB a node: 24 runs, five minutes", "quick": "2 MiB a node: 24 runs, a minute"},
    perform,
)
