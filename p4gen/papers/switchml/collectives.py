"""A worker as a rank of a group of the manager."""

from __future__ import annotations

from dataclasses import replace

from p4gen.host.transport.nic import Nic
from p4gen.manager.api import RankConfig
from p4gen.manager.ranks.adding import adding
from p4gen.manager.ranks.own import OwnCollectives
from p4gen.papers.switchml.control import MlJob, Worker
from p4gen.papers.switchml.headers import PORT
from p4gen.papers.switchml.member import MlWorker
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.rocev2.codes import ROCE_UDP_PORT
from p4gen.vocabulary import Overflow


def _worker(spec: SwitchmlSpec, nic: Nic, config: RankConfig, timeout: int) -> MlWorker:
    (channel,) = config.channels
    mac, ip = channel.peer.mac, channel.peer.ip
    job = MlJob(channel.context, (), 0, config.slots, mac, ip, channel.epoch)
    own = Worker(0, nic.mac, nic.ip, channel.qp, job.key)
    job = replace(job, workers=(*(Worker(0, 0, 0) for _ in range(config.rank)), own))
    return MlWorker(spec, job, nic, timeout)


FACET: OwnCollectives[SwitchmlSpec] = adding(_worker, lambda spec: ROCE_UDP_PORT if spec.roce else PORT, Overflow.WRAP)
