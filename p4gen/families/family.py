"""What a family of programs is: a paper's system, in its own package.

The rest of p4gen knows no family. A package that needs paper-specific knowledge about a program declares
a *facet*: a frozen dataclass of functions and values, next to the code that uses it, generic in the family's own spec
(docs/decisions/0009 says why there). A family provides it in a module of its package (``p4gen.papers.<name>``) that is
named after the facet, as a constant ``FACET``:

=====================  ===========================================  =======================
facet                  asked by                                     a family's answer is in
=====================  ===========================================  =======================
``ProgramParts``       ``p4gen.program`` (every build)              ``program.py``
``Beside``             ``p4gen.program`` (beside another family)    ``beside.py``
``GroupEntries``       ``p4gen.groups``, ``p4gen.manager``          ``control.py``
``Conformance``        ``p4gen.ptf``                                ``conformance.py``
``Traffic``            ``p4gen.difftest``                           ``traffic.py``
``Benchmark``          ``p4gen.bench``                              ``bench.py``
``StateReader``        ``p4gen.net`` (diagnoses)                    ``state.py``
``PacketNotes``        ``p4gen.net`` (ladders)                      ``notes.py``
``Experiments``        ``p4gen.experiments`` (``p4gen paper``)      ``experiments.py``
``Runs``               ``p4gen.net`` (``sim run``)                  ``runs.py``
``ConnectionEntries``  ``p4gen.plan.placement``, ``p4gen.manager``  ``connections.py``
``Verification``       ``p4gen.verification``                       ``verification.py``
``Hardware``           ``p4gen.program`` (what does not fit)        ``hardware.py``
``OwnCollectives``     ``p4gen.manager`` (hosts)                    ``collectives.py``
``LabMembers``         ``p4gen.labs``                               ``lab.py``
``Studies``            ``p4gen.cli.sim``, ``p4gen.labs``            ``studies.py``
=====================  ===========================================  =======================

Only ``program.py`` is required; it may be a package. A small family is in
tests/program/test_families.py. What common templates require of a family is listed in ``p4gen.program.common``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from p4gen.plugins import F, Facet, answers, facet
from p4gen.resources import resource
from p4gen.vocabulary.program import ProgramSpec

OwnSpec = TypeVar("OwnSpec", bound=ProgramSpec)
"""The spec of the family that answers a facet: all functions of one facet take the same."""


@dataclass(frozen=True)
class Family:
    """A family of programs. ``package`` is the Python package with its facets."""

    name: str
    title: str
    """A one-line description for ``--help`` and reports."""
    spec: type[ProgramSpec]
    package: str
    template_folder: Path | None = None
    """The folder of its templates, if not p4gen's own ``templates/<name>``."""
    telling: tuple[str, ...] = ()
    """Fields that a command line always states, even with default values, because they distinguish its programs."""
    modes: tuple[str, ...] = ()
    """Values of its spec's field ``mode`` that tell a spec that names no family to be one of this family."""
    base: Family | None = None
    """The family whose facets it uses if it does not provide its own."""

    @property
    def template_folders(self) -> tuple[tuple[str, Path], ...]:
        """The place of its templates: the first part of their names, and its folder."""
        own = self.name, self.template_folder or resource("templates") / self.name
        return (own, *(self.base.template_folders if self.base else ()))

    def answers(self, kind: type[Facet]) -> bool:
        """Whether this family, or the one that it builds on, has the facet."""
        return answers(self, kind)

    def facet(self, kind: type[F]) -> F:
        """The family's facet; its module is imported only now.

        Raises ``InputError`` if the family does not provide it.
        """
        return facet(self, kind, "family")
