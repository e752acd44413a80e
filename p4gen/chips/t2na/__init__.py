"""T2NA, the native architecture of Tofino 2.

It builds on TNA. Actions on registers have more comparisons and results than there. Ports 2 and 6 are not for hosts:
port 2 is the CPU's, and packets that leave by port 6 are recirculated.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from p4gen.chips.tna import ARCHITECTURE as TNA
from p4gen.chips.tna import PIPE_SHIFT, PIPES

ARCHITECTURE = replace(
    TNA,
    name="t2na",
    title="T2NA, the architecture of Tofino 2",
    package=__name__,
    comparisons=4,
    long_branches=True,
    stages=20,
    egress_bytes=0,
    results=(48, 1, "normal containers of 32 bits, the only ones that take results of stateful ALUs"),
    mains=(),
    includes=("core.p4", "t2na.p4"),
    cpu_port=2,
    recirculation_port=6,
    reserved_ports=frozenset(pipe << PIPE_SHIFT | port for pipe in range(PIPES) for port in (2, 6)),
    prelude=Path(__file__).parent / "prelude",
    base=TNA,
)
