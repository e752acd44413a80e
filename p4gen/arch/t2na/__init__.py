"""T2NA, the native architecture of Tofino 2.

p4gen reads, checks and runs programs for it, as for TNA. It has no templates yet, so it generates none.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from p4gen.arch.tna import ARCHITECTURE as TNA

ARCHITECTURE = replace(
    TNA,
    name="t2na",
    title="T2NA, the architecture of Tofino 2",
    package=__name__,
    mains=(),
    includes=("core.p4", "t2na.p4"),
    cpu_port=2,
    prelude=Path(__file__).parent / "prelude",
    base=TNA,
)
