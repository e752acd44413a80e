"""What every run on a virtual network has counted when it ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from p4gen.host.transport.clock import NS, SECOND
from p4gen.host.transport.rc import QueuePair
from p4gen.net.world.network import Network


@dataclass(frozen=True)
class LinkUse:
    """Use of one direction of a link in a run."""

    name: str
    packets: int
    bytes: int
    utilisation: float
    """Share of the run's time in which the transmitter was busy."""
    marked: int


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The packets of a run, and what is wrong. Times are in ps."""

    errors: tuple[str, ...]
    """Errors that ranks reported, and wrong results and memories."""
    duration: int
    """Time from the first rank's start to the last one's end."""
    sent: int
    resent: int
    timeouts: int
    naks: int
    cnps: int
    drops: Counter[str] = field(repr=False)
    """Number of drops by ``where module.reason``. Contributions that stay in their slots are not drops."""
    links: tuple[LinkUse, ...] = field(repr=False)
    packet_hops: int
    """Number of packets sent, counted on every link."""
    silent: tuple[str, ...] = ()
    """Scripts that dropped nothing, with the number of packets of their kind."""

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data: what ``p4gen sim run --json`` prints. Times are in seconds."""
        return {
            "errors": list(self.errors),
            "seconds": self.duration / SECOND,
            "sent": self.sent,
            "resent": self.resent,
            "timeouts": self.timeouts,
            "naks": self.naks,
            "cnps": self.cnps,
            "packet_hops": self.packet_hops,
            "drops": dict(self.drops.most_common()),
            "links": {link.name: {"packets": link.packets, "utilisation": link.utilisation} for link in self.links},
            "silent_scripts": list(self.silent),
        }


def counted(network: Network, pairs: Iterable[QueuePair], drops: Counter[str], duration: int) -> dict[str, Any]:
    """The fields of ``RunResult`` that links and the hosts' connections have counted."""
    senders = [pair.requester.stats for pair in pairs]
    span = max(duration, NS)
    return {
        "duration": duration,
        "sent": sum(s.sent for s in senders),
        "resent": sum(s.resent for s in senders),
        "timeouts": sum(s.timeouts for s in senders),
        "naks": sum(s.naks for s in senders),
        "cnps": sum(s.cnps for s in senders),
        "drops": drops,
        "links": tuple(
            LinkUse(d.name, d.packets, d.bytes, d.busy / span, d.marked) for d in network.directions.values()
        ),
        "packet_hops": sum(d.packets for d in network.directions.values()),
        "silent": network.silent_scripts(),
    }
