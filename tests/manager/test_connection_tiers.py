"""Connections over three tiers: PathMaps for the fabric as it is, ECMP where its hashes do not allow them."""

from __future__ import annotations

import pytest

from p4gen.manager.api import Code, ConnectionSpec, ConnectionState, HostInfo
from p4gen.manager.manager import IncManager
from p4gen.papers.themis.spec import Spread, ThemisSpec
from p4gen.rocev2.headers import BTH, UDP, Ethernet, ip_header
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, problems
from p4gen.rocev2.places import places_for
from p4gen.vocabulary.topology import load_topology

from .rig import Rig
from .test_connections import _patient, link, port_of, refused  # noqa: F401

LEAF = ThemisSpec(paths=8, tiers=3, path_sets=4, connections=4, queue=8, queue_banks=2, ports=8)
PLAIN = ThemisSpec(spread=Spread.ECMP, ports=8)
BETWEEN_PODS = ConnectionSpec("h0", "h3", 0x100, 0x101)
IN_A_POD = ConnectionSpec("h0", "h1", 0x200, 0x201)
PATHS = 8


def rig_of(network: str = "clos3:2x2x4x2x1", ip: str = "4", **programs: ThemisSpec) -> Rig:
    """Two pods of two leaves, with a host each."""
    topology = load_topology(network)
    kinds: dict[str, ThemisSpec] = {"leaf": LEAF} | programs
    chosen = {name: kinds.get(name) or kinds.get(name.rstrip("0123456789"), PLAIN) for name in topology.switches}
    specs = {name: spec.model_copy(update={"ip": ip}) for name, spec in chosen.items()}
    return Rig(topology, specs, drain=0.0, out_of_order=topology.hosts)


class Way:
    """Requests of a connection, through all switches on their way to the host."""

    def __init__(self, rig: Rig, manager: IncManager, spec: ConnectionSpec) -> None:
        self.rig, self.spec = rig, spec
        self.ends = [
            manager.register_host(HostInfo(host, out_of_order=True)) for host in (spec.source, spec.destination)
        ]
        rig.wait(rig.settled)

    def of(self, psn: int, port: int = 51000) -> tuple[str, ...]:
        """The switches that a request passes. It must arrive as it was sent, but for MAC addresses and the TTL."""
        a, b = self.ends
        bth = BTH(Opcode.SEND_MIDDLE, self.spec.destination_qp, psn)
        places = places_for(a.ip)
        ethernet = Ethernet(a.gateway, a.mac, places.ether_type)
        sent = RocePacket(ethernet, ip_header(a.ip, b.ip), UDP(port), bth, payload=b"data").sealed()
        frame, passed, here = sent.to_bytes(), [], self.rig.topology.ports[self.spec.source][0].other(self.spec.source)
        into = port_of(self.rig, here, self.spec.source)
        while here != self.spec.destination:
            passed.append(here)
            with self.rig.switches[here].lock:
                ((out, frame),) = self.rig.switches[here].model.process(into, frame)
            there = self.rig.topology.ports[here][out].other(here)
            if there != self.spec.destination:
                into = port_of(self.rig, there, here)
            here = there
        assert list(problems(frame)) == []
        assert frame[places.udp :] == sent.to_bytes()[places.udp :]
        return tuple(passed)


@pytest.mark.parametrize("ip", ["4", "6", "both"])
@pytest.mark.parametrize(("spec", "paths"), [(BETWEEN_PODS, 8), (IN_A_POD, 4)])
def test_each_psn_has_its_path_and_the_host_gets_what_was_sent(spec: ConnectionSpec, paths: int, ip: str) -> None:
    rig = rig_of(ip=ip)
    with rig.register() as manager:
        way = Way(rig, manager, spec)
        before = [way.of(psn) for psn in range(PATHS)]
        assert len(set(before)) == 1
        found = manager.register_connection(spec)
        assert (found.state, len(found.paths)) == (ConnectionState.SPRAYED, 4)
        for port in (49152, 51000, 65535):
            taken = [way.of(psn, port) for psn in range(2 * paths)]
            assert len(set(taken)) == paths
            assert taken[:paths] == taken[paths:]
        assert way.of(0) == before[0]
        manager.release_connection(1)
        assert [way.of(psn) for psn in range(PATHS)] == before
        rig.check()


