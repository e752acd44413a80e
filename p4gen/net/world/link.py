"""One direction of a link: a queue, a transmitter and a wire, which compiled code runs (``p4gen.compiled.links``)."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Final

from p4gen.compiled import links
from p4gen.compiled.memory import NEVER, NONE, Ask
from p4gen.host.compiled.hosts import Method
from p4gen.host.compiled.records import Frames, column
from p4gen.host.transport.clock import SECOND
from p4gen.net.world.faults import DirectionFaults
from p4gen.net.world.watching import Passage, Watcher
from p4gen.vocabulary.topology import Buffer, Ecn

OVERRAN: Final = "headroom_full"
"""Why a packet of a lossless priority was dropped."""
Frame = bytes
"""Directions have an attribute ``bytes``."""


@dataclass(frozen=True)
class LinkTraits:
    """The properties of a direction, in bit/s, ps and bytes."""

    bandwidth: int
    delay: int
    queue: int
    ecn: Ecn | None = None


class Direction:
    """A link's direction from ``src`` to ``dst``: record ``number`` of a world.

    The queue is not a list of packets. The transmitter is busy until ``busy_until``, which determines the length of the
    queue; so a packet needs only one event.
    """

    STATE: ClassVar[tuple[str, ...]] = ()

    packets: int = column("packets")
    bytes: int = column("bytes")
    """Bytes sent, including the overhead on the wire."""
    busy_until: int = column("busy_until")
    busy: int = column("busy")
    """Time spent transmitting."""
    marked: int = column("marked")
    controlled: int = column("controlled")
    """Whether priorities have queues of their own (``control``)."""
    pauses: int = column("pauses")
    """How often the receiver has paused a priority."""

    def __init__(
        self,
        frames: Frames,
        number: int,
        src: str,
        dst: str,
        traits: LinkTraits,
        faults: DirectionFaults | None,
        seed: str,
    ) -> None:
        self._frames, self.number = frames, number
        self._row = row = frames.world.directions[number]
        self.src, self.dst, self.traits = src, dst, traits
        self.faults = faults
        self.watcher: Watcher | None = None
        self.on_drop: Callable[[Passage], None] | None = None
        row["bandwidth"], row["delay"] = traits.bandwidth, traits.delay
        row["room"] = traits.queue * 8 * SECOND // traits.bandwidth
        row["buffer"], row["marks_from"] = NONE, NEVER
        row["host"] = row["output"] = row["leaving"] = NONE
        if (ecn := traits.ecn) is not None:
            row["marks_from"] = (ecn.low + 1) * 8 * SECOND // traits.bandwidth
            row["low"], row["high"], row["share"] = ecn.low, ecn.high, ecn.share
            row["key"] = random.Random(seed).getrandbits(63)  # noqa: S311 - a simulation, to be repeatable

    def join(self, to: int, port: int | None) -> None:
        """The direction ends at host ``to``, or at a port of switch ``to``."""
        self._row["to_switch"], self._row["to"] = port is not None, to
        self._row["port"] = port or 0

    def share(self, switch: int, limits: Buffer) -> None:
        """The queue shares the memory of a switch."""
        memory = self._frames.world.buffers[switch]
        self._row["buffer"], self._row["next_of_buffer"] = switch, memory["first"]
        memory["size"], memory["alpha"], memory["first"] = limits.size, limits.alpha, self.number
        memory["bandwidth"] += self.traits.bandwidth

    def control(self, *, host: int = NONE, output: int = NONE) -> None:
        """Give each priority a queue of its own, which the receiver may pause. The direction leads from a host, or from
        an output of a switch."""
        row = self._row
        row["controlled"], row["host"], row["output"], row["queue"] = True, host, output, self.traits.queue

    def prepare(self) -> None:
        """Tell compiled code what it has to ask for."""
        self._row["faults"] = self.faults is not None
        self._row["watched"] = self.watcher is not None

    @property
    def name(self) -> str:
        """The name of the direction: ``src>dst``."""
        return f"{self.src}>{self.dst}"

    def backlog(self, at: int) -> int:
        """Bytes that wait or are being sent at ``at``."""
        sending = max(0, self.busy_until - at) * self.traits.bandwidth // (8 * SECOND)
        return int(self._row["waiting"]) + sending

    def paused(self, now: int) -> int:
        """For how long some priority was paused until ``now``, ps."""
        row = self._row
        return int(row["paused_for"]) + (now - int(row["paused_since"]) if row["paused"] else 0)

    def transmit(self, frame: Frame, at: int) -> int:
        """Queue a frame at time ``at``, which is not before now. Returns when the line is free again."""
        return links.transmit(self._frames.world.place, self.number, self._frames.put(frame), at)

    # --- what compiled code asks for ---

    def pass_frame(self, frame: int, sent: int) -> int:
        """Apply the direction's faults to a frame, and deliver what arrives."""
        assert self.faults is not None
        arrival = self.busy_until + self.traits.delay
        contents = self._frames.get(frame)
        fate = self.faults.fate(contents, sent)
        if not fate.copies:
            self._lose(contents, sent, fate.reason)
        for extra, copy in fate.copies:
            if self.watcher is not None:
                self.watcher(Passage(self.src, self.dst, sent, arrival + extra, copy))
            links.deliver(self._frames.world.place, self.number, self._frames.put(copy), arrival + extra)
        return 0

    def lose(self, frame: int, at: int) -> int:
        """A frame has found the queue full."""
        self._lose(self._frames.get(frame), at, "queue_full")
        return 0

    def overrun(self, frame: int, at: int) -> int:
        """A frame of a lossless priority has found no room behind the link."""
        self._lose(self._frames.get(frame), at, OVERRAN)
        return 0

    def show(self, frame: int, sent: int) -> int:
        """Show a frame that is sent to the watcher."""
        if self.watcher is not None:
            arrival = self.busy_until + self.traits.delay
            self.watcher(Passage(self.src, self.dst, sent, arrival, self._frames.get(frame)))
        return 0

    def _lose(self, frame: Frame, at: int, reason: str) -> None:
        passage = Passage(self.src, self.dst, at, None, frame, reason)
        if self.watcher is not None:
            self.watcher(passage)
        if self.on_drop is not None:
            self.on_drop(passage)


ANSWERS: Final[dict[Ask, Method]] = {
    Ask.FATE: Direction.pass_frame,
    Ask.LOST: Direction.lose,
    Ask.OVERRAN: Direction.overrun,
    Ask.WATCH: Direction.show,
}
"""What compiled code asks of directions."""
