"""The tools for v1model's programs: p4gen's rules, the limits of BMv2, and p4c."""

from __future__ import annotations

from pathlib import Path

from p4gen.p4 import p4c
from p4gen.p4.lint import target
from p4gen.p4.lint.rules import lint
from p4gen.p4.toolchain import Toolchain


def _compile(source: Path) -> tuple[str, p4c.P4cOutput] | None:
    compiler = p4c.find()
    if compiler is None:
        return None
    return p4c.version(compiler), p4c.compile_for_bmv2(compiler, source, source.parent)


FACET = Toolchain(lint, target.check, _compile)
