"""Groups that call at the same time over one link, against arithmetic."""

from __future__ import annotations

import pytest

from p4gen.plan.flow.policies import POLICIES
from p4gen.plan.flow.together import together

CALLS, SIZE, RATE = 10, 1 << 20, 20_000_000
ONE = SIZE * 8 / RATE
"""Seconds of a call on switches whose links carry nothing else."""


@pytest.mark.parametrize(("ranks", "ring"), [(2, 1.0), (4, 1.5)])
@pytest.mark.parametrize(
    ("policy", "slots", "granted"),
    [("ring", 1, 0), ("spatial", 3, 30), ("edge-disjoint", 1, 10), ("spatial", 1, 10), ("temporal", 1, 10)],
)
def test_the_link_between_leaves_is_never_idle(ranks: int, ring: float, policy: str, slots: int, granted: int) -> None:
    found = together(POLICIES[policy], groups=3, ranks=ranks, slots=slots, calls=CALLS, size=SIZE, bandwidth=RATE)
    by_switches = sum(outcome.granted for outcome in found.outcomes)
    # With room for one group, calls that begin after it has ended are granted, too.
    assert granted <= by_switches < (30 if 0 < granted < 30 else granted + 1)
    assert found.ended == pytest.approx((by_switches + (30 - by_switches) * ring) * ONE)
