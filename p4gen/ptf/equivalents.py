"""Mutations that cause no observable change, each with the reason; a family lists them in a YAML file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from p4gen.p4.mutate.mutants import Mutant


@dataclass(frozen=True)
class Equivalent:
    """An equivalent mutation, identified by its text, not its line; in the listed ``programs``, or in all."""

    module: str
    before: str
    after: str
    reason: str
    where: str = ""
    number: int = 0
    """Its number among mutations with the same text, from 1; 0: all of them."""
    programs: tuple[str, ...] = ()

    def fits(self, program: str, mutant: Mutant) -> bool:
        """Whether it describes this mutation."""
        return (
            (self.module, self.before, self.after) == (mutant.module, mutant.before, mutant.after)
            and self.where in ("", mutant.where)
            and self.number in (0, mutant.number)
            and (not self.programs or any(program.startswith(name) for name in self.programs))
        )


@dataclass(frozen=True)
class Equivalents:
    """All known equivalent mutations."""

    listed: tuple[Equivalent, ...]

    def reason(self, program: str, mutant: Mutant) -> str | None:
        """Why a mutation causes no observable change; None if it is not known to be equivalent."""
        return next((e.reason for e in self.listed if e.fits(program, mutant)), None)


@cache
def equivalents_in(*files: Path) -> Equivalents:
    """The equivalent mutations that files list."""
    found = [each for file in files for each in yaml.safe_load(file.read_text(encoding="utf-8")) or []]
    return Equivalents(tuple(Equivalent(**{**e, "programs": tuple(e.get("programs", ()))}) for e in found))
