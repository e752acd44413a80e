"""Groups that are running: their ranks as tasks, and the interface of their job for diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.commlib import Invocation
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.values import Member, invoke
from p4gen.net.world.network import Network
from p4gen.plan.placement.placed import PlacedGroup
from p4gen.vocabulary import CollectiveSpec


class RankTask:
    """A rank of a group, which makes its calls one after the other (``p4gen.net.job.Task``)."""

    STATE: ClassVar = ("made",)

    def __init__(self, name: str, member: Member, calls: Sequence[Call], values: Sequence[Array]) -> None:
        self.name = name
        self.member = member
        self.made: list[Invocation] = []
        """The calls made so far."""
        self.values = list(values)
        """Input by call."""
        self._calls = calls

    def start(self) -> None:
        """Make all calls, one after the other; they run in this order."""
        self.made += [invoke(self.member, call, values) for call, values in zip(self._calls, self.values, strict=True)]

    @property
    def done(self) -> bool:
        """Whether all calls have ended."""
        return len(self.made) == len(self._calls) and all(call.done for call in self.made)

    @property
    def problem(self) -> str:
        """The error of a call that has failed; "" if none has."""
        return next((call.error for call in self.made if call.error), "")

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        return {"calls": self, **self.member.parts()}


@dataclass(frozen=True)
class RunningGroup:
    """A running group: its place in the network, its work, and its ranks."""

    number: int
    work: Work
    placed: PlacedGroup
    ranks: Sequence[RankTask]
    name: str = ""
    """Prefix of findings about the group; empty when there is only one group."""

    @property
    def communicators(self) -> Sequence[Member]:
        """The ranks' members, by rank."""
        return [rank.member for rank in self.ranks]

    @property
    def values(self) -> list[list[Array]]:
        """Input by call, then by rank."""
        return [[rank.values[number] for rank in self.ranks] for number in range(len(self.work.calls))]


class Running(Protocol):
    """A simulation of groups, as the diagnosis sees it."""

    config: SimConfig
    spec: CollectiveSpec
    network: Network
    groups: list[RunningGroup]

    def switch_drops(self, name: str) -> Counter[str]:
        """Number of packets that a switch's program dropped, by module and reason."""
        ...
