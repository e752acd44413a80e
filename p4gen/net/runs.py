"""Runs of a family's programs: a family declares the collectives and options of its ranks, and makes the job of an
order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

from p4gen.families import Facet, OwnSpec
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import quote
from p4gen.model import EngineName
from p4gen.net.collectives.config import Work
from p4gen.net.job import Job
from p4gen.net.result import RunResult
from p4gen.net.world.faults import Faults
from p4gen.vocabulary.topology import TopologySpec


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
class RunOrder(Generic[OwnSpec]):
    """A user's order for a run. Times are in ps; None stands for the family's default."""

    topology: TopologySpec
    program: OwnSpec
    """The spec of all switches' programs. The family may fit fields that are not set to the run."""
    collective: str
    size: int | None = None
    """Bytes, as in ``p4gen.net.collectives.config.Call``."""
    repeat: int = 1
    faults: Faults = field(default_factory=Faults)
    seed: int = 1
    recovery: Recovery | None = None
    """The NICs' loss recovery."""
    timeout: int | None = None
    """The NICs' retransmission timer; 0: none."""
    retry_count: int | None = None
    """Timeouts after which a NIC gives up; None: never."""
    dcqcn: DcqcnConfig | None = None
    engine: EngineName = "jit"
    options: Mapping[str, Any] = field(default_factory=dict)
    """The values of the family's own options, all of them."""
    root: int = 0
    """A rank, for families whose runs have one (``Runs.also``)."""
    concurrent: int = 1
    """How many groups of all ranks there are at once; likewise."""
    sync: PsnSync = PsnSync.SUBGROUPS
    """How PSNs are kept synchronised; likewise."""
    groups: tuple[Work, ...] = ()
    """Groups at the same time, each with calls of its own, in place of ``collective``, ``size`` and ``root``; likewise.
    """


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
