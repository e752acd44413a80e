"""Runs events on two switches and finds the first difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from p4gen.difftest.events import Event, Packet
from p4gen.difftest.sides import BATCH, Outputs, Readout, Side
from p4gen.layout import Word
from p4gen.rocev2.headers import HeaderError, IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import parse

STATE_EVERY = 512
"""Number of packets between comparisons of counters and registers, which take longer than packets."""
_SHOWN = 8


@dataclass(frozen=True)
class Difference:
    """A difference between the switches: ``what`` in one line, ``details`` in several."""

    what: str
    details: tuple[str, ...] = ()
    cells: tuple[tuple[str, str, int], ...] = ()
    """Some of the counter and register cells that differ: kind, name, index."""


@dataclass(frozen=True)
class Found:
    """A difference that appears after ``events``, not counting the initial configuration."""

    difference: Difference
    events: tuple[Event, ...]


@dataclass
class Tally:
    """The number of things compared so far."""

    packets: int = 0
    outputs: int = 0
    requests: int = 0
    refused: int = 0
    states: int = 0


class Comparison:
    """The two sides, with the same initial configuration. ``replay`` starts afresh."""

    def __init__(
        self, left: Side, right: Side, setup: Sequence[Event], words: Mapping[str, Word] | None = None
    ) -> None:
        self.left, self.right, self._setup = left, right, tuple(setup)
        self._words = words or {}
        """Layouts of the registers' words, by the last part of a register's name; used to show differences by field."""
        self.tally = Tally()

    def restart(self, setup: Sequence[Event] | None = None) -> None:
        """Reset both switches and write the initial configuration."""
        for side in (self.left, self.right):
            side.client.reset()
            side.setup(self._setup if setup is None else setup)

    def run(
        self, events: Iterable[Event], packets: int, progress: Callable[[Tally], None] | None = None
    ) -> Found | None:
        """Compare until ``packets`` packets have been handled. Returns the first difference, or None."""
        done: list[Event] = []
        batch: list[Packet] = []
        unchecked = 0
        for event in events:
            done.append(event)
            difference: Difference | None = None
            if isinstance(event, Packet):
                batch.append(event)
                if len(batch) == BATCH or self.tally.packets + len(batch) >= packets:
                    difference = self._exchange(batch)
                    unchecked += len(batch)
                    batch = []
                    if progress is not None:
                        progress(self.tally)
            else:
                difference = self._exchange(batch) or self._request(event)
                unchecked += len(batch)
                batch = []
            finished = self.tally.packets >= packets
            if difference is None and (unchecked >= STATE_EVERY or finished):
                difference, unchecked = self._state(), 0
            if difference is not None:
                return Found(difference, tuple(done))
            if finished:
                return None
        return None

    def replay(self, events: Sequence[Event], setup: Sequence[Event] | None = None) -> Difference | None:
        """Run ``events`` afresh. Returns the first difference, including counters and registers at the end, or None."""
        self.restart(setup)
        batch: list[Packet] = []
        for event in [*events, None]:
            if isinstance(event, Packet) and len(batch) < BATCH:
                batch.append(event)
                continue
            difference = self._exchange(batch)
            batch = [event] if isinstance(event, Packet) else []
            if difference is None and event is not None and not isinstance(event, Packet):
                difference = self._request(event)
            if difference is not None:
                return difference
        return self._state()

    def _exchange(self, batch: Sequence[Packet]) -> Difference | None:
        if not batch:
            return None
        left, right = canonical_order(self.left.exchange(batch)), canonical_order(self.right.exchange(batch))
        self.tally.packets += len(batch)
        self.tally.outputs += sum(map(len, right.values()))
        return first_difference(self.left.name, left, self.right.name, right)

    def _request(self, event: Event) -> Difference | None:
        assert not isinstance(event, Packet)
        left, right = self.left.request(event), self.right.request(event)
        self.tally.requests += 1
        self.tally.refused += not right
        if left == right:
            return None
        taker, refuser = (self.left, self.right) if left else (self.right, self.left)
        return Difference(f"{taker.name} accepts a request that {refuser.name} refuses: {event}")

    def _state(self) -> Difference | None:
        left, right = self.left.state(), self.right.state()
        self.tally.states += 1
        limits = [side.register_limit for side in (self.left, self.right) if side.register_limit is not None]
        if limits:
            left, right = _limited(left, min(limits)), _limited(right, min(limits))
        narrow = min(limits, default=0).bit_length()
        words = {name: word for name, word in self._words.items() if not limits or word.bits <= narrow}
        return _states(self.left.name, left, self.right.name, right, words)


def canonical_order(outputs: Outputs) -> Outputs:
    """The frames of each port in an order that does not depend on when egress ran.

    A CNP that egress clones from an ACK (or NAK) is queued after the frames that are in the port's queue by then. In
    simple_switch, whose ingress and egress threads run concurrently, these may be frames of later packets, or not even
    all frames of the same packet. So this function moves such CNPs to the end. The ACK, which is sent first, has the
    same addresses and identification.
    """
    return {port: _clones_last(frames) for port, frames in outputs.items()}


def _clones_last(frames: list[bytes]) -> list[bytes]:
    answered: set[tuple[int, int, int]] = set()
    fixed: list[bytes] = []
    clones: list[bytes] = []
    for frame in frames:
        try:
            packet = parse(frame)
        except HeaderError:
            fixed.append(frame)
            continue
        key = (packet.ip.dst, packet.bth.dst_qp, packet.ip.identification if isinstance(packet.ip, IPv4) else 0)
        if packet.bth.opcode == Opcode.ACKNOWLEDGE:
            answered.add(key)
        (clones if packet.bth.opcode == Opcode.CNP and key in answered else fixed).append(frame)
    return fixed + sorted(clones)


def first_difference(left_name: str, left: Outputs, right_name: str, right: Outputs) -> Difference | None:
    """The first frame that differs between what two switches sent; None if there is none."""
    for port in sorted({*left, *right}):
        ours, theirs = left.get(port, []), right.get(port, [])
        if ours == theirs:
            continue
        at = next(
            (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
        )
        details = [f"{name}: {_frame(frames, at)}" for name, frames in ((left_name, ours), (right_name, theirs))]
        if at < len(ours) and at < len(theirs):
            details.append(_where(ours[at], theirs[at]))
        return Difference(
            f"port {port}: {len(ours)} frames from {left_name}, {len(theirs)} from {right_name}; the {at + 1}. differs",
            tuple(details),
        )
    return None


def _frame(frames: list[bytes], at: int) -> str:
    return f"{len(frames[at])} bytes {frames[at].hex()}" if at < len(frames) else "nothing"


def _where(ours: bytes, theirs: bytes) -> str:
    places = [i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b]
    shown = ", ".join(f"{i} ({ours[i]:02x}/{theirs[i]:02x})" for i in places[:_SHOWN])
    more = f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else ""
    lengths = "" if len(ours) == len(theirs) else f"lengths {len(ours)}/{len(theirs)}; "
    return f"{lengths}bytes that differ: {shown or 'none in the common length'}{more}"


def _limited(state: Readout, limit: int) -> Readout:
    cells = {name: [min(value, limit) for value in values] for name, values in state.registers.items()}
    return Readout(state.counters, cells)


def _states(
    left_name: str, left: Readout, right_name: str, right: Readout, words: Mapping[str, Word]
) -> Difference | None:
    for what, ours, theirs in (
        ("counter", left.counters, right.counters),
        ("register", left.registers, right.registers),
    ):
        for name in ours.keys() & theirs.keys():
            if ours[name] == theirs[name]:
                continue
            cells = [i for i, (a, b) in enumerate(zip(ours[name], theirs[name], strict=True)) if a != b]
            word = words.get(name.rpartition(".")[2]) if what == "register" else None
            details = [
                f"{name}[{i}]: {left_name} {_cell(ours[name][i], word)}, {right_name} {_cell(theirs[name][i], word)}"
                for i in cells[:_SHOWN]
            ]
            chosen = tuple((what, name, i) for i in cells[:_SHOWN])
            return Difference(f"{what} {name}: {len(cells)} cells differ", tuple(details), chosen)
    return None


def _cell(value: object, word: Word | None) -> str:
    if not isinstance(value, int):
        return str(value)
    return f"{value:#x}" if word is None else f"{value:#x} ({word.describe(value)})"
