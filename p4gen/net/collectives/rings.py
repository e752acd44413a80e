"""The ring baseline on the same network: switches only forward, hosts do all the work (EPIC §K.2)."""

from __future__ import annotations

from typing_extensions import override

from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.ring import Ring, RingConfig
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import SimResult, Simulation
from p4gen.plan.placement.placed import PlacedGroup

_LEFT, _RIGHT, _STAR = 0x1000, 0x1001, 0x1100
"""QP numbers. Rank 0's connection with rank r has number ``_STAR`` + r."""


class RingSimulation(Simulation):
    """A simulation whose ranks are ``Ring`` members. Its group has an IncTree too, which is not used."""

    @override
    def _members(self, placed: PlacedGroup, pace: int | None) -> list[Ring]:
        hosts = placed.request.ranks
        return [Ring(self.network.nics[host], self._ring(hosts, rank, pace)) for rank, host in enumerate(hosts)]

    def _ring(self, hosts: tuple[str, ...], rank: int, pace: int | None) -> RingConfig:
        config, spec = self.config, self.spec
        size = len(hosts)
        qp_config = QpConfig(
            mtu=spec.payload_bytes,
            recovery=Recovery.SELECTIVE_REPEAT,
            ack_every=config.ack_every,
            timeout_ps=config.timeout,
            retry_count=config.retry_count,
            rnr_retry=None,
            dcqcn=config.dcqcn,
            pace=pace,
        )

        def connection(qp: int, to: int, their_qp: int) -> Connection:
            gateway = self.placement.gateway[hosts[rank]]
            return Connection(qp, Peer(gateway, self.placement.ip[hosts[to]], their_qp), qp_config)

        left, right = (rank - 1) % size, (rank + 1) % size
        others = range(1, size) if rank == 0 else [0]
        return RingConfig(
            rank,
            size,
            connection(_LEFT, left, _RIGHT),
            connection(_RIGHT, right, _LEFT),
            {to: connection(_STAR + max(rank, to), to, _STAR + max(rank, to)) for to in others},
            op=spec.op,
            overflow=spec.overflow,
        )


def simulate_ring(config: SimConfig) -> SimResult:
    """Run a configuration like ``simulate``, on a ring."""
    return RingSimulation(config).run()
