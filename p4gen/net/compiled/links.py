"""The directions of links of a compiled network."""

from __future__ import annotations

from typing import Any, ClassVar

from typing_extensions import override

from p4gen.compiled import links
from p4gen.compiled.memory import NEVER, NONE
from p4gen.host.compiled.records import Frames, column
from p4gen.host.transport.clock import SECOND
from p4gen.net.world.link import Direction, Passage

Frame = bytes


class CompiledDirection(Direction):
    """A link's direction that is record ``number`` of a compiled world."""

    STATE: ClassVar[tuple[str, ...]] = ()

    packets: int = column("packets")
    bytes: int = column("bytes")
    busy_until: int = column("busy_until")
    busy: int = column("busy")
    marked: int = column("marked")
    drawn: int = column("drawn")

    def __init__(self, frames: Frames, number: int, *rest: Any) -> None:
        self._frames, self.number = frames, number
        self._row = frames.world.directions[number]
        super().__init__(*rest)
        row, traits = self._row, self.traits
        row["bandwidth"], row["delay"], row["room"] = traits.bandwidth, traits.delay, self._room
        ecn = traits.ecn
        row["buffer"], row["marks_from"] = NONE, NEVER
        if ecn is not None:
            row["marks_from"] = (ecn.low + 1) * 8 * SECOND // traits.bandwidth
            row["low"], row["high"], row["share"], row["key"] = ecn.low, ecn.high, ecn.share, self._key

    def join(self, to: int, port: int | None) -> None:
        """The direction ends at host ``to``, or at a port of switch ``to``."""
        self._row["to_switch"], self._row["to"] = port is not None, to
        self._row["port"] = port or 0

    def share(self, switch: int) -> None:
        """The queue shares the memory of a switch, ``buffer``."""
        assert self.buffer is not None
        memory, limits = self._frames.world.buffers[switch], self.buffer.limits
        self._row["buffer"], self._row["next_of_buffer"] = switch, memory["first"]
        memory["size"], memory["alpha"], memory["first"] = limits.size, limits.alpha, self.number
        memory["bandwidth"] += self.traits.bandwidth

    def prepare(self) -> None:
        """Tell compiled code what it has to ask for."""
        self._row["faults"] = self.faults is not None
        self._row["watched"] = self.watcher is not None

    @override
    def transmit(self, frame: Frame, at: int) -> int:
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

    def show(self, frame: int, sent: int) -> int:
        """Show a frame that is sent to the watcher."""
        if self.watcher is not None:
            arrival = self.busy_until + self.traits.delay
            self.watcher(Passage(self.src, self.dst, sent, arrival, self._frames.get(frame)))
        return 0
