"""The facet of families whose hosts have a protocol of their own for collectives, in place of CommLib's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic

from p4gen.families import Facet, OwnSpec, family_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import GroupConfig
from p4gen.host.transport.nic import VerbsNic
from p4gen.manager.api import RankConfig
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class OwnCollectives(Facet, Generic[OwnSpec]):
    """What a rank of a group is on a host's NIC."""

    module: ClassVar[str] = "collectives"

    program: Callable[[OwnSpec, RankConfig], GroupConfig]
    """Which calls the program can make."""
    make: Callable[[OwnSpec, VerbsNic, RankConfig, int, Callable[[Invocation], None]], Collectives]
    """The rank, with a timer of as many ps; it gives back every call that has ended. Raises ``InputError`` for a NIC
    with which that is not possible."""


def own_collectives(spec: ProgramSpec) -> OwnCollectives[Any] | None:
    """The facet of a spec's family; None if it has none."""
    family = family_of(spec)
    return family.facet(OwnCollectives) if family.answers(OwnCollectives) else None
