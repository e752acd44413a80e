"""What a user asks of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic

from p4gen.families import OwnSpec
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.model import EngineName
from p4gen.net.collectives.config import Work
from p4gen.net.world.faults import Faults
from p4gen.vocabulary.topology import TopologySpec


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
