"""What the tests of whole runs share: stars of any size, small programs, one run."""

from __future__ import annotations

import os
from typing import Any

from p4gen.net.collectives.config import Call
from p4gen.net.collectives.simulation import SimConfig, SimResult, Simulation
from p4gen.net.world.faults import Faults, Impairment, Script
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

CASES = int(os.environ.get("P4GEN_SIM_CASES", "25"))
"""A fixed subset by default; P4GEN_SIM_CASES=10000 is the nightly's."""
SMALL = EpicSpec(lanes=8, window=4, message=2, groups=1, fan_in=16, ports=16)


def tiny(**fields: Any) -> EpicSpec:
    """A program with room for anything that tests place, so that few have to be compiled; pipelines of few ports."""
    defaults: dict[str, Any] = {"lanes": 8, "window": 4, "message": 2, "groups": 128, "fan_in": 8, "ports": 8}
    return EpicSpec.model_validate(defaults | fields)


def all_six(ranks: int) -> tuple[Call, ...]:
    """Every collective once, of few packets; roots are not rank 0."""
    return (
        Call(Collective.REDUCE, 200, root=ranks - 1),
        Call(Collective.BROADCAST, 180, root=1),
        Call(Collective.ALLREDUCE, 300),
        Call(Collective.REDUCE_SCATTER, 36 * ranks),
        Call(Collective.BARRIER, 0),
        Call(Collective.ALLGATHER, 20 * ranks),
    )


def star(ranks: int) -> TopologySpec:
    """One switch, ``ranks`` hosts."""
    hosts = [f"h{i}" for i in range(ranks)]
    links = [[host, "s0"] for host in hosts]
    return TopologySpec.model_validate({"name": f"star-{ranks}", "switches": ["s0"], "hosts": hosts, "links": links})


def trouble(**chances: Any) -> Faults:
    """Chances on all links."""
    return Faults((Impairment(**chances),))


def scripted(*texts: str) -> Faults:
    """Scripts."""
    return Faults(scripts=tuple(map(Script.parse, texts)))


def run(ranks: int = 3, **fields: Any) -> SimResult:
    """One run on a star of small programs."""
    defaults: dict[str, Any] = {"topology": star(ranks), "program": SMALL, "size": 512}
    return Simulation(SimConfig(**(defaults | fields))).run()
