"""The result of a run on a virtual network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from p4gen.host.transport.clock import NS, SECOND, duration_text

if TYPE_CHECKING:
    from p4gen.net.world.link import Direction

MEMORY_RIGHT: Final = "every rank's results and memory are as NumPy says"
"""The verdict on runs that compare ranks' memory, byte by byte."""


@dataclass(frozen=True)
class LinkUse:
    """Use of one direction of a link in a run."""

    name: str
    packets: int
    bytes: int
    utilisation: float
    """Share of the run's time in which the transmitter was busy."""
    marked: int
    pauses: int = 0
    """How often the receiver has paused a priority."""
    paused: float = 0.0
    """Share of the run's time in which some priority was paused."""


def link_uses(directions: Iterable[Direction], duration: int, now: int) -> tuple[LinkUse, ...]:
    """The use of links in the ``duration`` ps before ``now``."""
    span = max(duration, NS)
    return tuple(
        LinkUse(d.name, d.packets, d.bytes, d.busy / span, d.marked, d.pauses, d.paused(now) / span) for d in directions
    )


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The end of a run, and its counters. Times are in ps."""

    errors: tuple[str, ...]
    """Errors that ranks reported, and wrong results and memories."""
    stuck: tuple[str, ...] = ()
    """Why the run did not end, a line each; empty if it did."""
    lines: tuple[str, ...] = ()
    """Lines of a report beside the counters."""
    verdict: str = ""
    """The line of a report if nothing is wrong."""
    values: Mapping[str, float | int | str | bool | None] = field(default_factory=dict)
    """Values that only runs of this kind have, by name."""
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
    events: int
    overruns: tuple[str, ...] = ()
    """Ports that have dropped packets of lossless priorities, as their headroom is too small; a line each."""
    silent: tuple[str, ...] = ()
    """Scripts that dropped nothing, with the number of packets of their kind."""

    @property
    def ended(self) -> bool:
        """Whether all tasks were done."""
        return not self.stuck

    @property
    def ok(self) -> bool:
        """Whether the run ended, and nothing is wrong."""
        return self.ended and not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data: what ``p4gen sim run --json`` prints. Times are in seconds."""
        return dict(self.values) | {
            "ended": self.ended,
            "stuck": list(self.stuck),
            "errors": list(self.errors),
            "seconds": self.duration / SECOND,
            "sent": self.sent,
            "resent": self.resent,
            "timeouts": self.timeouts,
            "naks": self.naks,
            "cnps": self.cnps,
            "packet_hops": self.packet_hops,
            "drops": dict(self.drops.most_common()),
            "overruns": list(self.overruns),
            "links": {
                link.name: {
                    "packets": link.packets,
                    "utilisation": link.utilisation,
                    "pauses": link.pauses,
                    "paused": link.paused,
                }
                for link in self.links
            },
            "silent_scripts": list(self.silent),
        }


def ending(duration: int, calls: int, stuck: object) -> tuple[str, ...]:
    """The line about the mean time of one of ``calls`` calls; none if the run is ``stuck``."""
    return () if stuck else (f"completion time {duration_text(duration // calls)}",)
