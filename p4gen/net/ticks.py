"""Ticks for switches of Mode III. v1model has no timers; these packets stand in for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from p4gen.host.clock import US
from p4gen.manager.placement import PlacedEdge
from p4gen.manager.ticks import PORT, tick
from p4gen.net.loop import EventLoop
from p4gen.net.nodes import SwitchNode
from p4gen.render.manifest import TICK_US

INTERVAL = TICK_US * US
QUIET = 4
"""Rounds in which nothing but ticks has happened; then nothing will, for two ticks start a retransmission."""


class Ticker:
    """Sends a tick for every edge in each interval, spread over it, until nothing comes of them.

    ``wanted`` says whether an edge's context has been used at all: without that, no packet could be sent again.
    ``sent`` counts the packets on all links, lost ones too.
    """

    def __init__(
        self,
        nodes: dict[str, SwitchNode],
        edges: Iterable[PlacedEdge],
        loop: EventLoop,
        wanted: Callable[[str, int], bool],
        sent: Callable[[], int],
        latency: int,
    ) -> None:
        self.rounds = 0
        by_context = groupby(edges, key=lambda placed: (placed.switch, placed.context))
        self._ticks = [(key, nodes[key[0]].port(PORT), [tick(placed) for placed in mine]) for key, mine in by_context]
        self._count = max(1, sum(len(frames) for _, _, frames in self._ticks))
        self._span = max(1, INTERVAL - latency - 1)
        self._loop = loop
        self._wanted = wanted
        self._sent = sent
        self._sent_before = -1
        self._quiet = 0
        loop.at(loop.now + INTERVAL, self._round)

    def _round(self, _: object) -> None:
        loop = self._loop
        sent = self._sent()
        self._quiet = self._quiet + 1 if loop.idle and sent == self._sent_before else 0
        self._sent_before = sent
        if self._quiet > QUIET:
            return
        self.rounds += 1
        number = 0
        for key, deliver, frames in self._ticks:
            wanted = self._wanted(*key)
            for frame in frames:
                if wanted:
                    deliver(loop.now + number * self._span // self._count, frame)
                number += 1
        loop.at(loop.now + INTERVAL, self._round)
