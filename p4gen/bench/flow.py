"""How the time of the flow simulator grows with jobs and with hosts: Trace1's mix on fat trees of 1 to 8 pods.

More jobs run on the same fabric. With more hosts, jobs are submitted more often. So the load of a host is always the
same.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from p4gen.plan.flow.fabric import FatTree
from p4gen.plan.flow.simulate import Simulation
from p4gen.plan.flow.workload import load_workload

_POD_HOSTS = 256
_PODS = 8
"""Pods of the paper's fabric."""


@dataclass(frozen=True)
class FlowCost:
    """The cost of one simulation; seconds are of processor time."""

    hosts: int
    jobs: int
    policy: str
    events: int
    cpu: float


def measure_flow(jobs: int, pods: int, policy: str, seed: int) -> FlowCost:
    """Simulate ``jobs`` jobs of Trace1 on ``pods`` pods of 256 hosts, and time the simulation."""
    workload = load_workload("trace1")
    trace = workload.fields.trace
    assert trace is not None
    drawn = list(trace.model_copy(update={"jobs": jobs, "every": trace.every * _PODS / pods}).drawn(seed))
    fabric = FatTree(pods, 16, 16, 8, 16)
    simulation = Simulation(workload.setting(policy, seed, fabric=fabric), drawn)
    began = time.process_time()
    result = simulation.run()
    return FlowCost(pods * _POD_HOSTS, jobs, policy, result.events, time.process_time() - began)
