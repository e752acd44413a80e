"""Max-min fair rates: water-filling over links (EPIC §L.1), compiled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def fill(begins: Any, ends: Any, links: Any, capacity: Any, left: Any, users: Any, rates: Any) -> None:
    """Set the ``rates`` of flows. Flow f runs over ``links[begins[f]:ends[f]]``, at the same rate on each of them.
    ``left`` and ``users`` are scratch, one for each link; ``users`` is 0 before and after.

    All rates grow alike until a link is full; flows on it keep their rates, and the others grow on.
    """
    flows = begins.size
    used = np.empty(capacity.size, np.int64)
    count = 0
    for flow in range(flows):
        rates[flow] = -1.0
        for i in range(begins[flow], ends[flow]):
            link = links[i]
            if users[link] == 0:
                used[count] = link
                left[link] = capacity[link]
                count += 1
            users[link] += 1
    todo = flows
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
        level = max(least, 0.0)
        for flow in range(flows):
            if rates[flow] >= 0.0:
                continue
            for i in range(begins[flow], ends[flow]):
                link = links[i]
                if left[link] <= least * users[link] * (1.0 + 1e-12):
                    rates[flow] = -2.0
                    break
        for flow in range(flows):
            if rates[flow] == -2.0:
                rates[flow] = level
                todo -= 1
                for i in range(begins[flow], ends[flow]):
                    left[links[i]] -= level
                    users[links[i]] -= 1


def max_min_rates(capacity: Sequence[float], flows: Sequence[Sequence[int]]) -> list[float]:
    """The max-min fair rates of flows, each a list of links, with the links' capacities."""
    bounds = np.cumsum([0, *(len(flow) for flow in flows)]).astype(np.int64)
    links = np.array([link for flow in flows for link in flow], np.int64)
    rates = np.zeros(len(flows))
    scratch = np.zeros(len(capacity)), np.zeros(len(capacity), np.int64)
    fill(bounds[:-1], bounds[1:], links, np.array(capacity, np.float64), *scratch, rates)
    return [float(rate) for rate in rates]
