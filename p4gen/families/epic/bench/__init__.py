"""The load of EPIC's benchmarks, an AllReduce, and a C loop for comparison."""

from pathlib import Path

from p4gen.bench.workload import Benchmark, Workload
from p4gen.families.epic.bench.load import workload
from p4gen.families.epic.bench.roofline import Roofline, why_not


def _by_hand(work: Workload, folder: Path) -> Roofline | str:
    return why_not(work) or Roofline(work, folder)


FACET = Benchmark(workload=workload, absorbed="ReplicateData_absorbed", by_hand=_by_hand)
