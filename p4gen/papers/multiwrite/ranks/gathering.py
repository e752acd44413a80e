"""AllGather in two domains of four NPUs on a full mesh of eight (sections 3.1 and 5.2, Figures 2, 6 and 7).

Links between the domains are idle unless NPUs of the other domain relay: the partner alone (paired relaying), or all
four. A share x of a fragment goes straight, the rest past the relays, so that both ends meet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from p4gen.errors import FailedError
from p4gen.host.transport.clock import MS
from p4gen.model import EngineName
from p4gen.papers.multiwrite.ranks.options import Relay
from p4gen.papers.multiwrite.ranks.relaying import Rank, Relayed, Scheme
from p4gen.papers.multiwrite.simulation import WriteConfig, WriteSimulation
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.topology import load_topology

NETWORK: Final = "mesh-8"
DOMAIN: Final = 4
"""NPUs of a domain (TP 4)."""
LINK: Final = 56_000_000_000
"""Bytes a second of a link between NPUs (section 6.1)."""
RELAY: Final = 24_000_000_000
"""Bytes a second that a relay's CPU forwards, by which the paper's MultiWrite takes 0.70 of direct writes."""
_TIMEOUT: Final = 50 * MS
"""The NICs' timer: nothing is lost, and so none expires."""


@dataclass(frozen=True)
class Way:
    """A way to gather, and its duration by the paper's model."""

    name: str
    scheme: Scheme
    factor: float
    """Duration by the paper's model, in fragments a link: s/w of direct writes is 1."""


def _way(name: str, factor: float, relay: Relay = Relay.NONE, *, unicast: bool = False) -> Way:
    return Way(name, Scheme.balanced(DOMAIN, relay, LINK, unicast=unicast, rate=RELAY), factor)


DIRECT: Final = _way("direct", 1, unicast=True)
UNICAST: Final = _way("unicast multi-path, paired relays", 3 / 4, Relay.PAIRED, unicast=True)
MULTIWRITE: Final = _way("MultiWrite, paired relays", 1 / 2, Relay.PAIRED)
IN_HOSTS: Final = _way("MultiWrite, paired relays in hosts", 7 / 10, Relay.HOST)
FULL_UNICAST: Final = _way("unicast multi-path, four relays", 3 / 5, Relay.FULL, unicast=True)
FULL: Final = _way("MultiWrite, four relays", 1 / 2, Relay.FULL)
WAYS: Final = (DIRECT, UNICAST, MULTIWRITE, IN_HOSTS, FULL_UNICAST, FULL)


def program() -> MultiwriteSpec:
    """The program of the NPUs' switches."""
    return MultiwriteSpec(payload=4096, contexts=64, edges=8, slots=128, ports=8)


def gather(way: Way, packets: int, engine: EngineName = "jit") -> int:
    """The duration of an AllGather of fragments of so many packets, ps. Every byte of the results is checked.

    Raises ``FailedError`` if a rank has anything else than the fragments of its domain.
    """
    spec, topology, size = program(), load_topology(NETWORK), packets * program().payload
    layers = way.scheme.layers(topology, size, spec.payload)
    simulation = WriteSimulation(WriteConfig(topology, spec, layers, timeout=_TIMEOUT, engine=engine))
    ranks = [Rank(members, simulation.network.loop) for members in zip(*simulation.layers, strict=True)]
    words = np.arange(len(ranks))[:, None] << 24 | np.arange(size // 4)
    call = Relayed(words.astype(">u4").view(np.uint8), way.scheme, spec.payload)
    simulation.drive(ranks, [call.start])
    if lost := simulation.drops():
        raise FailedError(f"{way.name}: packets are lost: {dict(lost)}")
    for rank in ranks:
        if problem := call.problem(rank):
            raise FailedError(f"{way.name}, rank {rank.rank}: {problem}")
    return max(rank.fenced for rank in ranks)
