"""Collectives of groups that an IncManager has placed, over a virtual network of the rig's own switches."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from p4gen.families import collective
from p4gen.groups.ranks import host_config
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.commlib import Communicator
from p4gen.host.collectives.leased import LeasedCommunicator
from p4gen.host.collectives.ring import Ring
from p4gen.host.collectives.striped import StripedCommunicator
from p4gen.host.transport.clock import MS, US
from p4gen.manager.api import GroupState, Membership, RankConfig
from p4gen.manager.ranks.ranks import ring_config, tree_configs
from p4gen.net.collectives.check import problems
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import draw, invoke
from p4gen.net.world.faults import Faults
from p4gen.net.world.network import Network
from p4gen.plan.placement.network import place
from p4gen.plan.placement.placer import Names
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary.message import Collective

from .rig import Rig

EVERY = tuple(Call(c, 0 if c is Collective.BARRIER else 96, root=1) for c in Collective)


def news_of(rig: Rig, host: str) -> dict[str, Membership]:
    """A host's memberships as they are."""
    watch = rig.manager.watch(host)
    found = {item.group: item for item in watch._news}
    watch.close()
    return found


class Wires:
    """Hosts and links around the rig's switches."""

    def __init__(self, rig: Rig, addressed: Names | None = None) -> None:
        self.rig = rig
        topology = rig.topology
        spec = collective(next(iter(rig.switches.values())).spec)
        placement = place(topology, spec, [])
        if addressed is not None:
            placement = replace(placement, mac=addressed.mac, ip=addressed.ip)
        self.network = Network(
            topology,
            placement,
            dict.fromkeys(topology.switches, compile_spec(spec).program),
            Faults(),
            1,
            payload=spec.payload_bytes,
        )
        for name, switch in rig.switches.items():
            self.network.switches[name] = self.network.nodes[name].switch = switch.model
        self.members: dict[tuple[str, int], list[Collectives]] = {}

    def advance(self, time_ps: int) -> None:
        """Let so much virtual time pass; the manager's threads write nothing to the switches meanwhile."""
        locks = {id(switch.lock): switch.lock for switch in self.rig.switches.values()}
        with contextlib.ExitStack() as held:
            for lock in locks.values():
                held.enter_context(lock)
            loop = self.network.loop
            loop.run(until=loop.now + time_ps)

    def join(self, name: str) -> list[Collectives]:
        """The communicators of a group's generation (told by its queue pairs); the same ones next time."""
        ranks = self.rig.manager.group(name).spec.ranks
        configs: list[RankConfig] = []
        for host in ranks:
            news = news_of(self.rig, host)[name]
            assert news.state is GroupState.ACTIVE
            assert news.config is not None
            configs.append(news.config)
        key = name, configs[0].qps[0]
        if key not in self.members:
            self.members[key] = [self._member(host, config) for host, config in zip(ranks, configs, strict=True)]
        return self.members[key]

    def _member(self, host: str, config: RankConfig) -> Collectives:
        ring = Ring(self.network.nics[host], ring_config(config, timeout_ps=50 * US)) if config.ring else None
        if ring is not None and not config.channels:
            return ring
        if config.trees:
            rates = [tree.rate for tree in config.trees]
            return StripedCommunicator(self.network.nics[host], tree_configs(config, timeout_ps=50 * US), rates)
        channels = {channel.key: (channel.qp, channel.peer) for channel in config.channels}
        made = host_config(
            collective(config.spec),
            config.rank,
            config.size,
            channels,
            config.first_psn,
            config.sync,
            timeout_ps=50 * US,
        )
        nic = self.network.nics[host]
        nic.checks_icrc = config.spec.icrc.right
        assert (nic.mac, nic.ip) == (config.addresses.mac, config.addresses.ip)
        return Communicator(nic, made) if ring is None else LeasedCommunicator(nic, made, ring)

    def run(self, name: str, calls: Sequence[Call] = EVERY, seed: int = 1) -> None:
        """Every rank's results are NumPy's."""
        members = self.join(name)
        chance = np.random.default_rng(seed)
        host = self.rig.manager.group(name).spec.ranks[0]
        config = news_of(self.rig, host)[name].config
        assert config is not None
        spec = collective(config.spec)
        values = [draw(call, spec, len(members), chance, overflowing=False) for call in calls]
        made = [
            [invoke(member, call, mine[rank]) for call, mine in zip(calls, values, strict=True)]
            for rank, member in enumerate(members)
        ]
        self.advance(20 * MS)
        assert all(call.done for mine in made for call in mine), f"{name} hangs"
        found = list(problems(name, spec, calls, values, made))
        assert not found, found
