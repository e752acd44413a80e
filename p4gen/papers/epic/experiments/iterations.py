"""EPIC's Table 34 (section K.5): the training iteration of four models by flows, at the rates of packets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from p4gen.errors import FailedError
from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report, Value, within
from p4gen.host.transport.clock import SECOND
from p4gen.model import EngineName
from p4gen.net import study
from p4gen.net.collectives.config import Call as SimCall
from p4gen.net.collectives.config import SimConfig, Work
from p4gen.papers.epic import studies
from p4gen.papers.epic.studies.sweep import CONGESTED_TIMEOUT, EPIC_PROGRAM, measure, solving, table_points
from p4gen.papers.epic.studies.tables import M, Solution
from p4gen.plan.flow.fabric import FatTree
from p4gen.plan.flow.jobs import MODELS, Call, Job, Model, training_job
from p4gen.plan.flow.placing import Placing
from p4gen.plan.flow.policies import POLICIES, Volume
from p4gen.plan.flow.simulate import Setting, Simulation
from p4gen.plan.placement.placer import switch_of
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "star-8"
SIZES: Final = {"paper": 16 * M, "quick": 4 * M}
"""Bytes of the AllReduce on packets, by scale."""
FABRIC: Final = FatTree(pods=8, leaves=8, spines=16, cores=8, hosts=16, scale_up=8)
"""1,024 GPUs, which GPT-3 175B takes, in servers of 8."""
SCALE_UP: Final = 1.07e12
"""Bit/s of a GPU in its server's network. The paper does not say it: fitted to EPIC-II's cell of Llama-7B, and nothing
else is fitted."""
ROWS: Final = {Solution.MODE_II: "spatial", Solution.MODE_III: "spatial", Solution.RING: "ring"}
"""The policy of each row: switches have room for all groups."""
PAPER: Final = {
    "gpt-3-175b": (32.35, 32.37, 33.19),
    "gpt-3-13b": (1.154, 1.159, 1.403),
    "llama-65b": (8.831, 8.856, 10.08),
    "llama-7b": (1.132, 1.134, 1.261),
}
"""Seconds: EPIC-II, EPIC-III, ring."""
NEAR: Final = 0.02
"""The relative difference from the paper's times that still holds."""
GAIN: Final = 0.02
"""The same of the ratios of the ring's time to EPIC's."""
REDUCED: Final = Model(layers=4, hidden=256, parameters=8 * M, tokens=256, batch=8, tp=4, dp=4, flops=1e13)
"""A model whose iteration is run as packets, too. It computes about as long as it communicates: 4 MiB of each rank in
the TP groups, and in the DP groups."""
CLOS: Final = "clos:4x4x4"
LEAVES: Final = FatTree(pods=1, leaves=4, spines=4, cores=1, hosts=4)
"""The network of that model, as packets and as flows: TP groups are below a leaf."""
AGREES: Final = 0.05
"""The relative difference of the two iterations that still holds."""


def iteration(model: str, policy: str, bandwidth: float) -> float:
    """Seconds of a model's iteration whose groups have links of ``bandwidth`` bit/s between servers."""
    fabric = replace(FABRIC, bandwidth=bandwidth, scale_up_bandwidth=SCALE_UP)
    return _flows(training_job(model, MODELS[model], iterations=1), policy, fabric, Placing())


def reduced(policy: str, bandwidth: float) -> float:
    """The same of the reduced model."""
    fabric = replace(LEAVES, bandwidth=bandwidth)
    return _flows(training_job("reduced", REDUCED, iterations=1), policy, fabric, Placing(unit=REDUCED.tp))


def _flows(job: Job, policy: str, fabric: FatTree, placing: Placing) -> float:
    return Simulation(Setting(fabric, POLICIES[policy], 1 << 20, Volume(paper=False), placing), [job]).run().mean_jct


