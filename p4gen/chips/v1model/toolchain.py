"""The tools for v1model's programs: p4gen's rules, the limits of BMv2, and p4c."""

from __future__ import annotations

from p4gen.chips.v1model.lint import target
from p4gen.p4 import p4c
from p4gen.p4.lint.rules import lint
from p4gen.p4.toolchain import Toolchain


def _compile(call: p4c.CompilerCall) -> tuple[str, p4c.P4cOutput] | None:
    compiler = p4c.find()
    if compiler is None:
        return None
    made = p4c.compile_for_bmv2(compiler, call.source, call.out, timeout_s=call.timeout_s, arguments=call.arguments)
    return p4c.version(compiler), made


FACET = Toolchain(
    lint,
    target.check,
    _compile,
    absent=f"{p4c.COMPILER} is not on PATH: no BMv2 JSON, no second opinion (see p4gen doctor)",
    accepted="accepts it without a warning; its P4Info is the same as ours",
)
