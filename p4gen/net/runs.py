"""Runs of a family's programs: a family declares the collectives and options of its ranks, and makes the job of an
order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from p4gen.families import Facet, OwnSpec
from p4gen.inputs import quote

if TYPE_CHECKING:
    from p4gen.net.job import Job
    from p4gen.net.order import RunOrder
    from p4gen.net.result import RunResult


@dataclass(frozen=True)
class FamilyOption:
    """An option that only calls of this family have; its flag is ``--name``."""

    description: str
    default: str
    parse: Callable[[str], Any]
    """The value of a text, which is one of ``values`` if there are any. Raises ``ValueError``."""
    values: tuple[str, ...] = ()
    """All values, if they are few."""

    def read(self, text: str) -> Any:
        """The value of a text. Raises ``ValueError``, which lists the possible values."""
        if self.values and text not in self.values:
            raise ValueError(f"must be one of {', '.join(self.values)}, not {quote(text)}")
        return self.parse(text)


def yes_or_no(description: str, default: str) -> FamilyOption:
    """An option whose value is True or False."""
    return FamilyOption(description, default, lambda text: text == "yes", ("yes", "no"))


@dataclass(frozen=True)
class Runs(Facet, Generic[OwnSpec]):
    """The runs of a family's programs."""

    module: ClassVar[str] = "runs"

    collectives: tuple[str, ...]
    """What ranks can call. The first is the default."""
    make: Callable[[RunOrder[OwnSpec]], Job[Any, RunResult]]
    """Makes the job of an order. Raises ``InputError`` if the program cannot serve the run."""
    options: Mapping[str, FamilyOption] = field(default_factory=dict)
    """The options that its runs alone have, by name, with underscores."""
    also: frozenset[str] = frozenset()
    """The options among ``root``, ``concurrent``, ``sync``, ``calls`` and ``plan`` (of trees) that its runs have."""
