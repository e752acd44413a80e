"""What links do to packets: loss by chance or by script, reordering, duplication, corruption, being down.

Every direction of every link draws from a generator of its own, so that what happens on one does not depend on how
often others drew.
"""

from __future__ import annotations

import fnmatch
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.inputs import shown
from p4gen.net.kinds import KINDS, Kinds, Label
from p4gen.spec import units

MAX_BURST: Final = 1_000_000


@dataclass(frozen=True)
class Impairment:
    """Chances for each packet. ``where`` picks link directions: ``""`` all of them, ``h0`` both of that node's links,
    ``h0-s0`` both of a link, ``h0>s0`` one."""

    where: str = ""
    loss: float = 0.0
    burst: float = 1.0
    """Mean number of packets lost in a row; 1 makes losses independent, more a Gilbert model of the same average."""
    reorder: float = 0.0
    """Share of packets that arrive later than they should, by up to ``jitter``."""
    jitter: int = 4 * US
    duplicate: float = 0.0
    corrupt: float = 0.0
    """Share of packets in which one to three bits flip."""

    def __post_init__(self) -> None:
        for name in ("loss", "reorder", "duplicate", "corrupt"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} {getattr(self, name)} is not a share from 0 to 1")
        if not 1 <= self.burst <= MAX_BURST:
            raise InputError(f"a burst has one packet at least, and {MAX_BURST:,} at most; this is {self.burst}")


@dataclass(frozen=True)
class Outage:
    """A link is down from ``start`` to ``end`` (ps); ``where`` as in ``Impairment``."""

    where: str
    start: int
    end: int


_SCRIPT: Final = re.compile(
    r"drop (?:the )?(?:(?P<every>every)|(?P<first>[0-9]{1,9})(?:st|nd|rd|th)?(?:-(?P<last>[0-9]{1,9})(?:th)?)?) "
    r"(?P<kind>[A-Za-z_*]+)(?: (?:of|to|from) rank (?P<rank>[0-9]{1,9}))?$"
)


@dataclass(frozen=True)
class Script:
    """Drop the ``first``-th to ``last``-th packet of a kind (counted from 1, on the link of the rank's host)."""

    kind: str
    first: int
    last: int | None
    """None: all from the first on."""
    rank: int | None
    """None: counted over all ranks together."""
    text: str

    @classmethod
    def parse(cls, text: str) -> Script:
        """``drop the 3rd UP_DATA of rank 2``, ``drop 2-5 DOWN_*``, ``drop every UP_ACK of rank 0``.

        Raises ``InputError``, with the words there are.
        """
        match = _SCRIPT.match(text.strip())
        if match is None:
            raise InputError(
                f"script {shown(text)}: say 'drop 3 UP_DATA of rank 2', 'drop 2-5 UP_ACK' or 'drop every …'"
            )
        kind = match["kind"].upper()
        if not fnmatch.filter(KINDS, kind):
            raise InputError(f"script {shown(text)}: no packet is a {shown(kind)}; there are {', '.join(KINDS)}")
        first = 1 if match["every"] else int(match["first"])
        last = None if match["every"] else int(match["last"] or first)
        if first < 1 or (last is not None and last < first):
            raise InputError(f"script {shown(text)}: packets are counted from 1, upwards")
        rank = int(match["rank"]) if match["rank"] is not None else None
        return cls(kind, first, last, rank, text.strip())


def parse_place(text: str) -> tuple[str, str]:
    """``5%@h0>s0`` as its two halves; the place is empty when none is given."""
    value, _, place = text.partition("@")
    return value, place


def parse_outage(text: str) -> Outage:
    """``h0-s0@10us-60us``; ``InputError`` when it is not of this form."""
    where, _, times = text.partition("@")
    start, _, end = times.partition("-")
    try:
        outage = Outage(where, units.duration(start), units.duration(end))
    except ValueError as error:
        raise InputError(f"outage {shown(text)}: say 'h0-s0@10us-60us'") from error
    if not where or outage.end <= outage.start:
        raise InputError(f"outage {shown(text)}: say 'h0-s0@10us-60us'")
    return outage


@dataclass(frozen=True)
class Faults:
    """All that goes wrong in a run."""

    impairments: tuple[Impairment, ...] = ()
    outages: tuple[Outage, ...] = ()
    scripts: tuple[Script, ...] = ()


class Fate(NamedTuple):
    """What becomes of a packet on a link: copies, each with an extra delay; or, without copies, why it is gone."""

    copies: tuple[tuple[int, bytes], ...]
    reason: str = ""


@dataclass
class ScriptState:
    """How often a script's packets came by; shared by all directions."""

    STATE: ClassVar = ("seen",)

    script: Script
    seen: int = 0

    def hits(self, label: Label) -> bool:
        """Whether this packet is one to drop; counts it when it is of the script's kind."""
        script = self.script
        if script.rank is not None and label.rank != script.rank:
            return False
        if not fnmatch.fnmatchcase(label.kind, script.kind):
            return False
        self.seen += 1
        return self.seen >= script.first and (script.last is None or self.seen <= script.last)


@dataclass
class DirectionFaults:
    """The faults of one direction of one link."""

    STATE: ClassVar = ("random", "_bad")

    random: random.Random
    impairments: Sequence[Impairment]
    outages: Sequence[Outage]
    scripts: Sequence[ScriptState]
    """Only on links of hosts, so that a packet is counted once."""
    kinds: Kinds
    _bad: dict[int, bool] = field(default_factory=dict)

    def fate(self, frame: bytes, now: int) -> Fate:
        """What becomes of a frame that enters the link now."""
        for outage in self.outages:
            if outage.start <= now < outage.end:
                return Fate((), "link_down")
        if self.scripts:
            label = self.kinds.of(frame)
            if label is not None:
                # Every script counts every packet, whichever of them drops it.
                dropped = [state.script.text for state in self.scripts if state.hits(label)]
                if dropped:
                    return Fate((), f"script: {dropped[0]}")
        delay, again = 0, None
        for number, chance in enumerate(self.impairments):
            if chance.loss and self._lost(number, chance):
                return Fate((), "loss")
            if chance.corrupt and self.random.random() < chance.corrupt:
                frame = self._corrupt(frame)
            if chance.reorder and self.random.random() < chance.reorder:
                delay += self.random.randrange(1, chance.jitter + 1)
            if chance.duplicate and self.random.random() < chance.duplicate:
                again = self.random.randrange(chance.jitter + 1)
        if again is not None:
            return Fate(((delay, frame), (delay + again, frame)))
        return Fate(((delay, frame),))

    def _lost(self, number: int, chance: Impairment) -> bool:
        if chance.burst <= 1:
            return self.random.random() < chance.loss
        # Gilbert: the bad state loses everything and is left with 1/burst, so a stay has the mean length asked for.
        bad = self._bad.get(number, False)
        leave = 1 / chance.burst
        enter = min(1.0, leave * chance.loss / (1 - chance.loss)) if chance.loss < 1 else 1.0
        bad = self.random.random() >= leave if bad else self.random.random() < enter
        self._bad[number] = bad
        return bad

    def _corrupt(self, frame: bytes) -> bytes:
        spoilt = bytearray(frame)
        for _ in range(self.random.randint(1, 3)):
            spoilt[self.random.randrange(len(spoilt))] ^= 1 << self.random.randrange(8)
        return bytes(spoilt)
