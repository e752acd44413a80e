"""A worker, or a worker and the server, as a rank of a group of the manager."""

from __future__ import annotations

from p4gen.host.transport.nic import Nic
from p4gen.manager.api import RankConfig
from p4gen.manager.ranks.adding import adding
from p4gen.manager.ranks.own import OwnCollectives
from p4gen.papers.atp.headers import PORT
from p4gen.papers.atp.hosts import AtpMember
from p4gen.papers.atp.spec import WINDOW, AtpSpec
from p4gen.vocabulary import Overflow


def _member(spec: AtpSpec, nic: Nic, config: RankConfig, timeout: int) -> AtpMember:
    (channel,) = config.channels
    job, window = (channel.context, channel.epoch), min(WINDOW, config.slots)
    return AtpMember(spec, job, config.rank, config.size, channel.peer, nic, timeout, window, floats=False)


FACET: OwnCollectives[AtpSpec] = adding(_member, lambda _: PORT, Overflow.SATURATE)
