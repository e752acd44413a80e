"""Demands of a TNA or T2NA program that exceed the chip; found before p4c's back end reports them."""

from __future__ import annotations

from itertools import chain

from p4gen.chips.tna.lint import accesses, gateways, operations, parsers, salus, tables
from p4gen.chips.tna.lint.chips import TOFINO, TOFINO2
from p4gen.errors import Diagnostic, Pos
from p4gen.p4 import ir


def lint(program: ir.Program, _pipelines: int = 1) -> list[Diagnostic]:
    """Violations of a limit of the architecture's chip, in the order of positions.

    Every pipe has memories of its own, so the number of pipelines does not matter.
    """
    chip = TOFINO2 if program.arch == "t2na" else TOFINO
    found: dict[tuple[Pos, str], Diagnostic] = {}
    checks = (salus.check, tables.check, gateways.check, operations.check, parsers.check)
    for problem in chain(accesses.check(program), *(check(program, chip) for check in checks)):
        assert isinstance(problem.where, Pos)
        found.setdefault((problem.where, problem.message), problem)
    return [d for _, d in sorted(found.items(), key=lambda item: item[0])]
