"""How the losses of a run of traffic are repaired: by a NAK, or by a sender's timer, and for which reason by the timer.

Only links are observed: the packets that are sent, the losses, and the NAKs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.traffic.wiring import Track
from p4gen.net.world.watching import Passage
from p4gen.rocev2.opcodes import Nak, NakCode, Opcode
from p4gen.rocev2.places import places_in

_ACKNOWLEDGE: Final = int(Opcode.ACKNOWLEDGE)
_SEQUENCE_ERROR: Final = Nak(NakCode.PSN_SEQUENCE_ERROR).syndrome
_MASK: Final = (1 << 24) - 1


class Cause(StrEnum):
    """Why a sender's timer expired: the fate of its oldest packet without an ACK."""

    TAIL = "tail"
    """It was lost among the last packets. It was the oldest missing packet, and none arrived after it that makes the
    NIC send a NAK; or no packet has crossed the link that lost it since, so only the timer can tell a loss from a
    delay."""
    AGAIN = "lost again"
    """Its retransmission was lost, too. A NIC sends one NAK for each expected PSN."""
    NAK = "NAK lost"
    """It was lost, and so was the NAK that reported it."""
    ACK = "ACK lost"
    """It has arrived, and the ACK or a NAK that acknowledges it was lost."""
    REFUSED = "refused"
    """It has arrived, but the NIC did not keep it (Go-Back-N)."""
    SILENCE = "no NAK"
    """It was lost, the NIC has sent a NAK, later packets crossed the link, and yet no NAK has reached the sender."""


@dataclass
class _Missing:
    """A packet that was lost and has not arrived."""

    link: tuple[str, str]
    times: int = 0


@dataclass
class _Watched:
    """One direction of a connection."""

    track: Track
    missing: dict[int, _Missing] = field(default_factory=dict)
    arrived: set[int] = field(default_factory=set)
    newest: dict[tuple[str, str], int] = field(default_factory=dict)
    """By link: the last packet that crossed it."""
    naks_lost: set[int] = field(default_factory=set)
    timeouts: int = 0
    expected: int = 0
    """The oldest packet that has not arrived."""
    reported: int = -1
    """The last packet that was the oldest one missing when a later one arrived: the NIC sends a NAK."""

    def arrives(self, seq: int) -> None:
        """A packet reaches the NIC."""
        self.missing.pop(seq, None)
        if seq > self.expected:
            self.reported = self.expected
        if seq >= self.expected:
            self.arrived.add(seq)
        while self.expected in self.arrived:
            self.arrived.remove(self.expected)
            self.expected += 1

    def seq(self, psn: int) -> int:
        """The number of the packet with this PSN, counted from the first one modulo 2^24."""
        return (psn - self.track.source.config.initial_psn) & _MASK

    def cause(self, seq: int) -> Cause:
        """Why the timer has expired while ``seq`` was the oldest packet without an ACK."""
        missing = self.missing.get(seq)
        if missing is None:
            return Cause.ACK if self.track.destination.responder.expected > seq else Cause.REFUSED
        if missing.times > 1:
            return Cause.AGAIN
        if self.reported < seq or self.newest.get(missing.link, -1) < seq:
            return Cause.TAIL
        return Cause.NAK if seq in self.naks_lost else Cause.SILENCE


class Repairs:
    """Counts of a simulation from the creation of this object on. It takes the place of the network's watcher."""

    def __init__(self, simulation: TrafficSimulation) -> None:
        self.lost = 0
        """Losses of packets that had not arrived before."""
        self.copies = 0
        """Losses of packets that had arrived before: nothing has to be repaired."""
        self.timeouts: Counter[Cause] = Counter()
        names = {nic.ip: host for host, nic in simulation.network.nics.items()}
        self._by_data: dict[tuple[int, int], _Watched] = {}
        self._by_answer: dict[tuple[int, int], _Watched] = {}
        self._hosts: dict[tuple[int, int], tuple[str, str]] = {}
        for track in simulation.tracks:
            to, back = track.source.peer, track.destination.peer
            data = to.ip, to.qp
            watched = _Watched(track)
            self._by_data[data] = self._by_answer[back.ip, back.qp] = watched
            self._hosts[data] = names[back.ip], names[to.ip]
        simulation.network.watch(self._watch)

    @property
    def to_repair(self) -> int:
        """Number of losses without tails, which only a timer can repair."""
        return self.lost - self.timeouts[Cause.TAIL]

    @property
    def late(self) -> int:
        """Number of those losses that the sender's timer had to repair."""
        return sum(self.timeouts[cause] for cause in (Cause.AGAIN, Cause.NAK, Cause.SILENCE))

    def _watch(self, passage: Passage) -> None:
        frame = passage.frame
        if (places := places_in(frame)) is None:
            return
        opcode = frame[places.opcode_at]
        key = int.from_bytes(frame[places.dst_addr]), int.from_bytes(frame[places.dest_qp])
        if opcode < Opcode.READ_RESPONSE_FIRST:
            watched = self._by_data.get(key)
            if watched is not None:
                self._data(watched, watched.seq(int.from_bytes(frame[places.psn])), passage, self._hosts[key])
        elif opcode == _ACKNOWLEDGE and passage.arrived is None:
            watched = self._by_answer.get(key)
            if watched is not None and frame[places.syndrome_at] == _SEQUENCE_ERROR:
                watched.naks_lost.add(watched.seq(int.from_bytes(frame[places.psn])))

    def _data(self, watched: _Watched, seq: int, passage: Passage, hosts: tuple[str, str]) -> None:
        link = passage.src, passage.dst
        if passage.src == hosts[0]:
            requester = watched.track.source.requester
            if requester.stats.timeouts != watched.timeouts:
                watched.timeouts = requester.stats.timeouts
                self.timeouts[watched.cause(requester.una)] += 1
        if passage.arrived is not None:
            watched.newest[link] = max(seq, watched.newest.get(link, -1))
            if passage.dst == hosts[1]:
                watched.arrives(seq)
        elif seq < watched.expected or seq in watched.arrived:
            self.copies += 1
        else:
            self.lost += 1
            missing = watched.missing.setdefault(seq, _Missing(link))
            missing.link = link
            missing.times += 1
