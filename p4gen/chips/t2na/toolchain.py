"""The tools for T2NA's programs: the limits of Tofino 2, and p4c's back end for it."""

from __future__ import annotations

from p4gen.chips.tna.lint import lint
from p4gen.chips.tna.p4c import OUTPUT, absent, compiling, version
from p4gen.p4.toolchain import Toolchain

FACET = Toolchain(
    lint,
    compile=compiling("t2na"),
    version=version("t2na"),
    output=OUTPUT,
    absent=absent("t2na"),
    accepted="compiles it",
)
