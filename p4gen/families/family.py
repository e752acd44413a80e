"""What a family of programs is: a paper's system, in a package of its own.

The rest of p4gen knows no family. A package that needs to know something of a program that depends on the paper states
its question as a *facet*: a frozen dataclass of functions and values, which stands beside the code that asks. A family
answers in a module of its package that is named after the facet, by a constant ``FACET``:

=====================  =========================================  ================================
facet                  asked by                                   a family's answer is in
=====================  =========================================  ================================
``ProgramParts``       ``p4gen.program`` (every build)            ``program.py``
``GroupEntries``       ``p4gen.groups``, ``p4gen.manager``        ``control.py``
``Conformance``        ``p4gen.ptf``                              ``conformance.py``
``Traffic``            ``p4gen.difftest``                         ``traffic.py``
``Benchmark``          ``p4gen.bench``                            ``bench.py``
``StateReader``        ``p4gen.net`` (diagnoses)                  ``state.py``
``Studies``            ``p4gen.net.sweep``, ``p4gen.lab``         ``studies.py``
=====================  =========================================  ================================

Only ``program.py`` must be there; a package of that name does as well. A small family is in
tests/program/test_families.py. What common templates ask of a family is listed in ``p4gen.program.common``.
"""

from __future__ import annotations

import importlib
import importlib.util
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeVar

from p4gen.errors import Diagnostic, InputError, P4genError, Pos
from p4gen.resources import resource
from p4gen.spec.program import ProgramSpec


@dataclass(frozen=True)
class Facet:
    """A question that some part of p4gen asks of families; ``module`` is where a family's package answers it."""

    module: ClassVar[str]


F = TypeVar("F", bound=Facet)


@dataclass(frozen=True)
class Family:
    """A family of programs. ``package`` is the Python package that its facets are in."""

    name: str
    title: str
    """What it is, in a line: for ``--help`` and reports."""
    spec: type[ProgramSpec]
    package: str
    template_folder: Path | None = None
    """Its templates, where they are not in p4gen's own ``templates/<name>``."""
    telling: tuple[str, ...] = ()
    """Fields that a command line always states, their defaults too, because they tell its programs apart."""
    base: Family | None = None
    """The family whose facets are its own, where it does not answer by itself."""

    @property
    def template_folders(self) -> tuple[tuple[str, Path], ...]:
        """Where its templates are: the first part of their names, and the folder that stands for it."""
        own = self.name, self.template_folder or resource("templates") / self.name
        return (own, *(self.base.template_folders if self.base else ()))

    def answers(self, kind: type[Facet]) -> bool:
        """Whether this family, or the one that it builds on, has the facet."""
        name = f"{self.package}.{kind.module}"
        return importlib.util.find_spec(name) is not None or (self.base is not None and self.base.answers(kind))

    def facet(self, kind: type[F]) -> F:
        """The answer to a question; the module that has it is imported now, and not before.

        Raises ``InputError`` if the family does not answer.
        """
        name = f"{self.package}.{kind.module}"
        place = importlib.util.find_spec(name)
        if place is None:
            if self.base is None:
                raise InputError(f"the family {self.name} has no {kind.module}.py: it does not say {kind.__name__}")
            return self.base.facet(kind)
        try:
            module = importlib.import_module(name)
        except P4genError:
            raise
        except Exception as error:
            raise import_failed(Path(str(place.origin)).parent, error) from error
        found = getattr(module, "FACET", None)
        if not isinstance(found, kind):
            raise InputError(f"{name}.FACET is not a {kind.__name__}")
        return found


def import_failed(folder: Path, error: Exception) -> InputError:
    """What to say of a family in ``folder`` that cannot be imported: the place in it to look at, and why."""
    reason = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    if isinstance(error, SyntaxError) and error.filename:
        where = Pos(error.filename, error.lineno or 1, error.offset or 1)
        return InputError(Diagnostic(where, f"{type(error).__name__}: {error.msg}"))
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if folder in Path(frame.filename).parents]
    if not places:
        return InputError(Diagnostic(str(folder), reason))
    last = places[-1]
    return InputError(Diagnostic(Pos(last.filename, last.lineno or 1, (last.colno or 0) + 1), reason))
