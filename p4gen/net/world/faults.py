"""Faults of links: random or scripted loss, reordering, duplication, corruption, outages.

Every direction of every link has its own random generator, so events on one do not depend on how much traffic another
carries.
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
from p4gen.inputs import MAX_BURST, quote
from p4gen.net.collectives.kinds import KINDS, Kinds, Label
from p4gen.vocabulary import units
from p4gen.vocabulary.topology import Link, TopologySpec


@dataclass(frozen=True)
class Impairment:
    """The probability of each fault, per packet. ``where`` selects link directions: ``""`` all, ``h0`` both directions
    of all links of that node, ``h0-s0`` both directions of a link, ``h0>s0`` one direction."""

    where: str = ""
    loss: float = 0.0
    burst: float = 1.0
    """Mean number of packets lost in a row. 1: losses are independent; more: a Gilbert model of the same average
    loss."""
    reorder: float = 0.0
    """Share of packets that are delayed, by up to ``jitter``."""
    jitter: int = 4 * US
    duplicate: float = 0.0
    """Share of packets that arrive twice, the second time up to ``jitter`` later."""
    corrupt: float = 0.0
    """Share of packets in which one to three bits flip."""

    def __post_init__(self) -> None:
        for name in ("loss", "reorder", "duplicate", "corrupt"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} {getattr(self, name)} is not a share from 0 to 1")
        if not 1 <= self.burst <= MAX_BURST:
            raise InputError(f"burst {self.burst} is not in 1 to {MAX_BURST:,} packets")

    @property
    def disorders(self) -> bool:
        """Whether packets can overtake others."""
        return self.reorder > 0 or (self.duplicate > 0 and self.jitter > 0)


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
    """None: all packets from the first on."""
    rank: int | None
    """None: packets of all ranks are counted together."""
    text: str

    @classmethod
    def parse(cls, text: str) -> Script:
        """The script that a text like ``drop the 3rd UP_DATA of rank 2``, ``drop 2-5 DOWN_*`` or ``drop every UP_ACK of
        rank 0`` describes.

        Raises ``InputError``, which lists the kinds of packets.
        """
        match = _SCRIPT.match(text.strip())
        if match is None:
            raise InputError(
                f"script {quote(text)}: say 'drop 3 UP_DATA of rank 2', 'drop 2-5 UP_ACK' or 'drop every …'"
            )
        kind = match["kind"].upper()
        if not fnmatch.filter(KINDS, kind):
            raise InputError(f"script {quote(text)}: no packet is a {quote(kind)}; there are {', '.join(KINDS)}")
        first = 1 if match["every"] else int(match["first"])
        last = None if match["every"] else int(match["last"] or first)
        if first < 1 or (last is not None and last < first):
            raise InputError(f"script {quote(text)}: packets are counted from 1, and the first comes before the last")
        rank = int(match["rank"]) if match["rank"] is not None else None
        return cls(kind, first, last, rank, text.strip())


def parse_place(text: str) -> tuple[str, str]:
    """The two halves of ``5%@h0>s0``: value and place. The place is empty when none is given."""
    value, _, place = text.partition("@")
    return value, place


def parse_outage(text: str) -> Outage:
    """The outage that ``h0-s0@10us-60us`` describes. Raises ``InputError`` when the text does not have this form."""
    where, _, times = text.partition("@")
    start, _, end = times.partition("-")
    try:
        outage = Outage(where, units.duration(start), units.duration(end))
    except ValueError as error:
        raise InputError(f"outage {quote(text)}: say 'h0-s0@10us-60us'") from error
    if not where or outage.end <= outage.start:
        raise InputError(f"outage {quote(text)}: say 'h0-s0@10us-60us'")
    return outage


@dataclass(frozen=True)
class Faults:
    """All faults of a run: impairments, outages, scripts."""

    impairments: tuple[Impairment, ...] = ()
    outages: tuple[Outage, ...] = ()
    scripts: tuple[Script, ...] = ()

    def check(self, topology: TopologySpec) -> None:
        """Raises ``InputError`` if the place of a fault matches no link."""
        links = [(link, *ends) for link in topology.links for ends in (link.ends, link.ends[::-1])]
        for where in [fault.where for fault in self.impairments] + [fault.where for fault in self.outages]:
            if not any(applies(where, *link) for link in links):
                raise InputError(f"'{where}' matches no link of {topology.name}; write h0, h0-s0 or h0>s0")


def applies(where: str, link: Link, src: str, dst: str) -> bool:
    """Whether a fault's place is this direction of a link."""
    return where in ("", src, dst, link.name, "-".join(link.ends[::-1]), f"{src}>{dst}")


class Fate(NamedTuple):
    """The fate of a packet on a link. ``copies`` has an extra delay for each copy that arrives. If it is empty,
    ``reason`` says why."""

    copies: tuple[tuple[int, bytes], ...]
    reason: str = ""


@dataclass
class ScriptState:
    """A script's count of matching packets; shared by all directions."""

    STATE: ClassVar = ("seen",)

    script: Script
    seen: int = 0

    def hits(self, label: Label) -> bool:
        """Whether the script drops this packet. Counts the packet when it is of the script's kind."""
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
    """Scripts apply on hosts' links only, so that a packet is counted once."""
    kinds: Kinds
    _bad: dict[int, bool] = field(default_factory=dict)

    def fate(self, frame: bytes, now: int) -> Fate:
        """The fate of a frame that is sent at ``now``."""
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
        # Gilbert model: the bad state loses every packet and is left with probability 1/burst; bursts have that mean.
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
