"""A worker as a rank of a group of the manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from p4gen.errors import InputError
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import SYMMETRIC, Connection, GroupConfig, PsnSync
from p4gen.host.collectives.summed import SummedCollectives
from p4gen.host.raw import kernel_sink
from p4gen.host.transport.nic import Nic, VerbsNic
from p4gen.host.transport.verbs import QpConfig
from p4gen.manager.api import RankConfig
from p4gen.manager.ranks.own import OwnCollectives
from p4gen.papers.switchml.control import MlJob, Worker
from p4gen.papers.switchml.headers import PORT
from p4gen.papers.switchml.member import MlWorker
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.vocabulary import Overflow


class RealWorker(MlWorker):
    """A worker in real time, beside a kernel that gets its sums, too."""

    def __init__(self, job: MlJob, lanes: int, nic: Nic, timeout: int) -> None:
        super().__init__(job, lanes, nic, timeout)
        self._sink = kernel_sink(PORT)

    def close(self) -> None:
        """Send nothing any more, and take no frames."""
        super().close()
        self._sink.close()


def _made(
    spec: SwitchmlSpec, nic: VerbsNic, config: RankConfig, timeout: int, on_end: Callable[[Invocation], None]
) -> Collectives:
    if not nic.compiled:
        raise InputError(f"{spec.program}: its workers send UDP, which verbs do not: take p4gen's own NIC")
    own, (channel,) = cast("Nic", nic), config.channels
    mac, ip = channel.peer.mac, channel.peer.ip
    job = MlJob(channel.context, (Worker(0, own.mac, own.ip),), 0, config.slots, mac, ip, channel.epoch)
    return SummedCollectives(_program(spec, config), own.clock, RealWorker(job, spec.lanes, own, timeout), on_end)


def _program(spec: SwitchmlSpec, config: RankConfig) -> GroupConfig:
    """Sums of int32, which wrap."""
    (channel,) = config.channels
    connection = Connection(channel.qp, channel.peer, QpConfig(mtu=spec.payload_bytes))
    return GroupConfig(
        config.rank,
        config.size,
        {SYMMETRIC: connection},
        window=config.slots,
        message=1,
        overflow=Overflow.WRAP,
        sync=PsnSync.REFINED,
    )


FACET: OwnCollectives[SwitchmlSpec] = OwnCollectives(_program, _made)
