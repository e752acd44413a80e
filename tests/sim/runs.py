"""What the tests of whole runs share: stars of any size, small programs, one run."""

from __future__ import annotations

from typing import Any

from p4gen.net.faults import Faults, Impairment, Script
from p4gen.net.simulation import SimConfig, SimResult, Simulation
from p4gen.spec import ProgramSpec
from p4gen.spec.topology import TopologySpec

SMALL = ProgramSpec(lanes=8, window=4, message=2, groups=1, fan_in=16, ports=16)


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
