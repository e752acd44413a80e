"""The load of EPIC's benchmarks, an AllReduce, and a C loop for comparison."""

from pathlib import Path

from p4gen.bench.workload import Benchmark, Bursts, ByHand, Workload
from p4gen.papers.epic.bench.load import workload
from p4gen.papers.epic.bench.roofline import loop, why_not
from p4gen.papers.epic.spec import EpicSpec


def _by_hand(work: Workload, folder: Path) -> ByHand | str:
    assert isinstance(work, Bursts)
    return why_not(work) or loop(work, folder)


def _workloads(spec: EpicSpec, packets: int, seed: int) -> tuple[Workload, ...]:
    return (workload(spec, packets, seed),)


FACET: Benchmark[EpicSpec] = Benchmark(workloads=_workloads, by_hand=_by_hand)
