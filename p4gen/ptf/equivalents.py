"""Mutations that change nothing which can be seen, each with the reason, as a family lists them in a YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from p4gen.p4.mutate.mutants import Mutant


@dataclass(frozen=True)
class Equivalent:
    """A mutation, by what it reads like and not by its line; in some ``programs``, or in all that have it."""

    module: str
    before: str
    after: str
    reason: str
    where: str = ""
    number: int = 0
    """Which one of several that read the same; 0: all of them."""
    programs: tuple[str, ...] = ()

    def fits(self, program: str, mutant: Mutant) -> bool:
        """Whether it is about this mutation."""
        return (
            (self.module, self.before, self.after) == (mutant.module, mutant.before, mutant.after)
            and self.where in ("", mutant.where)
            and self.number in (0, mutant.number)
            and (not self.programs or any(program.startswith(name) for name in self.programs))
        )


@dataclass(frozen=True)
class Equivalents:
    """All that are known."""

    listed: tuple[Equivalent, ...]

    def reason(self, program: str, mutant: Mutant) -> str | None:
        """Why nobody can see a mutation; None if that is not known."""
        return next((e.reason for e in self.listed if e.fits(program, mutant)), None)


@cache
def equivalents_in(file: Path | None) -> Equivalents:
    """Those of a file; none without."""
    found = yaml.safe_load(file.read_text(encoding="utf-8")) or [] if file else []
    return Equivalents(tuple(Equivalent(**{**e, "programs": tuple(e.get("programs", ()))}) for e in found))
