"""Monitors: they judge a part by its packets, and remember more of these than the part's own state.

A monitor's record is part of the state of the part that it watches, so it is a function of the same events.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from typing_extensions import override

from p4gen.rocev2.layouts import ROCE, ROCE_ANSWER
from p4gen.rocev2.opcodes import FIRST_NAK, Nak, Opcode, is_send, is_write
from p4gen.rocev2.places import as_over_ipv4
from p4gen.rocev2.psn import PSN_MASK, diff
from p4gen.verification.search.interning import Interned

_OPCODE_AT: Final = ROCE.at("bth.opcode")
_PSN: Final = ROCE.bytes("bth.psn")
_DEST_QP: Final = ROCE.bytes("bth.dest_qp")
_SYNDROME_AT: Final = ROCE_ANSWER.at("aeth.syndrome")
_NAK: Final = Nak().syndrome

Sent = Sequence[tuple[int, tuple[bytes, ...]]]
"""Frames that a part sends, by link."""


class Monitor(Protocol):
    """A monitor. Its record is hashable, and begins as ``first``. Its problems violate the property ``violates``, if it
    has that attribute, otherwise ``progress``. Packets have their BTH where those over IPv4 have it; the monitor gets
    whole frames if it has the attribute ``whole``."""

    @property
    @abstractmethod
    def first(self) -> Hashable:
        """The record before anything has happened."""
        ...

    @property
    @abstractmethod
    def excused(self) -> bool:
        """Whether its problems are none after a fault, or when a timer has expired."""
        ...

    @abstractmethod
    def step(self, record: Any, port: int, arrived: Sequence[bytes], sent: Sent) -> tuple[Hashable, str]:
        """The record after packets have arrived at a port, and what is wrong with what the part sent; "" if nothing
        is."""
        ...

    @abstractmethod
    def waits(self, record: Any) -> bool:
        """Whether the part still needs something that only a retransmission can bring, and can know that it does."""
        ...


class OneNak(Monitor):
    """A receiver sends one NAK for each packet that it misses, however many later ones arrive, and none behind an RNR
    NAK (InfiniBand 9.7.5.2.8; EPIC §H.4).

    It remembers the missing PSN by link, until a packet with that PSN arrives over the link's other direction.
    """

    first: Hashable = ()
    excused = False

    def __init__(self, ports: dict[int, int]) -> None:
        self._ports = ports
        """The outgoing link of each port."""

    @override
    def step(
        self, record: tuple[tuple[int, int, int], ...], port: int, arrived: Sequence[bytes], sent: Sent
    ) -> tuple[Hashable, str]:
        link = self._ports.get(port, -1)
        came = {int.from_bytes(frame[_PSN]) for frame in arrived if is_data(frame)}
        known = {entry for entry in record if not (entry[0] == link and entry[2] in came)}
        problem = ""
        for out, frames in sent:
            for frame in frames:
                if frame[_OPCODE_AT] != Opcode.ACKNOWLEDGE or not FIRST_NAK <= frame[_SYNDROME_AT] <= _NAK:
                    continue
                entry = out, int.from_bytes(frame[_DEST_QP]), int.from_bytes(frame[_PSN])
                if entry in known and frame[_SYNDROME_AT] == _NAK:
                    problem = f"a second NAK for PSN {entry[2]:#x}, which has not arrived since the first"
                known.add(entry)
        return tuple(sorted(known)), problem

    @override
    def waits(self, record: Any) -> bool:
        return False


class Gaps(Monitor):
    """A receiver has seen a packet whose predecessor is missing, and needs a retransmission.

    The record is, for each port and QP, the next PSN and the newest that has arrived: packets after a gap do not count,
    and have to arrive again.
    """

    first: Hashable = ()
    excused = False

    def __init__(self, first_psn: Callable[[int], int]) -> None:
        self._first_psn = first_psn
        """The first PSN that a QP receives."""

    @override
    def step(
        self, record: tuple[tuple[int, int, int, int], ...], port: int, arrived: Sequence[bytes], sent: Sent
    ) -> tuple[Hashable, str]:
        known = {(at, qp): (wanted, newest) for at, qp, wanted, newest in record}
        for frame in arrived:
            if not is_data(frame):
                continue
            key, psn = (port, int.from_bytes(frame[_DEST_QP])), int.from_bytes(frame[_PSN])
            first = self._first_psn(key[1])
            wanted, newest = known.get(key, (first, (first - 1) & PSN_MASK))
            if psn == wanted:
                wanted = (psn + 1) & PSN_MASK
            # Without a gap the newest is the one before the next, whatever came again.
            newest = max(newest, psn, (wanted - 1) & PSN_MASK, key=lambda each: diff(each, wanted))
            known[key] = wanted, newest
        return tuple(sorted((*key, *value) for key, value in known.items())), ""

    @override
    def waits(self, record: tuple[tuple[int, int, int, int], ...]) -> bool:
        """Whether a port and QP has a gap."""
        return any(diff(newest, wanted) >= 0 for _, _, wanted, newest in record)


class RepeatsRequested(Monitor):
    """A packet that a host requests by a NAK arrives at the switch without a timer, if its loss is plain. A loss is
    plain if the packet has not arrived, and a later packet of the same path has. With ``last_hop`` it is also plain if
    the packet has arrived before all later ones, and the host lacks it.

    The record is, by QP, the PSNs that have arrived, in order, and the one that was asked for last. Both ends of a
    connection must have the same QP number.
    """

    first: Hashable = ()
    excused = False

    def __init__(self, paths: int, *, last_hop: bool) -> None:
        self._last_hop = last_hop
        self._paths = paths
        """PSNs take paths in turn, and paths keep order."""

    @override
    def step(self, record: Any, port: int, arrived: Sequence[bytes], sent: Sent) -> tuple[Hashable, str]:
        known = {qp: (asked, came) for qp, asked, came in record}
        for frame in arrived:
            qp, psn = int.from_bytes(frame[_DEST_QP]), int.from_bytes(frame[_PSN])
            asked, came = known.get(qp, (-1, ()))
            if is_data(frame):
                known[qp] = -1 if psn == asked else asked, came if psn in came else (*came, psn)
            elif frame[_OPCODE_AT] == Opcode.ACKNOWLEDGE and frame[_SYNDROME_AT] == _NAK:
                before = came[: came.index(psn)] if psn in came else ()
                overtaken = any(diff(each, psn) > 0 for each in before)
                known[qp] = -1 if overtaken or (psn in came and not self._last_hop) else psn, came
        return tuple((qp, *known[qp]) for qp in sorted(known)), ""

    @override
    def waits(self, record: Any) -> bool:
        """Whether a loss is plain, and the lost packet has not arrived since."""
        return any(
            asked >= 0
            and any(diff(psn, asked) > 0 and (asked in came or diff(psn, asked) % self._paths == 0) for psn in came)
            for _, asked, came in record
        )


class NoRepeats(Monitor):
    """A sender sends no packet twice, as nothing was lost. The record is the newest PSN of each connection."""

    first: Hashable = ()
    excused = True

    @override
    def step(
        self, record: tuple[tuple[int, int], ...], port: int, arrived: Sequence[bytes], sent: Sent
    ) -> tuple[Hashable, str]:
        newest, problem = dict(record), ""
        for _, frames in sent:
            for frame in frames:
                if is_data(frame):
                    qp, psn = int.from_bytes(frame[_DEST_QP]), int.from_bytes(frame[_PSN])
                    if qp in newest and diff(psn, newest[qp]) <= 0:
                        problem = f"PSN {psn:#x} is sent again, and was not lost"
                    else:
                        newest[qp] = psn
        return tuple(sorted(newest.items())), problem

    @override
    def waits(self, record: Any) -> bool:
        return False


class OneRepeat(Monitor):
    """A sender whose network loses at most one packet retransmits at most one packet, once, until its timer expires."""

    first: Hashable = ((), 0)
    excused = False

    @override
    def step(self, record: Any, port: int, arrived: Sequence[bytes], sent: Sent) -> tuple[Hashable, str]:
        """The record is the newest PSN of each connection, and how often something was sent again: -1 once that was
        for a timer."""
        newest, count = dict(record[0]), record[1]
        for _, frames in sent:
            for frame in frames:
                if is_data(frame):
                    qp, psn = int.from_bytes(frame[_DEST_QP]), int.from_bytes(frame[_PSN])
                    if qp not in newest or diff(psn, newest[qp]) > 0:
                        newest[qp] = psn
                    elif count >= 0:
                        count = count + 1 if arrived else -1
        problem = "packets are sent again twice, and one was lost at most" if count > 1 else ""
        return (tuple(sorted(newest.items())), count), problem

    @override
    def waits(self, record: Any) -> bool:
        return False


class Judged(NamedTuple):
    """The state after an event, and what is wrong with what the part sent."""

    state: int
    problem: str = ""
    violated: str = ""
    """The property that the problem violates."""
    excused: str = ""
    """The problem, unless there was a fault."""


class Watch:
    """The states of a part with the records of its monitors: pairs, as numbers."""

    def __init__(self, monitors: Sequence[Monitor]) -> None:
        self._monitors = monitors
        self._states: Interned[tuple[int, tuple[Hashable, ...]]] = Interned()

    def begin(self, inner: int) -> int:
        """The first state, when the part's is ``inner``."""
        return self._states.number((inner, tuple(monitor.first for monitor in self._monitors)))

    def inner(self, state: int) -> int:
        """The state of the part that is watched, without the monitors' records."""
        return self._states[state][0]

    def records(self, state: int) -> tuple[Hashable, ...]:
        """What the monitors remember."""
        return self._states[state][1]

    def step(self, state: int, inner: int, port: int, arrived: Sequence[bytes], sent: Sent) -> Judged:
        """The state after an event that led the part to ``inner``, and its problems."""
        records, problem, violated, excused = [], "", "", ""
        whole = arrived, sent
        alike = tuple(map(as_over_ipv4, arrived)), [(link, tuple(map(as_over_ipv4, each))) for link, each in sent]
        for monitor, record in zip(self._monitors, self._states[state][1], strict=True):
            after, wrong = monitor.step(record, port, *(whole if getattr(monitor, "whole", False) else alike))
            records.append(after)
            if monitor.excused:
                excused = excused or wrong
            elif wrong and not problem:
                problem, violated = wrong, getattr(monitor, "violates", "progress")
        return Judged(self._states.number((inner, tuple(records))), problem, violated, excused)

    def waits(self, state: int) -> bool:
        """Whether the part needs a retransmission, and can know it."""
        return any(
            monitor.waits(record) for monitor, record in zip(self._monitors, self._states[state][1], strict=True)
        )

    def __len__(self) -> int:
        return len(self._states)


def is_data(frame: bytes) -> bool:
    """Whether a frame is a packet of a message."""
    opcode = frame[_OPCODE_AT]
    return is_send(opcode) or is_write(opcode)
