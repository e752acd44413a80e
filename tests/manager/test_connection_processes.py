"""Connections on real switch processes, over P4Runtime: what the manager wants is there, also after it or a switch has
been killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest
from patience import until

from p4gen.families import family_of
from p4gen.groups import SwitchConfig
from p4gen.groups.connections import Connection, ConnectionEntries, ConnectionHere
from p4gen.groups.group import Endpoint
from p4gen.manager.api import AgentError, ConnectionSpec, ConnectionState, HostInfo, SwitchInfo
from p4gen.manager.manager import IncManager
from p4gen.manager.switches.agent import IncAgent
from p4gen.p4rt.client import Client
from p4gen.papers.themis.control import clone_sessions, cm_entries
from p4gen.papers.themis.spec import Cm, Mode, Spread, ThemisSpec
from p4gen.rocev2.cm import Datagram, Kind, Message
from p4gen.rocev2.headers import BTH, UDP, Ethernet, IPv4, ipv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.switch.running import scratch
from p4gen.vocabulary.topology import load_topology

from .processes import MISSING, TARGETS, SwitchRig

LEAF = ThemisSpec(paths=2, path_sets=2, connections=4, queue=4, queue_banks=2, ports=8)
SPINE = ThemisSpec(mode=Mode.SOURCE, spread=Spread.ECMP, ports=8)
NETWORK = "clos:2x2x1"


class Fabric:
    """Two leaves and two spines, each a process."""

    def __init__(self, folder: Path, target: str) -> None:
        self.topology = load_topology(NETWORK)
        self.rigs = {name: SwitchRig(folder, target, name) for name in self.topology.switches}
        for rig in self.rigs.values():
            rig.start()

    def info(self, name: str) -> SwitchInfo:
        return self.rigs[name].info(LEAF if name.startswith("leaf") else SPINE)

    def manager(self, store: Path) -> IncManager:
        managers: list[IncManager] = []

        def lost(name: str) -> None:
            if managers:
                managers[0].agent_lost(name)

        managers.append(
            IncManager(
                lambda info: IncAgent(info, lost=lost), topology=self.topology, store=store, drain=0.01, grace=60.0
            )
        )
        for host in self.topology.hosts:
            managers[0].register_host(HostInfo(host, out_of_order=True))
        return managers[0]

    def held(self, name: str) -> dict[str, int]:
        """The entries of connections that a switch has, by table, as another controller reads them."""
        with Client(self.rigs[name].address, election=(0, 1)) as other:
            tables = {table.name.rpartition(".")[2]: table.name for table in other.schema.tables.values()}
            counts = {short: len(list(other.entries(tables[short]))) for short in tables}
        return {short: counts[short] for short in ("data_flows", "answer_flows", "paths") if counts.get(short)}


@pytest.fixture(params=TARGETS)
def fabric(request: pytest.FixtureRequest) -> Iterator[Fabric]:
    if request.param == "bmv2" and MISSING:
        pytest.skip(f"not on PATH: {', '.join(MISSING)}")
    with ExitStack() as stack:
        made = Fabric(Path(stack.enter_context(scratch())), request.param)
        for rig in made.rigs.values():
            stack.callback(rig.close)
        yield made


@pytest.mark.parametrize("target", TARGETS)
def test_an_agent_hands_over_what_a_switch_copies(target: str) -> None:
    """The message is sent by the agent itself, from the CPU port, so that the switch needs no other port."""
    if target == "bmv2" and MISSING:
        pytest.skip(f"not on PATH: {', '.join(MISSING)}")
    spec = ThemisSpec(paths=2, path_sets=2, connections=4, queue=4, queue_banks=2, ports=8, cm=Cm.COPY)
    message = Message.of(Kind.RTU, local_id=1, remote_id=2)
    frame = (
        Datagram(ipv4("10.0.0.1"), ipv4("10.0.0.2"), message)
        .packet(Ethernet(0x020000010001, 0x020000000001))
        .to_bytes()
    )
    heard: list[tuple[str, bytes]] = []
    with ExitStack() as stack:
        rig = SwitchRig(Path(stack.enter_context(scratch())), target, "leaf0")
        stack.callback(rig.close)
        rig.start()
        agent = IncAgent(rig.info(spec), heard=lambda switch, data: heard.append((switch, data)))
        stack.callback(agent.close)
        entries = cm_entries(spec, {spec.architecture.cpu_port: ipv4("10.0.0.1")})
        agent.apply(SwitchConfig(entries, (), clone_sessions(spec)))
        assert agent._client is not None
        assert agent._client.session.packets_out([frame])
        until(lambda: heard)
        assert heard == [("leaf0", frame)]


@pytest.mark.parametrize("target", TARGETS)
def test_an_agent_reads_what_a_switch_has_counted(target: str) -> None:
    if target == "bmv2" and MISSING:
        pytest.skip(f"not on PATH: {', '.join(MISSING)}")
    source, destination = Endpoint(0x020000000001, 0x0A000001, 0x10), Endpoint(0x020000000002, 0x0A000002, 0x11)
    here = ConnectionHere(
        Connection(1, source, destination, 49152), 2, source_port=0, destination_port=None, path_set=0
    )
    facet = family_of(LEAF).facet(ConnectionEntries)
    there = replace(here, source_port=None, destination_port=1, index=3)
    wanted = (*facet.tallies(LEAF, here), *facet.tallies(LEAF, there))
    packet = RocePacket(
        Ethernet(0x020000010001, source.mac), IPv4(source.ip, destination.ip), UDP(50000),
        BTH(Opcode.SEND_ONLY, destination.qp, 5), payload=b"data",
    )  # fmt: skip
    with ExitStack() as stack:
        rig = SwitchRig(Path(stack.enter_context(scratch())), target, "leaf0")
        stack.callback(rig.close)
        rig.start()
        agent = IncAgent(rig.info(LEAF))
        stack.callback(agent.close)
        with pytest.raises(AgentError, match="no connection to"):
            agent.tallies(wanted)
        agent.apply(SwitchConfig(facet.entries(LEAF, (here,)), (), clone_sessions(LEAF)))
        assert list(agent.tallies(wanted)) == [0] * len(wanted)
        assert agent._client is not None
        assert agent._client.session.packets_out([packet.sealed().to_bytes()] * 3)
        until(lambda: sum(agent.tallies(wanted)) == 3)
        assert dict(zip((tally.name for tally in wanted), agent.tallies(wanted), strict=True))["sprayed"] == 3
        agent.apply(SwitchConfig((), (), clone_sessions(LEAF)))
        assert list(agent.tallies(wanted)) == [0] * len(wanted)


@pytest.mark.long
def test_connections_outlive_managers_and_switches(fabric: Fabric, tmp_path: Path) -> None:
    with fabric.manager(tmp_path / "db") as manager:
        for name in fabric.topology.switches:
            manager.register_switch(fabric.info(name))
        first = manager.register_connection(ConnectionSpec("h0", "h1", 0x10, 0x11))
        assert (first.state, first.paths) == (ConnectionState.SPRAYED, ("spine0", "spine1"))
        sprays = {"data_flows": 1, "paths": 2}
        filters = {"data_flows": 1, "answer_flows": 1, "paths": 2}
        assert [fabric.held(name) for name in ("leaf0", "leaf1")] == [sprays, filters]
        manager.report_links("leaf0", {0: False})
        until(lambda: manager.connections()[0].paths == ("spine1",))
        until(lambda: manager.connections()[0].state is ConnectionState.SPRAYED)
        assert [fabric.held(name)["paths"] for name in ("leaf0", "leaf1")] == [1, 1]
        manager.report_links("leaf0", {0: True})
        until(lambda: manager.connections()[0].generation == 3)
        until(lambda: manager.connections()[0].state is ConnectionState.SPRAYED)
        # A switch is killed and comes back without anything.
        fabric.rigs["leaf1"].kill()
        fabric.rigs["leaf1"].start()
        until(lambda: Counter(_held(fabric, "leaf1")) == Counter(filters))
        before = manager.connections()
    with fabric.manager(tmp_path / "db") as manager:
        assert [fabric.held(name) for name in ("leaf0", "leaf1")] == [sprays, filters]
        until(lambda: all(switch.reachable for switch in manager.status().switches))
        until(lambda: manager.connections() == before)
        manager.release_connection(first.number)
        assert fabric.held("leaf0") == fabric.held("leaf1") == {}


def _held(fabric: Fabric, name: str) -> dict[str, int]:
    try:
        return fabric.held(name)
    except Exception:  # it has no program yet
        return {}
