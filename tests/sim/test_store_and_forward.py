"""What storing whole messages costs: the latency of Mode I above Mode III's (EPIC 5.2, F.1)."""

from __future__ import annotations

import pytest

from p4gen.papers.epic.experiments.latency import MESSAGES, RECIRCULATING, TIERS, measured
from p4gen.vocabulary.topology import load_topology


@pytest.mark.sample(3)
@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("topology", TIERS)
def test_each_switch_on_the_way_waits_for_the_rest_of_a_message(topology: str, message: int) -> None:
    found = measured(topology, message)
    assert found.stored - found.passed == pytest.approx(found.expected, rel=0.1)
    assert (found.expected > 0) == (message > 1)
    assert found.paper >= found.expected


@pytest.mark.parametrize("topology", TIERS)
def test_cursors_that_are_faster_than_links_cost_nothing(topology: str) -> None:
    """U/B is 27 ns here; what is left is the start of a cursor in each switch."""
    found = measured(topology, 16, delay=10_000)
    assert found.delay < found.packet
    assert found.stored - found.passed == pytest.approx(found.expected, rel=0.1)


@pytest.mark.parametrize("topology", TIERS)
def test_slower_cursors_send_a_packet_in_each_pass(topology: str) -> None:
    delay = load_topology(topology).switch_latency
    found = measured(topology, RECIRCULATING[0], delay)
    assert found.delay > 10 * found.packet
    assert found.ok
