"""What CommLib is told is what InitGroup says, and what the program on the tree needs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.families import load_collective
from p4gen.groups.ranks import ACK_EVERY
from p4gen.host.collectives.plan import SYMMETRIC, PsnSync
from p4gen.host.transport.verbs import Peer, Recovery
from p4gen.manager.api import HostAddresses, RankChannel, RankConfig
from p4gen.manager.ranks.peers import Card
from p4gen.manager.ranks.ranks import TIMEOUT, group_config

from . import samples

PEER = Peer(0x0200_0001_0001, 0x0AFF_0001, 0x105, udp_src_port=0xD003)


def config_of(**program: str | int) -> RankConfig:
    spec = load_collective(None, {"lanes": 16, "window": 8, "message": 4} | program)
    channels = (RankChannel(SYMMETRIC, 0x203, PEER),)
    addresses = HostAddresses(0x0200_0000_0003, 0x0A00_0003, 0x0200_0001_0001)
    return RankConfig("g", 3, 2, 4, addresses, channels, 0xFFFFFE, 64, PsnSync.REFINED, spec)


def test_a_rank_config_is_taken_over() -> None:
    config = group_config(config_of(op="max", dtype="uint32"))
    assert (config.rank, config.size, config.window, config.message, config.packet) == (2, 4, 8, 4, 64)
    assert (str(config.op), str(config.dtype), config.sync) == ("max", "uint32", PsnSync.REFINED)
    connection = config.channels[SYMMETRIC]
    assert (connection.qp, connection.peer) == (0x203, PEER)
    qp = connection.qp_config
    assert (qp.initial_psn, qp.mtu, qp.max_outstanding) == (0xFFFFFE, 64, 8 * 4)
    assert (qp.timeout_ps, qp.ack_every) == (TIMEOUT, ACK_EVERY)
    assert qp.retry_count is None  # the manager says when it is over, and no counter
    assert qp.rnr_retry is None


@pytest.mark.parametrize(
    ("mode", "reliability", "recovery", "hop_by_hop", "selective"),
    [
        ("II", "sr", Recovery.SELECTIVE_REPEAT, False, False),
        ("II", "gbn", Recovery.GO_BACK_N, False, False),
        ("III", "gbn", Recovery.GO_BACK_N, True, False),
        ("III", "sr", Recovery.SELECTIVE_REPEAT, True, False),
        ("III", "sack", Recovery.IDEAL, True, True),
    ],
)
def test_recovery_is_that_of_the_switches(
    mode: str, reliability: str, recovery: Recovery, hop_by_hop: bool, selective: bool
) -> None:
    config = group_config(config_of(mode=mode, reliability=reliability), timeout_ps=7, ack_every=3)
    qp = config.channels[SYMMETRIC].qp_config
    assert (qp.recovery, config.hop_by_hop, qp.selective_naks) == (recovery, hop_by_hop, selective)
    assert (qp.timeout_ps, qp.ack_every) == (7, 3)


@given(st.lists(st.tuples(samples.ips, samples.qps, st.booleans()), min_size=1, max_size=5))
def test_cards_say_who_the_ranks_are(ranks: list[tuple[int, int, bool]]) -> None:
    size = len(ranks)
    qps = tuple(range(7, 7 + 2 * (size - 1)))
    cards = [Card(rank, ip, psn, owner, qps) for rank, (ip, psn, owner) in enumerate(ranks)]
    assert Card.all_in(np.concatenate([card.array for card in cards]), size) == cards
