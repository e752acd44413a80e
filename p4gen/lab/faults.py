"""Faults that the hosts' NICs suffer in a lab: loss, delay, reordering, duplication, corruption, in both directions.

They are made before the frame reaches the interface, or after it has left it: the kernel needs no netem for them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields

from p4gen.errors import InputError
from p4gen.host.transport.clock import MS
from p4gen.inputs import shown
from p4gen.net.faults import DirectionFaults, Fate, Impairment
from p4gen.net.kinds import Kinds
from p4gen.spec import units

JITTER = 2 * MS
"""By how much a packet may be late that others overtake, ps: machines that run a lab are not quicker."""


MAX_DELAY = 10_000 * MS


@dataclass(frozen=True)
class Troubles:
    """What a host's link suffers, each way: shares from 0 to 1, and a delay in ps."""

    loss: float = 0.0
    delay: int = 0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0

    @property
    def any(self) -> bool:
        """Whether there is any."""
        return self != Troubles()

    def text(self) -> str:
        """For people: ``loss 5%, delay 1 ms``; ``none``."""
        found = [f"{name} {getattr(self, name):.3g}" for name in KINDS if name != "delay" and getattr(self, name)]
        if self.delay:
            found.append(f"delay {self.delay / MS:g} ms")
        return ", ".join(found) or "none"


KINDS = tuple(field.name for field in fields(Troubles))


def parse(kind: str, text: str) -> float | int:
    """A share (``5%``, ``0.05``), or for ``delay`` a time (``1ms``). Raises ``InputError``."""
    if kind not in KINDS:
        raise InputError(f"{shown(kind)} is no fault; there are {', '.join(KINDS)}")
    try:
        if kind != "delay":
            return units.share(text)
        delay = units.duration(text)
        if delay > MAX_DELAY:
            raise ValueError(f"at most 10s, for packets wait in memory; this is {shown(text)}")
        return delay
    except ValueError as error:
        raise InputError(f"{kind}: {error}") from None


def direction(wanted: Troubles, seed: str) -> Callable[[bytes, int], Fate] | None:
    """The faults of one direction, drawn from a generator of its own; None where there are none."""
    if not wanted.any:
        return None
    impairment = Impairment(
        loss=wanted.loss, duplicate=wanted.duplicate, reorder=wanted.reorder, corrupt=wanted.corrupt, jitter=JITTER
    )
    # Scripts count packets by kind; there are none here.
    chances = DirectionFaults(random.Random(seed), [impairment], [], [], Kinds({}, {}))  # noqa: S311 - not secrets
    delay = int(wanted.delay)

    def fate(frame: bytes, now: int) -> Fate:
        found = chances.fate(frame, now)
        return Fate(tuple((delay + late, copy) for late, copy in found.copies), found.reason) if delay else found

    return fate
