"""The tools for TNA's programs: the limits of Tofino, and p4c's back end for it."""

from __future__ import annotations

from p4gen.chips.tna.lint import lint
from p4gen.chips.tna.p4c import OUTPUT, absent, compiling, version
from p4gen.p4.toolchain import Toolchain

FACET = Toolchain(
    lint,
    compile=compiling("tna"),
    version=version("tna"),
    output=OUTPUT,
    absent=absent("tna"),
    accepted="compiles it",
)
