"""The configuration of CommLib for a rank, from what InitGroup gives to it."""

from __future__ import annotations

from typing import Final

from p4gen.families import collective
from p4gen.groups.ranks import ACK_EVERY, host_config
from p4gen.host.collectives.plan import GroupConfig
from p4gen.host.transport.clock import MS
from p4gen.manager.api import RankConfig

TIMEOUT: Final = 50 * MS
"""Retransmission timer of hosts in real time, in ps: far longer than software switches and busy machines take."""


def group_config(config: RankConfig, *, timeout_ps: int = TIMEOUT, ack_every: int = ACK_EVERY) -> GroupConfig:
    """The configuration of a rank's CommLib in real time."""
    channels = {channel.key: (channel.qp, channel.peer) for channel in config.channels}
    return host_config(
        collective(config.spec),
        config.rank,
        config.size,
        channels,
        config.first_psn,
        config.sync,
        timeout_ps=timeout_ps,
        ack_every=ack_every,
        adaptive=True,
    )
