"""Groups that keep step with each other (EPIC §6.2, "scheduled coordination"): when, in a period, each communicates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Final

MOST: Final = 16
"""Windows of a group."""
Taken = tuple["Schedule", float]
"""The schedule of a group, and the blocks that it takes of a switch."""


@dataclass(frozen=True)
class Schedule:
    """The windows of a period in which a group communicates. Groups with the same ``clock`` have the same period, and
    keep step: an iteration of a training job, whose name the clock is."""

    clock: str
    windows: tuple[tuple[float, float], ...]
    """Beginning and end of each, as shares of the period."""

    @property
    def share(self) -> float:
        """The share of the time in which the group communicates."""
        return sum(end - begin for begin, end in self.windows)

    def meets(self, other: Schedule | None) -> bool:
        """Whether another group may communicate at the same time: groups without a schedule always may."""
        if other is None or other.clock != self.clock:
            return True
        return any(begin < until and since < end for begin, end in self.windows for since, until in other.windows)

    def problems(self) -> Iterator[str]:
        """The errors of the windows, a sentence each."""
        if not self.clock:
            yield "windows are of a period whose clock has a name"
        if not 1 <= len(self.windows) <= MOST:
            yield f"{len(self.windows)} windows; a group has 1 to {MOST}"
        for begin, end in self.windows:
            if not 0 <= begin < end <= 1:  # NaN is refused, too
                yield f"a window from {begin:g} to {end:g}: its ends are shares of a period, in order"
        ends = sorted(self.windows)
        if any(begin < before for (_, before), (begin, _) in pairwise(ends)):
            yield "two of its windows meet"


def busiest(total: float, taken: Iterable[Taken]) -> float:
    """The blocks that groups take of a switch in its busiest moment: of ``total`` on average, of which those with a
    schedule take theirs in their windows. Different clocks do not keep step, so the groups of one clock count as they
    are in its busiest moment, and all others on average."""
    average: defaultdict[str, float] = defaultdict(float)
    changes: defaultdict[str, list[tuple[float, float]]] = defaultdict(list)
    for schedule, blocks in taken:
        average[schedule.clock] += schedule.share * blocks
        for begin, end in schedule.windows:
            changes[schedule.clock] += [(begin, blocks), (end, -blocks)]  # sorted: what ends at a moment goes first
    peaks = {clock: max(accumulate(change for _, change in sorted(each))) for clock, each in changes.items()}
    return max([total, *(total - average[clock] + peak for clock, peak in peaks.items())])
