"""Ticks for switches of Mode III. v1model has no timers; these packets stand in for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import TYPE_CHECKING, ClassVar

from p4gen.groups.group import PlacedEdge
from p4gen.groups.ticks import UNIT_S, tick
from p4gen.host.transport.clock import SECOND, US
from p4gen.net.world.loop import Loop
from p4gen.vocabulary.ticks import EVERY_US

if TYPE_CHECKING:
    from p4gen.net.world.nodes import SwitchNode

INTERVAL = EVERY_US * US
UNIT = round(UNIT_S * SECOND)
"""The unit of time in ticks and in switches' timers, ps."""
QUIET = 4
"""Number of rounds with nothing but ticks after which the ticker stops, unless a timer of a switch runs."""
STRETCH = 12
"""While there is nothing but ticks, each round comes later than the one before and counts for as many intervals: at
most 2 to this power."""


class Ticker:
    """Sends a tick for every edge in each interval, evenly spread, until ticks have no more effect.

    ``wanted`` says whether an edge's context has been used at all; if not, there is nothing to retransmit. ``waits`` is
    how long a timer of the switches waits, 0 if none runs. ``sent`` counts the packets on all links, including lost
    ones. ``port`` is where ticks arrive at a switch.
    """

    STATE: ClassVar = ("rounds", "_stretch", "_sent_before", "_quiet", "_stopped")

    def __init__(
        self,
        nodes: dict[str, SwitchNode],
        edges: Iterable[PlacedEdge],
        loop: Loop,
        wanted: Callable[[str, int], bool],
        waits: Callable[[], int],
        sent: Callable[[], int],
        latency: int,
        port: int,
    ) -> None:
        self.rounds = 0
        by_context = groupby(edges, key=lambda placed: (placed.switch, placed.context))
        self._ticks = [(key, nodes[key[0]].port(port), list(mine)) for key, mine in by_context]
        self._count = max(1, sum(len(mine) for _, _, mine in self._ticks))
        self._frames: dict[tuple[int, int], bytes] = {}
        """Tick frames, by edge number and stretch."""
        self._stretch = 0
        """The last round was 2 to this power intervals ago."""
        self._span = max(1, INTERVAL - latency - 1)
        self._loop = loop
        self._wanted = wanted
        self._waits = waits
        self._sent = sent
        self._sent_before = -1
        self._quiet = 0
        self._stopped = False
        loop.at(loop.now + INTERVAL, self._round)

    def wake(self) -> None:
        """Start again, if ticks have stopped: tasks that begin now have losses of their own."""
        if self._stopped:
            self._stopped = False
            self._quiet = self._stretch = 0
            self._loop.at(self._loop.now + INTERVAL, self._round)

    def _round(self, _: object) -> None:
        loop = self._loop
        sent = self._sent()
        self._quiet = self._quiet + 1 if loop.idle and sent == self._sent_before else 0
        self._sent_before = sent
        if self._quiet > QUIET and not self._waits():
            self._stopped = True
            return
        self.rounds += 1
        number = 0
        for key, deliver, edges in self._ticks:
            wanted = self._wanted(*key)
            for placed in edges:
                if wanted:
                    deliver(loop.now + number * self._span // self._count, self._frame(number, placed))
                number += 1
        self._stretch = min(max(0, self._quiet - QUIET), STRETCH)
        loop.at(loop.now + (INTERVAL << self._stretch), self._round)

    def _frame(self, number: int, placed: PlacedEdge) -> bytes:
        key = number, self._stretch
        frame = self._frames.get(key)
        if frame is None:
            frame = self._frames[key] = tick(placed, (EVERY_US << self._stretch) / 1e6)
        return frame
