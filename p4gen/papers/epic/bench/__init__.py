"""The load of EPIC's benchmarks, an AllReduce, and a C loop for comparison."""

from pathlib import Path

from p4gen.bench.workload import Benchmark, Bursts, Workload
from p4gen.papers.epic.bench.load import workload
from p4gen.papers.epic.bench.roofline import Roofline, why_not


def _by_hand(work: Workload, folder: Path) -> Roofline | str:
    assert isinstance(work, Bursts)
    return why_not(work) or Roofline(work, folder)


FACET = Benchmark(workloads=lambda spec, packets, seed: (workload(spec, packets, seed),), by_hand=_by_hand)
