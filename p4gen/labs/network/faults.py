"""Faults of hosts' NICs in a lab: loss, delay, reordering, duplication, corruption, in both directions.

They are applied before a frame reaches the interface or after it has arrived there, so the kernel's netem is not
needed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields

from p4gen.errors import InputError
from p4gen.host.transport.clock import MS
from p4gen.inputs import quote
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Fate, Impairment
from p4gen.vocabulary import units

JITTER = 2 * MS
"""The most by which a reordered packet is delayed, in ps; less has no effect, given the speed of machines that run a
lab."""


MAX_DELAY = 10_000 * MS


@dataclass(frozen=True)
class Troubles:
    """Faults of a host's link, in each direction: shares from 0 to 1, and a delay in ps."""

    loss: float = 0.0
    delay: int = 0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0

    @property
    def any(self) -> bool:
        """Whether there is any fault."""
        return self != Troubles()

    def text(self) -> str:
        """As text: ``loss 5%, delay 1 ms``, or ``none``."""
        found = [f"{name} {getattr(self, name):.3g}" for name in KINDS if name != "delay" and getattr(self, name)]
        if self.delay:
            found.append(f"delay {self.delay / MS:g} ms")
        return ", ".join(found) or "none"


KINDS = tuple(field.name for field in fields(Troubles))


def parse(kind: str, text: str) -> float | int:
    """A share (``5%``, ``0.05``), or for ``delay`` a time (``1ms``). Raises ``InputError``."""
    if kind not in KINDS:
        raise InputError(f"{quote(kind)} is not a fault; there are {', '.join(KINDS)}")
    try:
        if kind != "delay":
            return units.share(text)
        delay = units.duration(text)
        if delay > MAX_DELAY:
            raise ValueError(f"must be at most 10s, because delayed packets are kept in memory, not {quote(text)}")
        return delay
    except ValueError as error:
        raise InputError(f"{kind}: {error}") from None


def direction(wanted: Troubles, seed: str, *, in_order: bool = False) -> Callable[[bytes, int], Fate] | None:
    """A function that applies the faults of one direction, with its own random generator; None if there are no
    faults. With ``in_order``, a duplicate follows at once."""
    if not wanted.any:
        return None
    jitter = 0 if in_order else JITTER
    impairment = Impairment(
        loss=wanted.loss, duplicate=wanted.duplicate, reorder=wanted.reorder, corrupt=wanted.corrupt, jitter=jitter
    )
    # Only scripts need the kinds of packets; there are no scripts here.
    chances = DirectionFaults(random.Random(seed), [impairment], [], [], Kinds({}, {}))  # noqa: S311 - not secrets
    delay = int(wanted.delay)

    def fate(frame: bytes, now: int) -> Fate:
        found = chances.fate(frame, now)
        return Fate(tuple((delay + late, copy) for late, copy in found.copies), found.reason) if delay else found

    return fate
