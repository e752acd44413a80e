"""What the figures of SCIN's paper share: the times of calls on a star without losses, and the paper's network.

Every host is the paper's accelerator; its four planes of switches are alike, so one is simulated, with a quarter of the
data (section 4.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p4gen.host.transport.clock import MS
from p4gen.host.transport.wire import OVERHEAD
from p4gen.model import EngineName
from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.ranks.hosts import Buffer
from p4gen.papers.scin.ranks.memory import Layout
from p4gen.papers.scin.simulation import PullConfig, PullSimulation
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.topology import TopologySpec

PLANES: Final = 4
"""Switches of the paper's network; each link is of one of them."""
PLANE_RATE: Final = 900_000_000_000
"""Bits a second of a link in one direction: 900 GB/s a node, both directions and all planes together (section 4.1)."""
_HEADERS: Final = 14 + 20 + 8 + 12 + 16 + 4
"""Bytes of a WRITE beside its data: Ethernet, IPv4, UDP, BTH, RETH, ICRC. A READ's response has fewer."""


def star(hosts: int, rate: int, delay: str, latency: str) -> TopologySpec:
    """A switch with ``hosts`` hosts: bits a second, and how long a link takes and the switch."""
    names = [f"h{i}" for i in range(hosts)]
    return TopologySpec.model_validate(
        {
            "name": f"star-{hosts}",
            "switches": ["s0"],
            "hosts": names,
            "links": [[name, "s0"] for name in names],
            "switch_latency": latency,
            "defaults": {"bandwidth": rate, "delay": delay, "queue": 64 << 20},
        }
    )


def plane(hosts: int = 8, latency: str = "20ns") -> TopologySpec:
    """A plane of the paper's simulator: 250 ns a link, 20 cycles in the switch, taken as 20 ns (section 4.1)."""
    return star(hosts, PLANE_RATE, "250ns", latency)


def capacity(spec: ScinSpec, rate: int) -> float:
    """The most data a second, in bytes, that a link of ``rate`` bits a second carries in WRITEs."""
    return rate / 8 * spec.payload / (spec.payload + _HEADERS + OVERHEAD)


@dataclass(frozen=True)
class Timed:
    """The duration of a call, in ps, and what of it is synchronisation."""

    call: int
    """From the arrivals of all ranks to the last flag."""
    barrier: int
    """The same of a call without data: what of it is synchronisation."""

    @property
    def data(self) -> int:
        """The duration of the call without synchronisation, ps."""
        return self.call - self.barrier


def timed(spec: ScinSpec, topology: TopologySpec, packets: int, engine: EngineName, seed: int) -> Timed:
    """An AllReduce of ``packets`` packets at each rank, in place, after a Barrier.

    Raises ``InputError`` if anything is lost or a call does not end well.
    """
    hosts = range(len(topology.rank_hosts))
    everybody = Pattern((1 << len(hosts)) - 1, (1 << len(hosts)) - 1)
    run = PullSimulation(PullConfig(topology, spec, (everybody,), engine=engine, seed=seed, timeout=20 * MS))
    barrier = run.timed_call(0, 0, {})
    domain = {rank: run.network.nics[topology.rank_hosts[rank]].domain for rank in hosts}
    data = {rank: Buffer(domain[rank].register(bytearray(Layout(spec).size(packets)))) for rank in hosts}
    return Timed(run.timed_call(0, packets, data), barrier)


def pages(size: int) -> str:
    """A size in bytes as text, in whole MiB from 1 MiB on, else in whole KiB."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
