"""Hosts' own collectives on the same network: switches only forward (EPIC §I, §K.2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from typing_extensions import override

from p4gen.host.collectives.algorithms import Algorithm, links, member
from p4gen.host.collectives.plan import Connection
from p4gen.host.collectives.steps import StepCollectives
from p4gen.host.transport.verbs import Peer, QpConfig, Recovery
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import SimResult, Simulation
from p4gen.net.collectives.values import Member
from p4gen.plan.placement.placed import PlacedGroup
from p4gen.vocabulary import Op

_FIRST_QP: Final = 0x1000
_OUTSTANDING: Final = 128 << 10
"""Bytes that a connection may have outstanding: more than its path holds."""


class HostsSimulation(Simulation):
    """A simulation whose ranks reduce on their own. Its groups have IncTrees too, which are not used."""

    def __init__(self, config: SimConfig, algorithm: Algorithm) -> None:
        self._algorithm, self._next_qp = algorithm, _FIRST_QP
        super().__init__(config)

    @override
    def _members(self, placed: PlacedGroup, pace: int | None) -> Sequence[Member]:
        return self.rings(placed, pace)

    def rings(self, placed: PlacedGroup, pace: int | None) -> Sequence[StepCollectives]:
        """The ranks of a group, without switches that reduce."""
        config, spec, hosts = self.config, self.spec, placed.request.ranks
        qp_config = QpConfig(
            mtu=spec.payload_bytes,
            recovery=Recovery.SELECTIVE_REPEAT,
            max_outstanding=_OUTSTANDING // spec.payload_bytes,
            ack_every=config.ack_every,
            timeout_ps=config.timeout,
            retry_count=config.retry_count,
            rnr_retry=None,
            dcqcn=config.dcqcn,
            pace=pace,
        )
        numbers = {link: self._next_qp + n for n, link in enumerate(links(self._algorithm, len(hosts)))}
        self._next_qp += len(numbers)

        def end(rank: int, to: int, number: int) -> Connection:
            gateway, ip = self.placement.gateway[hosts[rank]], self.placement.ip[hosts[to]]
            return Connection(number, Peer(gateway, ip, number), qp_config)

        return [
            member(
                self._algorithm,
                self.network.nics[host],
                rank,
                len(hosts),
                {link: end(rank, link.to(rank), n) for link, n in numbers.items() if rank in (link.a, link.b)},
                op=Op.SUM if spec.op is Op.DYNAMIC else spec.op,
                overflow=spec.overflow,
            )
            for rank, host in enumerate(hosts)
        ]


def simulate_hosts(config: SimConfig, algorithm: Algorithm = Algorithm.RING) -> SimResult:
    """Run a configuration like ``simulate``, by the hosts."""
    return HostsSimulation(config, algorithm).run()
