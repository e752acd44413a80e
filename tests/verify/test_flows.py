"""Connections between hosts: packets sprayed over paths, and the rules of Themis."""

from __future__ import annotations

from typing import Any

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.verification.findings.results import Result
from p4gen.verification.findings.story import Story, events_of
from p4gen.verification.parts.flows import FlowScope
from p4gen.verification.search.search import Search
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from p4gen.vocabulary.topology import load_topology

SMALL = {"mode": "themis", "ports": 4, "paths": 2, "connections": 4}
QUEUE = {"queue": 8, "queue_banks": 4}


def searched(fields: dict[str, Any], *, packets: int, budget: Budget, reduce: bool = True) -> tuple[FlowScope, Result]:
    core = load_spec(None, {"mode": "themis-s", "spread": "ecmp", "ports": 4, "ip": fields.get("ip", "4")})
    scope = FlowScope(load_topology("clos:2x2x1"), load_spec(None, SMALL | fields), core, packets, budget=budget)
    return scope, Search(System(scope), reduce=reduce).run()


@pytest.mark.parametrize("evidence", [QUEUE, {"evidence": "classes"}, QUEUE | {"ip": "6"}, QUEUE | {"ip": "both"}])
@pytest.mark.parametrize("budget", [Budget(), Budget(losses=1)])
def test_sprayed_packets_arrive_and_none_is_sent_again_in_vain(evidence: dict[str, Any], budget: Budget) -> None:
    _, result = searched(evidence, packets=4, budget=budget)
    assert result.complete, result.sentence()


@pytest.mark.parametrize("reduce", [True, False])
def test_the_listing_of_the_paper_compensates_what_came_late(reduce: bool) -> None:
    """Section 3.4 as printed, in the situation of its Figure 4b: a packet that came late is compensated."""
    scope, result = searched(QUEUE | {"variant": "late-compensation"}, packets=4, budget=Budget(), reduce=reduce)
    assert result.problem is not None
    assert result.problem.property == "repeats"
    story = Story(System(scope))
    for event in events_of(story.system, result.problem.events):
        story.play(event)
    assert story.violations() == {"repeats"}
    assert "leaf1>spine1 NAK" in story.text()  # made by the switch, not the host


@pytest.mark.parametrize("ip", ["4", "6", "both"])
def test_without_a_filter_sprayed_packets_are_sent_again(ip: str) -> None:
    _, result = searched({"mode": "themis-s", "ip": ip}, packets=4, budget=Budget())
    assert result.problem is not None
    assert result.problem.property == "repeats"


def test_a_reduced_search_has_the_same_verdict() -> None:
    whole = searched(QUEUE, packets=3, budget=Budget(losses=1), reduce=False)[1]
    reduced = searched(QUEUE, packets=3, budget=Budget(losses=1))[1]
    assert whole.complete
    assert reduced.complete
    assert reduced.ends == whole.ends
    assert reduced.distinct < whole.distinct


def test_options_of_groups_are_refused_for_connections() -> None:
    with pytest.raises(InputError, match="--stale: error: is for groups"):
        CliRunner().invoke(cli, ["verify", "--mode", "themis", "--stale"], catch_exceptions=False)
