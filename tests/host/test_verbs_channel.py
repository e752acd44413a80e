"""Channels by work requests do what those in machine code do: the tests of these, and lines that lose packets."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.collectives.plan import SYMMETRIC, Flow, PsnSync
from p4gen.host.collectives.verbs import VerbsChannel
from p4gen.host.compiled.nics import CompiledNic
from p4gen.host.transport.verbs import Recovery
from p4gen.vocabulary.message import Collective

from . import test_commlib as commlib
from .test_commlib import (
    pair,
    test_all_gather_gives_everyone_all,
    test_all_reduce_keeps_shapes_and_pads_to_whole_packets,
    test_barrier_waits_for_the_other,
    test_broadcast_gives_everyone_the_roots_values,
    test_calls_say_why_a_queue_pair_broke_though_it_only_flushes_receives,
    test_destroying_a_group_ends_what_is_under_way,
    test_invocations_run_one_after_the_other,
    test_ranks_that_call_different_collectives_are_told,
    test_reduce_gives_the_root_the_sum,
    test_reduce_scatter_gives_each_rank_its_part,
)
from .test_plan import (
    test_a_broadcasts_receiver_announces_nothing_and_acknowledges,
    test_another_control_message_than_expected_ends_it,
    test_each_channel_has_a_window_of_its_own,
    test_flow_control_by_results_or_by_acks_alone,
    test_room_is_there_for_a_neighbour_that_is_one_collective_ahead,
    test_the_last_result_may_come_before_the_end,
)

__all__ = [
    "test_a_broadcasts_receiver_announces_nothing_and_acknowledges",
    "test_all_gather_gives_everyone_all",
    "test_all_reduce_keeps_shapes_and_pads_to_whole_packets",
    "test_another_control_message_than_expected_ends_it",
    "test_barrier_waits_for_the_other",
    "test_broadcast_gives_everyone_the_roots_values",
    "test_calls_say_why_a_queue_pair_broke_though_it_only_flushes_receives",
    "test_destroying_a_group_ends_what_is_under_way",
    "test_each_channel_has_a_window_of_its_own",
    "test_flow_control_by_results_or_by_acks_alone",
    "test_invocations_run_one_after_the_other",
    "test_ranks_that_call_different_collectives_are_told",
    "test_reduce_gives_the_root_the_sum",
    "test_reduce_scatter_gives_each_rank_its_part",
    "test_room_is_there_for_a_neighbour_that_is_one_collective_ahead",
    "test_the_last_result_may_come_before_the_end",
]


@pytest.fixture(autouse=True)
def _no_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CompiledNic, "compiled", False)


def test_a_nic_without_machine_code_has_channels_by_work_requests() -> None:
    _, ranks, _ = pair()
    assert {type(channel) for rank in ranks for channel in rank.channels.values()} == {VerbsChannel}


def test_only_our_nics_synchronise_psns() -> None:
    with pytest.raises(InputError, match="which verbs cannot do"):
        pair([SYMMETRIC], sync=PsnSync.REFINED)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    calls=st.lists(
        st.tuples(st.sampled_from(Collective), st.integers(0, 40), st.integers(0, 1)), min_size=1, max_size=6
    ),
    flow=st.sampled_from(Flow),
    hop_by_hop=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
    loss=st.sampled_from([0.0, 0.05, 0.15]),
)
def test_whatever_lines_lose(
    calls: list[tuple[Collective, int, int]], flow: Flow, hop_by_hop: bool, seed: int, loss: float
) -> None:
    whatever = commlib.test_two_ranks_whatever_the_lines_do.hypothesis.inner_test  # type: ignore[attr-defined]
    whatever(calls, PsnSync.SUBGROUPS, flow, hop_by_hop, Recovery.GO_BACK_N, seed, loss, 0.0)
