"""Groups that make the same calls at the same time, as ``p4gen lab --ranks … --ranks …`` runs them, as flows.

Each group is a job that only communicates. Half of its ranks are under either leaf of a fabric with one spine, so all
groups cross the two links between the leaves and the spine, which limit them.
"""

from __future__ import annotations

from p4gen.plan.flow.fabric import FatTree
from p4gen.plan.flow.jobs import parallel_job
from p4gen.plan.flow.placing import Placing
from p4gen.plan.flow.policies import Policy, Volume
from p4gen.plan.flow.simulate import Result, Setting, Simulation


def together(policy: Policy, *, groups: int, ranks: int, slots: int, calls: int, size: int, bandwidth: int) -> Result:
    """``groups`` of ``ranks`` (an even number) each make ``calls`` AllReduces of ``size`` bytes, on links of
    ``bandwidth`` bit/s, in each direction; ``slots``: groups that a switch serves at the same time."""
    fabric = FatTree(pods=1, leaves=2, spines=1, cores=1, hosts=groups * ranks // 2, bandwidth=bandwidth)
    setting = Setting(fabric, policy, slots, Volume(paper=False), Placing(jobs="spread", unit=1))
    jobs = [parallel_job(f"g{number}", 1, ranks, 0.0, 0.0, float(size), calls) for number in range(groups)]
    return Simulation(setting, jobs).run()
