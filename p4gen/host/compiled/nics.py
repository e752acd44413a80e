"""The NICs of compiled hosts."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from typing_extensions import override

from p4gen.compiled import nics
from p4gen.compiled.memory import COLLECTED, NONE, PAIRS
from p4gen.host.compiled.pairs import CompiledPair
from p4gen.host.compiled.records import Frames
from p4gen.host.transport.clock import Clock
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, Peer, QpConfig


class CompiledNic(Nic):
    """A NIC whose queue pairs are compiled."""

    STATE: ClassVar[tuple[str, ...]] = ()

    def __init__(self, frames: Frames, number: int, mac: int, ip: int, clock: Clock, pairs: list[CompiledPair]) -> None:
        """``pairs`` has all pairs of the world, by their records."""
        super().__init__(mac, ip, clock)
        self.frames, self.number = frames, number
        self._all = pairs
        row = self._row = frames.world.hosts[number]
        row["mac"], row["ip"], row["checks_icrc"] = mac, ip, True
        row["direction"] = row["pump_at"] = row["turn"] = row["answering"] = NONE

    def collect(self) -> None:
        """Collect what is sent in ``World.left``, in place of a line that is always free."""
        self._row["direction"] = COLLECTED

    @property
    @override
    def checks_icrc(self) -> bool:
        return self._reader.checks_icrc

    @checks_icrc.setter
    def checks_icrc(self, value: bool) -> None:
        self._reader.checks_icrc = value
        self._row["checks_icrc"] = value

    @override
    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> QueuePair:
        if number in self.pairs:
            raise ValueError(f"QP {number:#x} is in use")
        if len(self._all) == PAIRS:
            raise ValueError(f"a compiled network has at most {PAIRS:,} queue pairs")
        pair = CompiledPair(self, len(self._all), number, peer, config, on_completion)
        self._all.append(pair)
        self.pairs[number] = pair
        place = pair.row["cell"] = self._place(number)
        cell = self.frames.world.table[place]
        cell["key"], cell["value"] = (self.number << 24 | number) + 1, pair.record + 1
        return pair

    @override
    def destroy_pair(self, pair: QueuePair) -> None:
        del self.pairs[pair.number]
        self.frames.world.table["value"][self._place(pair.number)] = 0
        assert isinstance(pair, CompiledPair)
        pair.channel = None
        pair.be_silent()

    def _place(self, number: int) -> int:
        """The place of a pair in the table."""
        place: int = nics.place_of(self.frames.world.place, self.number, number)
        return place

    @override
    def kick(self, pair: QueuePair) -> None:
        pair.kick()

    @override
    def receive(self, frame: bytes) -> None:
        nics.receive(self.frames.world.place, self.number, self.frames.put(frame))

    def transmit(self, frame: int, at: int) -> int:
        """Give a frame to the line. Returns when the line is free again."""
        return self.line.transmit(self.frames.get(frame), at)

    def refused(self, frame: int, _: int) -> int:
        """Read a frame that compiled code does not take."""
        super().receive(self.frames.get(frame))
        return 0
