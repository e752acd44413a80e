"""Wrong designs (EPIC 5.1 and H.4, and what its listings leave open) fail where the right one passes, and the report
says where."""

from __future__ import annotations

from typing import Any

import pytest

from p4gen.host.collectives.plan import Flow
from p4gen.host.transport.clock import NS
from p4gen.net.collectives.simulation import SimConfig, SimResult, simulate
from p4gen.net.world.faults import Faults, Outage
from p4gen.papers.epic.spec import Mode, Variant
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .runs import scripted, star, tiny


def both(variant: Variant, mode: Mode = Mode.III, **fields: Any) -> tuple[SimResult, SimResult]:
    """A run of the right design, and the same run of a wrong one."""
    defaults: dict[str, Any] = {"topology": star(3), "size": 4096, "seed": 1, "initial_psn": 0x100, "engine": "jit"}
    fields = defaults | fields
    right, wrong = (simulate(SimConfig(program=tiny(mode=mode, variant=v), **fields)) for v in (None, variant))
    assert right.ok, (right.errors, right.diagnosis and right.diagnosis.lines())
    return right, wrong


def report(result: SimResult) -> str:
    """All that a failed run says."""
    lines = result.diagnosis.lines() if result.diagnosis is not None else []
    return "\n".join([*lines, *result.errors, *result.drops])


@pytest.mark.parametrize("mode", [Mode.II, Mode.III])
def test_arrived_bits_that_outlive_their_psn_make_partial_results(mode: Mode) -> None:
    _, wrong = both(Variant.STALE_ARRIVED, mode)
    assert not wrong.ok
    # N is 16: the control message and 15 packets of 8 elements are right, the slots' second use is not.
    assert "rank 0, allreduce 0: element 120 is" in report(wrong)


def test_without_naks_a_lost_packet_stays_lost() -> None:
    _, wrong = both(Variant.NO_NAK, timeout=0, faults=scripted("drop the 3rd UP_DATA of rank 2"))
    assert not wrong.ok
    text = report(wrong)
    # The control message has PSN 0x100, the third packet 0x103.
    assert "s0, slot of PSN 0x000103" in text
    assert "waits for rank 2" in text
    assert "s0, edge to rank 2: expects PSN 0x000103; it" in text
    assert "UP_DATA of rank 2, PSN 0x000103, was lost on h2>s0" in text


def test_without_a_limiter_one_loss_sets_off_many_retransmissions() -> None:
    # Two packets between switches are lost, so a correct switch sends at most a window of W x M = 32 again.
    faults = Faults(outages=(Outage("s1>s0", 1500 * NS, 1520 * NS),))
    fields: dict[str, Any] = {"topology": load_topology("tree-3-2"), "size": 1 << 14, "timeout": 0}

    def up(result: SimResult) -> int:
        return next(link.packets for link in result.links if link.name == "s1>s0")

    def run(variant: Variant | None, faults: Faults) -> SimResult:
        program = tiny(mode=Mode.III, variant=variant, window=16)
        return simulate(SimConfig(program=program, seed=1, faults=faults, engine="jit", **fields))

    clean, right, wrong = run(None, Faults()), run(None, faults), run(Variant.NAK_STORM, faults)
    assert right.ok
    assert right.drops["s1>s0 link_down"] == 2
    assert 2 <= up(right) - up(clean) <= 32
    assert up(wrong) - up(clean) > 5 * 32
    assert wrong.drops["s0 CheckOrder.duplicate"] > 5 * 32
    assert right.drops["s0 CheckOrder.duplicate"] == 0


SLOW = TopologySpec.model_validate(
    {
        "name": "slow",
        "switches": ["s0"],
        "hosts": ["h0", "h1", "h2"],
        "links": [["h0", "s0"], ["h1", "s0"], {"ends": ["h2", "s0"], "bandwidth": "1G"}],
    }
)


def test_recycling_by_newer_psns_takes_slots_from_slow_ranks() -> None:
    _, wrong = both(Variant.PSN_RECYCLING, topology=SLOW, flow=Flow.ACKS)
    assert not wrong.ok
    text = report(wrong)
    assert "s0 CheckDuplicate.stale" in text
    assert "rank 2" in text


def test_a_root_that_copies_across_overwrites_results_that_someone_still_lacks() -> None:
    _, wrong = both(Variant.ROOT_COPIES, flow=Flow.ACKS, faults=scripted("drop 5-25 DOWN_DATA of rank 1"))
    assert not wrong.ok
    text = report(wrong)
    assert "its content was overwritten" in text
    assert "s0, slot of PSN 0x000105" in text
    assert "rank 1 (h1) waits for the result of PSN 0x000105" in text
