"""The NICs of compiled hosts."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import ClassVar, Final

from p4gen.compiled import nics
from p4gen.compiled.memory import COLLECTED, NONE, PAIRS
from p4gen.host.compiled.pairs import CompiledPair
from p4gen.host.compiled.records import Frames, address_words
from p4gen.host.transport.clock import Clock
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.nic import Line
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Completion, Peer, QpConfig
from p4gen.host.transport.wire import Reader
from p4gen.rocev2.places import places_for

_FIRST_OWN: Final = 0x800000
"""Queue pair numbers from here on are the hosts' own: managers count theirs from below."""


class CompiledNic:
    """A NIC with one port (``p4gen.host.transport.nic.Nic``). Set ``line`` before anything is sent, unless a direction
    of a network leads from the NIC, or its frames are collected."""

    STATE: ClassVar[tuple[str, ...]] = ()
    compiled: bool = True

    line: Line

    def __init__(self, frames: Frames, number: int, mac: int, ip: int, clock: Clock, pairs: list[CompiledPair]) -> None:
        """``pairs`` has all pairs of the world, by their records."""
        self.mac, self.ip, self.clock = mac, ip, clock
        self.domain = ProtectionDomain()
        self.pairs: dict[int, CompiledPair] = {}
        self._reader, self._places = Reader(mac, ip), places_for(ip)
        self.frames, self.number = frames, number
        self._all = pairs
        self.datagrams: list[Callable[[bytes], bool]] = []
        row = self._row = frames.world.hosts[number]
        row["mac"], row["checks_icrc"] = mac, True
        row["ip"], row["ip_rest"] = address_words(ip)
        row["shift"] = self._places.shift
        row["direction"] = row["pump_at"] = row["turn"] = row["answering"] = NONE

    def collect(self) -> None:
        """Collect what is sent in ``World.left``, in place of a line that is always free."""
        self._row["direction"] = COLLECTED

    @property
    def dropped(self) -> Counter[str]:
        """Number of received frames that were dropped, by reason."""
        return self._reader.dropped

    @property
    def checks_icrc(self) -> bool:
        """Whether frames with a wrong ICRC are dropped (``Nic.checks_icrc``)."""
        return self._reader.checks_icrc

    @checks_icrc.setter
    def checks_icrc(self, value: bool) -> None:
        self._reader.checks_icrc = value
        self._row["checks_icrc"] = value

    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> CompiledPair:
        """Create a connected queue pair. ``number`` has 24 bits; raises ``ValueError`` when it is in use."""
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

    def destroy_pair(self, pair: VerbsPair) -> None:
        """Destroy a queue pair. Packets for it are dropped from now on."""
        assert isinstance(pair, CompiledPair)
        del self.pairs[pair.number]
        self.frames.world.table["value"][self._place(pair.number)] = 0
        pair.channel = None
        pair.be_silent()

    def own_numbers(self, count: int) -> tuple[int, ...]:
        """Numbers for queue pairs between hosts (``VerbsNic.own_numbers``)."""
        first = random.SystemRandom().randrange(_FIRST_OWN, (1 << 24) - count)
        return tuple(range(first, first + count))

    def _place(self, number: int) -> int:
        """The place of a pair in the table."""
        place: int = nics.place_of(self.frames.world.place, self.number, number)
        return place

    def parts(self) -> dict[str, object]:
        """The parts that have state, by name."""
        found: dict[str, object] = {"nic": self, "reader": self._reader, "memory": self.domain}
        for number, pair in self.pairs.items():
            found[f"qp {number:#x}"] = pair
            found[f"qp {number:#x} execution"] = pair.execution
        return found

    def receive(self, frame: bytes) -> None:
        """Receive a frame: drop it, or give it to its queue pair."""
        nics.receive(self.frames.world.place, self.number, self.frames.put(frame))

    def send(self, frame: bytes) -> None:
        """Send a frame of no queue pair now (``Nic.send``)."""
        nics.send_other(self.frames.world.place, self.number, self.frames.put(frame))

    def on_loss(self, frame: bytes) -> None:
        """The network has dropped a frame that this NIC has sent. Only simulations call this."""
        to, number = int.from_bytes(frame[self._places.dst_addr]), int.from_bytes(frame[self._places.dest_qp])
        for pair in self.pairs.values():
            if pair.peer.qp == number and pair.peer.ip == to:
                pair.on_loss(frame)

    # --- what compiled code asks for ---

    def transmit(self, frame: int, at: int) -> int:
        """Give a frame to the line. Returns when the line is free again."""
        return self.line.transmit(self.frames.get(frame), at)

    def refused(self, frame: int, _: int) -> int:
        """Give a frame to ``datagrams``, or count it as dropped, by the reason."""
        contents = self.frames.get(frame)
        if any(take(contents) for take in self.datagrams):
            return 0
        read = self._reader.read(contents)
        if read is None:
            return 0
        start, number, _ = read
        pair = self.pairs.get(number)
        if pair is None:
            reason = "unknown_qp"
        elif start.src != pair.peer.ip:
            reason = "unknown_source"
        else:
            reason = "bad_length" if pair.broken is None else "broken_qp"
        self.dropped[reason] += 1
        return 0
