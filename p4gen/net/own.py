"""Runs of families whose programs take no part in collectives of IncTrees: a family brings its simulation.

``p4gen sim run`` makes the network's faults of its options, hands them over, and reports how the run has ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from p4gen.families import Facet
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import shown
from p4gen.model import EngineName
from p4gen.net.result import RunResult, counted
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec


@dataclass(frozen=True)
class OwnOption:
    """An option that only runs of this family have; its flag is ``--name``."""

    description: str
    default: str
    parse: Callable[[str], Any]
    """The value of a text, which is one of ``values`` if there are any. Raises ``ValueError``."""
    values: tuple[str, ...] = ()
    """All values, if they are few."""

    def read(self, text: str) -> Any:
        """The value of a text. Raises ``ValueError``, with what it may be."""
        if self.values and text not in self.values:
            raise ValueError(f"must be one of {', '.join(self.values)}, not {shown(text)}")
        return self.parse(text)


def yes_or_no(description: str, default: str) -> OwnOption:
    """An option whose value is True or False."""
    return OwnOption(description, default, lambda text: text == "yes", ("yes", "no"))


@dataclass(frozen=True)
class RunOrder:
    """What a command line asks for."""

    topology: TopologySpec
    program: Any
    """The spec of all switches' programs. The family may fit fields that are not set to the run."""
    collective: str
    size: int | None
    """Bytes, as in ``p4gen.net.collectives.config.Call``; None: the family's default."""
    repeat: int
    faults: Faults
    seed: int
    recovery: Recovery | None
    """The NICs' loss recovery; None: the one that suits the program."""
    timeout: int | None
    """The NICs' retransmission timer, ps; 0: none; None: the one that suits the run."""
    retry_count: int | None
    dcqcn: DcqcnConfig | None
    engine: EngineName
    options: Mapping[str, Any]
    """The values of the family's own options, all of them."""
    root: int = 0
    """A rank, for families whose runs have one (``OwnRuns.also``)."""
    concurrent: int = 1
    """How many groups of all ranks there are at once; likewise."""


@dataclass(frozen=True, kw_only=True)
class FamilyResult(RunResult):
    """How a run has ended. Times are in ps."""

    stuck: tuple[str, ...]
    """Why it did not end; empty if it did."""
    said: tuple[str, ...]
    """What else there is to say, a line each."""
    figures: Mapping[str, float | int | str]
    """The same for ``--json``."""

    @property
    def ended(self) -> bool:
        """Whether all ranks were done."""
        return not self.stuck

    @property
    def ok(self) -> bool:
        """Whether the run ended, and nothing is wrong."""
        return self.ended and not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data."""
        return {"ended": self.ended, "stuck": list(self.stuck)} | dict(self.figures) | super().to_dict()


class OwnRun(Protocol):
    """A run that is ready to begin."""

    @property
    def title(self) -> str:
        """What runs where, as in "dispatch of 64 tokens by each of 8 ranks on leaf-spine"."""
        ...

    @property
    def network(self) -> Network:
        """What it runs on."""
        ...

    @property
    def programs(self) -> Mapping[str, ProgramSpec]:
        """Those of the switches, by name."""
        ...

    def run(self, progress: Callable[[int, int], None] | None = None) -> FamilyResult:
        """Run until all ranks are done, or nothing more happens. ``progress`` is told how much of how much is done."""
        ...


@dataclass(frozen=True)
class OwnRuns(Facet):
    """The runs of a family."""

    module: ClassVar[str] = "runs"

    collectives: tuple[str, ...]
    """What ranks can call. The first is the default."""
    options: Mapping[str, OwnOption]
    """By name, with underscores."""
    make: Callable[[RunOrder], OwnRun]
    """Raises ``InputError`` if the program cannot serve the run."""
    also: frozenset[str] = frozenset()
    """Options of collectives of IncTrees that its runs have too: ``root``, ``concurrent``."""


def outcome(
    network: Network,
    pairs: Iterable[QueuePair],
    drops: Counter[str],
    duration: int,
    *,
    errors: Iterable[str] = (),
    stuck: Iterable[str] = (),
    said: Iterable[str] = (),
    figures: Mapping[str, float | int | str] | None = None,
) -> FamilyResult:
    """How a run on a network has ended: with what links and the hosts' connections have counted."""
    return FamilyResult(
        errors=tuple(errors),
        stuck=tuple(stuck),
        said=tuple(said),
        figures=dict(figures or {}),
        **counted(network, pairs, drops, duration),
    )
