"""A run while it lasts, as whatever examines it sees it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.commlib import Invocation
from p4gen.net.config import SimConfig, Work
from p4gen.net.network import Network
from p4gen.net.values import Member
from p4gen.placement.placed import PlacedGroup
from p4gen.spec import CollectiveSpec


@dataclass
class RunningGroup:
    """A group, its ranks' communicators, and what they are given and have called."""

    STATE: ClassVar = ("invocations",)

    number: int
    work: Work
    placed: PlacedGroup
    communicators: Sequence[Member]
    values: list[list[Array]]
    """By call, then by rank."""
    invocations: list[list[Invocation]]
    """By rank, as far as they are made."""
    name: str = ""
    """What its findings begin with; nothing when there is one group only."""

    def done(self, rank: int) -> bool:
        """Whether a rank is through with its calls."""
        mine = self.invocations[rank]
        return len(mine) == len(self.work.calls) and all(i.done for i in mine)


class Running(Protocol):
    """A simulation, as a diagnosis reads it."""

    config: SimConfig
    spec: CollectiveSpec
    network: Network
    groups: list[RunningGroup]

    def switch_drops(self, name: str) -> Counter[str]:
        """Packets that a switch's program took out, by module and reason."""
        ...
