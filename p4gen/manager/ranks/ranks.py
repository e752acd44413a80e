"""The configurations of CommLib and of a ring for a rank, made of InitGroup's content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from p4gen.families import collective
from p4gen.groups.ranks import ACK_EVERY, RING_OUTSTANDING, host_config
from p4gen.groups.wire import pace
from p4gen.host.collectives.plan import SYMMETRIC, ChannelKey, Connection, GroupConfig
from p4gen.host.collectives.ring import RingConfig
from p4gen.host.transport.clock import MS
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery
from p4gen.manager.api import RankConfig
from p4gen.vocabulary import Op

TIMEOUT: Final = 50 * MS
"""The least retransmission timeout of hosts in real time, in ps; round trips and a busy machine make it longer."""

_RNR_TIMER: Final = 14
"""The code of the delay after which a rank sends again a message for which its neighbour has not posted a receive
yet."""


def first_psn(qp: int) -> int:
    """The first PSN of the queue pairs of a ring in which ``qp`` is rank 0's number to the right, far from those of
    rings with other numbers."""
    return qp * 0x9E3779B1 >> 8 & 0xFFFFFF


def ring_config(config: RankConfig, *, timeout_ps: int = TIMEOUT, ack_every: int = ACK_EVERY) -> RingConfig:
    """The configuration of a rank's ring in real time."""
    qp_config = QpConfig(
        mtu=config.spec.payload_bytes,
        initial_psn=config.first_psn,
        recovery=Recovery.GO_BACK_N,  # a neighbour that has not called yet refuses a whole window
        max_outstanding=RING_OUTSTANDING,
        ack_every=ack_every,
        timeout_ps=timeout_ps,
        adaptive=True,
        retry_count=None,
        rnr_retry=None,
        rnr_timer=_RNR_TIMER,
    )
    left, right, *star = (Connection(end.qp, end.peer, qp_config) for end in config.ring)
    spec = collective(config.spec)
    return RingConfig(
        config.rank,
        config.size,
        left,
        right,
        dict(enumerate(star, start=0 if config.rank else 1)),
        op=Op.SUM if spec.op is Op.DYNAMIC else spec.op,
        overflow=spec.overflow,
    )


def group_config(config: RankConfig, *, timeout_ps: int = TIMEOUT, ack_every: int = ACK_EVERY) -> GroupConfig:
    """The configuration of a rank's CommLib in real time."""
    channels = {channel.key: (channel.qp, channel.peer) for channel in config.channels}
    if config.ring and not channels:
        # On a ring the program decides what calls are possible; ``ring_config`` has its connections.
        channels = {SYMMETRIC: (config.ring[0].qp, config.ring[0].peer)}
    if config.trees:
        return tree_configs(config, timeout_ps=timeout_ps, ack_every=ack_every)[0]
    return _configured(config, channels, None, timeout_ps, ack_every)


def tree_configs(config: RankConfig, *, timeout_ps: int = TIMEOUT, ack_every: int = ACK_EVERY) -> list[GroupConfig]:
    """The configurations of a rank on each of several trees. Its queue pairs send at the tree's rate, less the share
    that the ACKs of data in the other direction take."""
    spec = collective(config.spec)
    return [
        _configured(
            config,
            {channel.key: (channel.qp, channel.peer) for channel in tree.channels},
            pace(tree.rate, spec, ack_every),
            timeout_ps,
            ack_every,
        )
        for tree in config.trees
    ]


def _configured(
    config: RankConfig,
    channels: Mapping[ChannelKey, tuple[int, Peer]],
    paced: int | None,
    timeout_ps: int,
    ack_every: int,
) -> GroupConfig:
    return host_config(
        collective(config.spec),
        config.rank,
        config.size,
        channels,
        config.first_psn,
        config.sync,
        timeout_ps=timeout_ps,
        ack_every=ack_every,
        pace=paced,
        adaptive=True,
    )