def packets(row: str, seed: int, engine: EngineName) -> float:
    """Seconds of the reduced model's iteration whose collectives are packets: those of a phase at the same time, phases
    one after the other. Trees have different spines. Raises ``FailedError`` for a result that is not NumPy's."""
    topology, job = load_topology(CLOS), training_job("reduced", REDUCED, iterations=1)
    seconds = 0.0
    for phase in job.phases:
        called = (SimCall(size=int(phase.volume)),)
        groups = [tuple(topology.rank_hosts[rank] for rank in job.groups[number].ranks) for number in phase.groups]
        above = [len({switch_of(topology, host) for host in hosts}) > 1 for hosts in groups]
        roots = [f"spine{number % LEAVES.spines}" if wide else None for number, wide in enumerate(above)]
        work = tuple(Work(called, hosts, root) for hosts, root in zip(groups, roots, strict=True))
        base = SimConfig(topology, EPIC_PROGRAM, work=work, seed=seed, engine=engine)
        measured = measure(row, replace(solving(Solution(row), base), timeout=CONGESTED_TIMEOUT))
        if measured.problems:
            raise FailedError(*measured.problems)
        seconds += phase.compute + measured.duration / SECOND
    return seconds


def rates(order: Order) -> dict[Solution, float]:
    """Bit/s of payload that a long AllReduce moves over each link, by row. Raises ``FailedError`` if one is wrong."""
    topology = load_topology(NETWORK)
    size = SIZES[order.scale]
    base = SimConfig(topology, EPIC_PROGRAM, size=size, seed=order.seed, engine=order.engine)
    points = [point for point in table_points(25, base, [size]) if point.solution in ROWS]
    found = {}
    for point in study.measure(studies.FACET, points, 1, order):
        if point.problems:
            raise FailedError(*point.problems)
        row, ranks = Solution(point.point.solution), len(topology.rank_hosts)
        moved = Volume(paper=False).factor(Call.ALLREDUCE, ranks, row is not Solution.RING)
        found[row] = point.ours * 1e9 * moved
    return found


def _perform(order: Order) -> Report:
    links = rates(order)
    found = order.run(
        [
            Cell(f"{model}/{row}", iteration, (model, policy, links[row]))
            for model in PAPER
            for row, policy in ROWS.items()
        ]
    )
    rows: list[tuple[Value, ...]] = []
    checks = _reduced(order, links) if order.scale == "paper" else []
    for model, printed in PAPER.items():
        ours = [found[f"{model}/{row}"] for row in ROWS]
        rows += [
            (model, str(row), mine, theirs, mine / theirs, ours[-1] / mine, printed[-1] / theirs)
            for row, mine, theirs in zip(ROWS, ours, printed, strict=True)
        ]
        ratios = [mine / theirs for mine, theirs in zip(ours, printed, strict=True)]
        far = max(abs(ratio - 1) for ratio in ratios)
        checks.append(Check(f"{model}: times are within {NEAR:.0%} of the paper's: {far:.1%}", far <= NEAR))
        apart = max(abs(ratios[-1] / ratio - 1) for ratio in ratios)
        checks.append(Check(f"{model}: gains are within {GAIN:.0%} of the paper's: {apart:.1%}", apart <= GAIN))
    return Report(
        ("model", "row", "ours, s", "paper, s", "ratio", "ring / this", "ring / this: paper"),
        tuple(rows),
        tuple(checks),
        (
            f"links carry what an AllReduce of {SIZES[order.scale] // M} MiB of {NETWORK}'s packets does: "
            + ", ".join(f"{row} {rate / 1e9:.1f}" for row, rate in links.items())
            + " Gb/s",
            f"TP groups are inside servers of 8 GPUs, {SCALE_UP / 1e12:g} Tb/s each, fitted to EPIC-II's Llama-7B",
            f"a reduced model of {REDUCED.tp * REDUCED.dp} GPUs on {CLOS} is run as packets, too; not with the ring: "
            "unicast takes one spine there",
            "models are Table 33's; nothing overlaps; a pipeline of 8 stages takes 55 turns for 48 sequences",
        ),
        {},
    )


def _reduced(order: Order, links: Mapping[Solution, float]) -> list[Check]:
    """Whether an iteration of the reduced model takes as long by packets as by flows."""
    rows = {row: policy for row, policy in ROWS.items() if row is not Solution.RING}
    cells = [Cell(f"packets/{row}", packets, (row, order.seed, order.engine)) for row in rows]
    cells += [Cell(f"flows/{row}", reduced, (policy, links[row])) for row, policy in rows.items()]
    found = order.run(cells)
    return [
        within(
            f"{row}: a reduced model's iteration, its time by packets over that by flows",
            found[f"packets/{row}"] / found[f"flows/{row}"], 1 - AGREES, 1 + AGREES,
        )
        for row in rows
    ]  # fmt: skip


ITERATIONS: Final = Experiment({"paper": "five minutes", "quick": "shorter calls"}, _perform, check="quick")
"""Table 34."""
