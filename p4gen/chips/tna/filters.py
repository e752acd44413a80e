"""Low-pass filters, and weighted random early detection, which filters a queue's depth.

A filter of samples follows its input: after a time t it keeps e^(-t/T) of the distance to it, where T is the time
constant for a rising or a falling input. A filter of rates adds its input to the rest of the sum after e^(-t/T). The
result is shifted right by the scale. Without a configuration, a filter returns its input, and early detection never
drops. The parameters are open-p4studio's. That the chip computes this is an assumption, which open-p4studio's tests do
not check.
"""

from __future__ import annotations

import math
import random
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Literal
from weakref import WeakKeyDictionary

from p4gen.model.errors import ControlError
from p4gen.model.tables import Installed


@dataclass(frozen=True)
class Filter:
    """The configuration of a low-pass filter; times are in nanoseconds."""

    kind: Literal["sample", "rate"] = "sample"
    rising: float = 0.0
    falling: float = 0.0
    scale: int = 0

    def __post_init__(self) -> None:
        if min(self.rising, self.falling, self.scale) < 0:
            raise ControlError("a filter's time constants and its scale are not negative")


@dataclass(frozen=True)
class Detection:
    """The configuration of early detection: no packet is dropped below the first threshold, all above the second."""

    time: float = 0.0
    first: int = 0xFF000000
    second: int = 0xFF000000
    probability: float = 0.0
    """At the second threshold."""

    def __post_init__(self) -> None:
        if self.time < 0 or not 0 <= self.first <= self.second or not 0 <= self.probability <= 1:
            raise ControlError("early detection: thresholds rise, and the probability is from 0 to 1")

    def drops(self, depth: float, source: random.Random) -> bool:
        """Whether a packet is dropped at this filtered depth."""
        if depth < self.first:
            return False
        if depth >= self.second:
            return True
        return source.random() < self.probability * (depth - self.first) / (self.second - self.first)


@dataclass
class Levels:
    """The values of an instance's filters in one pipe: by index, or by entry."""

    of: dict[Hashable, tuple[float, int]] = field(default_factory=dict)
    entries: WeakKeyDictionary[Installed, tuple[float, int]] = field(default_factory=WeakKeyDictionary)

    def filtered(self, at: int | Installed | None, value: int, config: Filter, now: int) -> float:
        """A filter's value after this input, at a time in nanoseconds."""
        known: Any = self.entries if isinstance(at, Installed) else self.of
        before, then = known.get(at, (0.0, now))
        time = config.rising if value > before else config.falling
        kept = math.exp((then - now) / time) if time else 0.0
        found: float = before * kept + value if config.kind == "rate" else value + (before - value) * kept
        known[at] = found, now
        return found

    def freeze(self, entries: list[Installed]) -> tuple[Any, ...]:
        """The values as immutable data, entries by their number."""
        return tuple(self.of.items()), tuple(self.entries.get(entry) for entry in entries)

    def restore(self, frozen: tuple[Any, ...], entries: list[Installed]) -> None:
        """Return to the values that ``freeze`` returned."""
        own, direct = frozen
        self.reset()
        self.of.update(own)
        self.entries.update((e, level) for e, level in zip(entries, direct, strict=True) if level is not None)

    def reset(self) -> None:
        """Forget all values, as after loading."""
        self.of.clear()
        self.entries.clear()