def test_connections_in_a_pod_and_between_pods_have_sets_of_their_own() -> None:
    rig = rig_of()
    with rig.register() as manager:
        first, second = (manager.register_connection(spec) for spec in (BETWEEN_PODS, IN_A_POD))
        assert first.path_set != second.path_set
        assert manager.register_connection(ConnectionSpec("h2", "h1", 0x300, 0x301)).path_set == first.path_set
        assert len({Way(rig, manager, BETWEEN_PODS).of(psn) for psn in range(PATHS)}) == 8
        assert len({Way(rig, manager, IN_A_POD).of(psn) for psn in range(PATHS)}) == 4
        rig.check()


@pytest.mark.parametrize(("near", "far"), [("leaf0", "agg1"), ("agg1", "core2"), ("agg5", "core2")])
def test_a_fabric_that_chooses_no_longer_alike_is_left_to_ecmp(near: str, far: str) -> None:
    """A link at the source's leaf, above it, or in the other pod."""
    rig = rig_of()
    with rig.register() as manager:
        way = Way(rig, manager, BETWEEN_PODS)
        manager.register_connection(BETWEEN_PODS)
        link(rig, manager, far, up=False, leaf=near)
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.ECMP and rig.settled())
        why = manager.connections()[0].reason
        tier = r"tier 1 (leaf0): 3 next hops; " if near == "leaf0" else "tier 2 (agg0, agg1, agg2, agg3): "
        assert tier in why
        assert len({way.of(psn) for psn in range(PATHS)}) == 1  # and all arrive, although leaf3 knows the connection
        link(rig, manager, far, up=True, leaf=near)
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.SPRAYED and rig.settled())
        assert len({way.of(psn) for psn in range(PATHS)}) == 8
        rig.check()


def test_without_spraying_the_host_still_gets_what_was_sent() -> None:
    rig = rig_of()
    with rig.register() as manager:
        way = Way(rig, manager, BETWEEN_PODS)
        manager.register_connection(BETWEEN_PODS)
        manager.spray_connection(1, spray=False)
        assert len({way.of(psn) for psn in range(PATHS)}) == 1
        manager.spray_connection(1, spray=True)
        assert len({way.of(psn) for psn in range(PATHS)}) == 8


@pytest.mark.parametrize(
    ("network", "programs", "cause"),
    [
        ("clos3:2x2x3x2x1", {}, "tier 1 (leaf0): 3 next hops; their number must be a power of two"),
        ("clos3:2x2x2x3x1", {}, "tier 2 (agg0, agg1): 3 next hops; their number must be a power of two"),
        ("clos3:2x2x2x2x1", {"agg1": LEAF.model_copy(update={"ports": 4})}, ""),
        ("clos3:2x2x4x4x1", {}, "leaf0: path set 0 has 16 paths; the program sprays over 1 to 8"),
        ("clos3:2x2x2x2x1", {"leaf3": PLAIN}, "leaf3: its program does not treat connections that end there"),
        (
            "clos3:2x2x2x2x1",
            {"leaf3": LEAF.model_copy(update={"tiers": 2})},
            "leaf3: its program does not restore the UDP source ports that leaf0 changes (tiers)",
        ),
    ],
)
def test_refusals_name_the_tier(network: str, programs: dict[str, ThemisSpec], cause: str) -> None:
    rig = rig_of(network, "4", **programs)
    with rig.register() as manager:
        if cause:
            assert cause in refused(Code.NO_ROOM, manager.register_connection, BETWEEN_PODS)
        else:
            assert manager.register_connection(BETWEEN_PODS).state is ConnectionState.SPRAYED
            assert len({Way(rig, manager, BETWEEN_PODS).of(psn) for psn in range(PATHS)}) == 4
        rig.check()
