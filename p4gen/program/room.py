"""Refusing a program that is too large for its switch, before a compiler tries for minutes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from p4gen.errors import InputError
from p4gen.families import family_of
from p4gen.families.hardware import Hardware
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.p4.resources import Report, Resources
from p4gen.plugins import answers
from p4gen.program.compose import compose
from p4gen.program.text import render
from p4gen.vocabulary import ProgramSpec


def fitting(spec: ProgramSpec, program: ir.Program) -> tuple[Report, ...]:
    """The estimate for each pipe. Raises ``InputError`` with what is needed and what there is, and the options that
    would do, for a program that cannot fit."""
    reports = spec.architecture.facet(Resources).estimate(program)
    excess = _excess(reports)
    if excess:
        flags = list(_flags(spec))
        text = f"{', '.join(flags[:-1])} or {flags[-1]}" if len(flags) > 1 else "".join(flags)
        raise InputError(excess[0] + (f". Use {text}" if text else ""))
    return reports


def _excess(reports: Iterable[Report]) -> list[str]:
    return [line for report in reports for line in report.excess]


def _flags(spec: ProgramSpec) -> Iterator[str]:
    """For each option that makes the program smaller, the first value with which it fits."""
    family = family_of(spec)
    if not answers(family, Hardware):
        return
    for option in family.facet(Hardware).smaller(spec):
        for flag, other in option:
            text = render(compose(other), line_directives=False).text
            program = compile_text(text, f"{other.program}.p4").program
            if not _excess(other.architecture.facet(Resources).estimate(program)):
                yield flag
                break
