"""The papers: all tables and figures of each, how far p4gen repeats them, and by which experiments."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from p4gen.errors import InputError
from p4gen.experiments.experiment import Experiment, Experiments
from p4gen.families import families
from p4gen.inputs import quote

HOME: Final = "p4gen.papers"
LIST: Final = "paper.toml"
"""The file in a paper's folder with its title and its items."""


class Extent(StrEnum):
    """How far an item is repeated."""

    WHOLE = "whole"
    PARTIAL = "partial"
    OPEN = "open"
    """It could be, and is not."""
    HARDWARE = "hardware"
    """It needs the paper's machines, switches or chips: not ours. There may be a model of it."""
    CONCEPT = "concept"
    """A drawing, a notation, a survey: there is nothing to repeat."""
    BESIDE = "beside"
    """No table or figure of the paper, but a statement of it, or a question that it leaves open."""


@dataclass(frozen=True)
class Item:
    """A table, figure or statement of a paper."""

    name: str
    """Such as ``table-31``."""
    section: str
    caption: str
    extent: Extent
    why: str = ""
    """What is missing, or what it would take."""
    by: str = ""
    """The experiment that repeats it, or a command of p4gen, if it is not the one of its own name."""

    @property
    def title(self) -> str:
        """The name as a heading has it: ``Table 31``."""
        kind, _, number = self.name.partition("-")
        return f"{kind.capitalize()} {number}" if kind in ("table", "figure") else self.name.capitalize()

    @property
    def told(self) -> str:
        """How far it is repeated, and why no further."""
        return self.extent.capitalize() + (f": {self.why}" if self.why else "")


@dataclass(frozen=True)
class Paper:
    """A paper with its items, and the experiments by name."""

    title: str
    """The system that it is about, a colon, and the rest of the paper's title."""
    item: tuple[Item, ...]
    experiments: Mapping[str, Experiment]

    @property
    def short(self) -> str:
        """The system that it is about."""
        return self.title.partition(":")[0]

    def experiment(self, name: str) -> tuple[Item, Experiment]:
        """The item of this name, and the experiment that repeats it. Raises ``InputError`` if there is none."""
        for item in self.item:
            if item.name == name:
                found = self.experiments.get(item.by or name)
                if found is None:
                    how = f"run: {item.by}" if item.by else ": ".join(filter(None, (item.extent, item.why)))
                    raise InputError(f"{name}, {item.caption}: {how}")
                return item, found
        there = (item.name for item in self.item if (item.by or item.name) in self.experiments)
        raise InputError(f"there is no {quote(name)} in the paper on {self.short}; there are {', '.join(there)}")


@dataclass(frozen=True)
class _Listed:
    """The form of ``LIST``."""

    title: str
    item: tuple[Item, ...]


def papers() -> dict[str, Paper]:
    """All papers by name: p4gen's own, and those of families that have experiments.

    Raises ``InputError`` for a list that is wrong.
    """
    return {name: _paper(package) for name, package in _packages()}


def paper_named(name: str) -> Paper:
    """One of the papers. Raises ``InputError`` if there is none of this name."""
    packages = dict(_packages())
    if name not in packages:
        raise InputError(f"there is no paper {quote(name)}; there are {', '.join(packages)}")
    return _paper(packages[name])


def _packages() -> Iterator[tuple[str, str]]:
    """The names of papers, and of their packages."""
    home = importlib.import_module(HOME).__path__
    own = [(found.name, f"{HOME}.{found.name}") for found in pkgutil.iter_modules(home)]
    others = [(name, family.package) for name, family in families().items() if (name, family.package) not in own]
    for name, package in (*own, *others):
        if importlib.util.find_spec(f"{package}.{Experiments.module}") is not None:
            yield name, package


def _paper(package: str) -> Paper:
    module = importlib.import_module(f"{package}.{Experiments.module}")
    facet: Experiments = module.FACET
    file = Path(str(importlib.import_module(package).__file__)).parent / LIST
    try:
        listed = TypeAdapter(_Listed).validate_python(tomllib.loads(file.read_text(encoding="utf-8")))
    except (OSError, tomllib.TOMLDecodeError, ValidationError) as error:
        raise InputError(f"{file}: {error}") from error
    return Paper(listed.title, listed.item, facet.experiments)
