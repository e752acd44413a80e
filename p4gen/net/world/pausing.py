"""Priority flow control of a network (``p4gen.compiled.pausing``): thresholds of its ports, and what came of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from p4gen.compiled.memory import NONE, PRIORITIES
from p4gen.compiled.pausing import PAUSE_BITS
from p4gen.host.transport.clock import SECOND
from p4gen.host.transport.wire import OVERHEAD
from p4gen.net.world.link import OVERRAN, Direction, LinkTraits
from p4gen.vocabulary.topology import Pfc

if TYPE_CHECKING:
    from p4gen.compiled.memory import World


def headroom(traits: LinkTraits, latency: int, frame: int) -> int:
    """The bytes that may arrive over a link after a threshold has been passed, if frames have up to ``frame`` bytes and
    join a queue ``latency`` ps after their arrival: the frame that passed it, those that both ends are sending, two
    pause frames, and what is under way meanwhile."""
    way = traits.bandwidth * (2 * traits.delay + latency) // (8 * SECOND)
    return 3 * (frame + OVERHEAD) + 2 * PAUSE_BITS // 8 + way + 1


class FlowControl:
    """Priority flow control on all links of a network. The directions of a link have successive numbers."""

    def __init__(self, world: World, pfc: Pfc, directions: Mapping[str, Direction], latency: int, frame: int) -> None:
        self._world, self._pfc = world, pfc
        self._directions = list(directions.values())
        self._needed = [headroom(each.traits, latency, frame) for each in self._directions]
        for direction in self._directions:
            output = int(world.directions["output"][direction.number ^ 1])
            for priority in pfc.priorities if output != NONE else ():  # else it leads to a host
                gate = world.gates[output * PRIORITIES + priority]
                gate["xoff"], gate["xon"] = pfc.xoff, pfc.resumes
                gate["limit"] = pfc.xoff + self._headroom(direction)

    def _headroom(self, direction: Direction) -> int:
        needed = self._needed[direction.number]
        return needed if self._pfc.headroom is None else self._pfc.headroom

    def overruns(self, drops: Mapping[tuple[str, str], int]) -> tuple[str, ...]:
        """A line for each port at which packets of lossless priorities were dropped, with the headroom that it
        needs."""
        return tuple(
            f"{direction.dst} has dropped {count:,} packets of lossless priorities from {direction.src}: its headroom "
            f"is {self._headroom(direction):,} bytes, and the link needs {self._needed[direction.number]:,}"
            for direction in self._directions
            if (count := drops.get((direction.name, OVERRAN), 0))
        )

    def circle(self) -> tuple[str, ...]:
        """A line about directions that pause each other in a circle, so that none of them can go on, if there are
        such."""
        graph: dict[int, set[int]] = {}
        for waiting, number in self._waiting():
            graph.setdefault(waiting, set()).add(number)
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            # In the error each has to be before the next one.
            *found, _ = (self._directions[number].name for number in reversed(error.args[1]))
            return (f"no progress: {', '.join(found)} are paused, each because the next one is",)
        return ()

    def _waiting(self) -> Iterator[tuple[int, int]]:
        """Directions that are paused, each with one that is paused and has to send before the first may go on."""
        of = self._world
        paused = of.directions["paused"]
        for direction in self._directions:
            for priority in range(PRIORITIES):
                place = int(of.priorities["first"][direction.number * PRIORITIES + priority])
                while place != NONE:
                    charge = int(of.queued["charge"][place])
                    if charge != NONE:
                        output, before = divmod(int(of.charges["gate"][charge]), PRIORITIES)
                        source = int(of.outputs["value"][output]) ^ 1
                        if paused[direction.number] >> priority & 1 and paused[source] >> before & 1:
                            yield source, direction.number
                    place = int(of.queued["following"][place])
