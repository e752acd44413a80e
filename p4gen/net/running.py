"""The interface of a running simulation for diagnosis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.commlib import Invocation
from p4gen.net.collectives.config import SimConfig, Work
from p4gen.net.collectives.values import Member
from p4gen.net.world.network import Network
from p4gen.plan.placement.placed import PlacedGroup
from p4gen.vocabulary import CollectiveSpec


@dataclass
class RunningGroup:
    """A group with its ranks' communicators, their input and their calls."""

    STATE: ClassVar = ("invocations",)

    number: int
    work: Work
    placed: PlacedGroup
    communicators: Sequence[Member]
    values: list[list[Array]]
    """Input by call, then by rank."""
    invocations: list[list[Invocation]]
    """Calls made so far, by rank."""
    name: str = ""
    """Prefix of findings about the group; empty when there is only one group."""

    def done(self, rank: int) -> bool:
        """Whether a rank has completed all its calls."""
        mine = self.invocations[rank]
        return len(mine) == len(self.work.calls) and all(i.done for i in mine)


class Running(Protocol):
    """A simulation from the point of view of the diagnosis."""

    config: SimConfig
    spec: CollectiveSpec
    network: Network
    groups: list[RunningGroup]

    def switch_drops(self, name: str) -> Counter[str]:
        """Number of packets that a switch's program dropped, by module and reason."""
        ...
