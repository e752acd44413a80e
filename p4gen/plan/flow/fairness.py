"""Max-min fair rates: water-filling over links (EPIC §L.1), compiled. A change solves what it touches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

_NONE = -1
_KNOWN, _RISING = 0, 1
"""States of flows. After these comes one for flows that have just met a full link."""


@njit(cache=True)
def _enter(bounds: Any, flow: Any, links: Any, first: Any, after: Any, before: Any) -> None:
    """Put a flow's entries into the lists of their links."""
    for entry in range(bounds[flow, 0], bounds[flow, 1]):
        head = first[links[entry]]
        before[entry], after[entry] = _NONE, head
        if head != _NONE:
            before[head] = entry
        first[links[entry]] = entry


@njit(cache=True)
def _leave(bounds: Any, flow: Any, links: Any, first: Any, after: Any, before: Any) -> None:
    """Take a flow's entries out of the lists of their links."""
    for entry in range(bounds[flow, 0], bounds[flow, 1]):
        if before[entry] == _NONE:
            first[links[entry]] = after[entry]
        else:
            after[before[entry]] = after[entry]
        if after[entry] != _NONE:
            before[after[entry]] = before[entry]


@njit(cache=True)
def _gather(link: Any, state: Any, first: Any, after: Any, owner: Any, states: Any, found: Any, count: Any) -> Any:
    """Add the flows on a link that are in a state to the first ``count`` of ``found``, and put them into the next one.
    Returns how many there are then."""
    entry = first[link]
    while entry != _NONE:
        flow = owner[entry]
        if states[flow] == state:
            states[flow] += 1
            found[count] = flow
            count += 1
        entry = after[entry]
    return count


@njit(cache=True)
def _fill(
    touched: Any, bounds: Any, links: Any, first: Any, after: Any, owner: Any, capacity: Any,
    left: Any, users: Any, used: Any, states: Any, found: Any, rates: Any,
) -> None:  # fmt: skip
    """Set the ``rates`` of all flows that links connect with the ``touched`` ones. ``left``, ``users`` and ``used`` are
    scratch, one for each link, ``states`` and ``found`` one for each flow; ``users`` and ``states`` are 0 before and
    after.

    All rates grow alike until a link is full; flows on it keep their rates, and the others grow on.
    """
    todo = 0
    for link in touched:
        todo = _gather(link, _KNOWN, first, after, owner, states, found, todo)
    count = at = 0
    while at < todo:
        for entry in range(bounds[found[at], 0], bounds[found[at], 1]):
            link = links[entry]
            if users[link] == 0:
                used[count] = link
                left[link] = capacity[link]
                count += 1
                todo = _gather(link, _KNOWN, first, after, owner, states, found, todo)
            users[link] += 1
        at += 1
    while todo > 0:
        least = np.inf
        kept = 0
        for i in range(count):
            link = used[i]
            if users[link] > 0:
                used[kept] = link
                kept += 1
                least = min(least, left[link] / users[link])
        count = kept
        full = 0
        for i in range(count):
            link = used[i]
            if left[link] <= least * users[link] * (1.0 + 1e-12):
                full = _gather(link, _RISING, first, after, owner, states, found, full)
        level = max(least, 0.0)
        for i in range(full):
            flow = found[i]
            states[flow] = _KNOWN
            rates[flow] = level
            for entry in range(bounds[flow, 0], bounds[flow, 1]):
                left[links[entry]] -= level
                users[links[entry]] -= 1
        todo -= full


class FairRates:
    """The max-min fair rates of flows that come and go. A flow has the same rate on each of its links.

    ``solve`` computes rates again only where links connect a flow with what has changed since the last time. The number
    of a flow that has ended is given to another one over as many links.
    """

    def __init__(self, capacity: NDArray[np.float64]) -> None:
        self.rates = np.zeros(64)
        """By number of a flow, in the unit of the capacity; 0 for numbers that no flow has."""
        self._capacity = capacity.copy()
        self._flows = self._entries = 0
        """The numbers of flows, and of entries, that have ever been given."""
        self._spare: defaultdict[int, list[int]] = defaultdict(list)
        """By number of links: the flows that have ended."""
        self._bounds = np.zeros((64, 2), np.int64)
        """Of each flow, the first of its entries and the end of them. An entry is a flow's use of a link."""
        self._links = np.zeros(1 << 12, np.int64)
        """Of each entry its link, its flow, and those after and before it in the list of all entries of its link."""
        self._owner, self._after, self._before = (np.zeros(1 << 12, np.int64) for _ in range(3))
        self._first = np.full(len(capacity), _NONE, np.int64)
        """Of each link the first entry."""
        self._left = np.zeros(len(capacity))
        self._users, self._used = (np.zeros(len(capacity), np.int64) for _ in range(2))
        self._states, self._found = np.zeros(64, np.int64), np.zeros(64, np.int64)
        self._touched: list[NDArray[np.int64]] = []

    def add(self, links: NDArray[np.int64]) -> int:
        """Add a flow over these links, each named once. Returns its number, an index of ``rates``."""
        spare = self._spare[len(links)]
        flow = spare.pop() if spare else self._new(len(links))
        begin, end = self._bounds[flow]
        self._links[begin:end] = links
        _enter(self._bounds, flow, self._links, self._first, self._after, self._before)
        self._touched.append(links)
        return flow

    def remove(self, flow: int) -> None:
        """Remove a flow, so that its number may become another one's."""
        begin, end = self._bounds[flow]
        _leave(self._bounds, flow, self._links, self._first, self._after, self._before)
        self._touched.append(self._links[begin:end].copy())
        self._spare[int(end - begin)].append(flow)
        self.rates[flow] = 0.0

    def resize(self, links: Sequence[int], capacity: NDArray[np.float64] | float) -> None:
        """Give other capacities to these links."""
        at = np.array(links, np.int64)
        self._capacity[at] = capacity
        self._touched.append(at)

    def solve(self) -> None:
        """Compute all rates that may be others since the last time."""
        if not self._touched:
            return
        touched = np.concatenate(self._touched)
        self._touched = []
        _fill(
            touched, self._bounds, self._links, self._first, self._after, self._owner, self._capacity,
            self._left, self._users, self._used, self._states, self._found, self.rates,
        )  # fmt: skip

    def _new(self, length: int) -> int:
        """A number that no flow has had, for one over ``length`` links."""
        flow, begin = self._flows, self._entries
        self._flows, self._entries = flow + 1, begin + length
        if self._flows > len(self.rates):
            self.rates, self._bounds = _doubled(self.rates), _doubled(self._bounds)
            self._states, self._found = _doubled(self._states), _doubled(self._found)
        while self._entries > len(self._links):
            self._links, self._owner = _doubled(self._links), _doubled(self._owner)
            self._after, self._before = _doubled(self._after), _doubled(self._before)
        self._bounds[flow] = begin, self._entries
        self._owner[begin : self._entries] = flow
        return flow


def _doubled(array: NDArray[Any]) -> NDArray[Any]:
    """An array of twice the length, whose second half is 0."""
    return np.concatenate([array, np.zeros_like(array)])
