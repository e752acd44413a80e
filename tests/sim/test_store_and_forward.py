"""What storing whole messages costs: the latency of Mode I above Mode III's (EPIC 5.2, F.1)."""

from __future__ import annotations

import pytest

from p4gen.families.epic.latency import MESSAGES, TIERS, measured


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("topology", TIERS)
def test_each_switch_on_the_way_waits_for_the_rest_of_a_message(topology: str, message: int) -> None:
    found = measured(topology, message)
    assert found.stored - found.passed == pytest.approx(found.expected, rel=0.1)
    assert (found.expected > 0) == (message > 1)
    assert found.paper >= found.expected
