"""What hosts see of registered connections: the manager's entries in the generated program, packet by packet."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from p4gen.manager.api import AgentError, ConnectionSpec, ConnectionState, HostAddresses, HostInfo, ManagerError
from p4gen.manager.manager import IncManager
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, ip_header
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket
from p4gen.rocev2.places import places_for

from .rig import Rig
from .test_connections import LEAF, _patient, link, port_of, rig_of  # noqa: F401

SPEC = ConnectionSpec("h0", "h2", 0x100, 0x101)
NAK = 0x60


class Ends:
    """A connection's packets, sent straight into the switches of its ends."""

    def __init__(self, rig: Rig, manager: IncManager, spec: ConnectionSpec = SPEC) -> None:
        self.rig = rig
        self.manager = manager
        self.spec = spec
        self.source, self.destination = (
            manager.register_host(HostInfo(h, out_of_order=True)) for h in (spec.source, spec.destination)
        )
        rig.wait(rig.settled)  # switches have their routes

    def _packet(self, psn: int, a: HostAddresses, b: HostAddresses, qp: int, opcode: int, port: int) -> RocePacket:
        ethernet = Ethernet(a.gateway, a.mac, places_for(a.ip).ether_type)
        return RocePacket(ethernet, ip_header(a.ip, b.ip), UDP(port), BTH(opcode, qp, psn))

    def _request(self, psn: int, opcode: int = Opcode.SEND_MIDDLE) -> RocePacket:
        packet = self._packet(psn, self.source, self.destination, self.spec.destination_qp, opcode, 51000)
        return replace(packet, payload=b"data").sealed()

    def leaves(self, psns: Sequence[int], opcode: int = Opcode.SEND_MIDDLE) -> list[str]:
        """The next hops that requests take at the source's switch."""
        taken = []
        for psn in psns:
            out = self._at("leaf0", port_of(self.rig, "leaf0", self.spec.source), self._request(psn, opcode))
            taken += [self.rig.topology.ports["leaf0"][port].other("leaf0") for port in out]
        return taken

    def arrive(self, *psns: int) -> None:
        """Requests come in at the destination's switch; it gives them to the host."""
        for psn in psns:
            assert port_of(self.rig, "leaf1", self.spec.destination) in self.arrives(psn)

    def arrives(self, psn: int) -> list[int]:
        """The ports of the destination's switch that are sent to when a request comes in."""
        return self._at("leaf1", port_of(self.rig, "leaf1", "spine0"), self._request(psn))

    def has_paths(self, count: int) -> None:
        """Wait until the only connection has so many paths, and nothing is under way."""
        self.rig.wait(lambda: self.rig.settled() and len(self.manager.connections()[0].paths) == count)

    def passes(self, psn: int) -> bool:
        """Whether the destination's NACK leaves its switch."""
        packet = self._packet(
            psn, self.destination, self.source, self.spec.source_qp, Opcode.ACKNOWLEDGE, self.spec.answer_port
        )
        return bool(
            self._at(
                "leaf1", port_of(self.rig, "leaf1", self.spec.destination), replace(packet, aeth=AETH(NAK, 5)).sealed()
            )
        )

    def _at(self, switch: str, port: int, packet: RocePacket) -> list[int]:
        with self.rig.switches[switch].lock:
            return [out for out, _ in self.rig.switches[switch].model.process(port, packet.to_bytes())]


@pytest.fixture(params=["4", "6", "both"])
def ends(request: pytest.FixtureRequest) -> Iterator[Ends]:
    """The ends of a connection that is not registered yet, over either kind of IP."""
    rig = rig_of(leaf=LEAF.model_copy(update={"ip": request.param}))
    with rig.register() as manager:
        yield Ends(rig, manager)


@pytest.fixture
def sprayed(ends: Ends) -> Ends:
    """Those of connection 1."""
    ends.manager.register_connection(SPEC)
    return ends


def test_requests_are_sprayed_and_nacks_of_late_packets_blocked(ends: Ends) -> None:
    (base,) = set(ends.leaves(range(8)))  # ECMP's path, as long as nobody knows the connection
    ends.arrive(0, 1, 3, 2)
    assert ends.passes(2)
    ends.manager.register_connection(SPEC)
    taken = ends.leaves(range(8))
    assert taken[0] == base
    assert sorted(taken[:4]) == ["spine0", "spine1", "spine2", "spine3"]
    assert taken[4:] == taken[:4]
    ends.arrive(0, 1, 3, 2)
    assert not ends.passes(2)
    ends.manager.release_connection(1)
    assert set(ends.leaves(range(8))) == {base}
    assert ends.passes(2)


def test_a_reused_index_starts_clean(sprayed: Ends) -> None:
    sprayed.arrive(0, 1, 3, 2)
    assert not sprayed.passes(2)
    sprayed.arrive(4)
    assert not sprayed.passes(2)
    sprayed.manager.release_connection(1)
    assert sprayed.manager.register_connection(SPEC).index == 0
    assert sprayed.passes(2)  # what the other connection was sent is no evidence
    sprayed.arrive(7, 6)
    assert not sprayed.passes(6)


def test_no_nack_is_blocked_while_paths_change(sprayed: Ends) -> None:
    """The change is stopped at each write of the two leaves, and the NACK of a late packet sent."""
    sprayed.arrive(0, 1, 3, 2)
    assert not sprayed.passes(2)
    seen: list[tuple[str, bool, set[str]]] = []

    def fault(name: str, step: str) -> None:
        end = name in ("leaf0", "leaf1")
        if end and step.startswith("after ") and step.endswith(("data_flows", "answer_flows", "routes")):
            seen.append((f"{name} {step.removeprefix('after ')}", sprayed.passes(2), set(sprayed.leaves(range(8)))))

    sprayed.rig.fault = fault
    for up in (False, True):
        link(sprayed.rig, sprayed.manager, "spine1", up=up)
        spines = 4 if up else 3
        sprayed.has_paths(spines)
        steps = [step for step, _, _ in seen]
        first, last = steps.index("leaf1 delete answer_flows"), steps.index("leaf1 insert answer_flows")
        sprays = [at for at, (step, _, _) in enumerate(seen) if step.startswith("leaf0")]
        assert sprays
        assert first < min(sprays)
        assert max(sprays) < last
        assert all(passed for _, passed, _ in seen[first:last]), seen
        assert not seen[last][1]
        assert len(set(sprayed.leaves(range(8)))) == spines
        # Between two sets of paths, a connection has the one path that ECMP gives it.
        assert any(len(taken) == 1 for step, _, taken in seen if step == "leaf0 delete data_flows"), seen
        seen.clear()


def test_a_blocked_nack_is_still_sent_after_a_change_of_paths(sprayed: Ends) -> None:
    sprayed.arrive(0, 1, 3)
    assert not sprayed.passes(2)  # it may be under way
    link(sprayed.rig, sprayed.manager, "spine3", up=False)
    sprayed.has_paths(3)
    assert len(sprayed.arrives(5)) == 2, "5 has the path of 2, with three paths too: 2 is lost"


def test_reverted_to_ecmp_and_back(sprayed: Ends) -> None:
    sprayed.arrive(0, 1, 3, 2)
    sprayed.manager.spray_connection(1, spray=False)
    assert len(set(sprayed.leaves(range(8)))) == 1
    assert sprayed.passes(2)
    assert sprayed.manager.spray_connection(1, spray=True).state is ConnectionState.SPRAYED
    assert len(set(sprayed.leaves(range(8)))) == 4
    sprayed.arrive(7, 6)
    assert not sprayed.passes(6)


def test_writes_alone_are_sprayed_where_a_nic_wants_it(ends: Ends) -> None:
    ends.manager.register_connection(replace(SPEC, writes_only=True))
    assert len(set(ends.leaves(range(8)))) == 1
    assert len(set(ends.leaves(range(8), Opcode.WRITE_MIDDLE))) == 4


def test_a_connection_that_is_refused_has_ecmps_path(ends: Ends) -> None:
    before = ends.leaves(range(8))
    fails = threading.Event()

    def fault(name: str, step: str) -> None:
        if (name, step) == ("leaf0", "before insert data_flows"):
            fails.set()
            raise AgentError("the table is full")

    ends.rig.fault = fault
    with pytest.raises(ManagerError, match="leaf0: the table is full"):
        ends.manager.register_connection(SPEC)
    assert fails.is_set()
    assert ends.leaves(range(8)) == before
    ends.arrive(0, 1, 3, 2)
    assert ends.passes(2)


def counts(manager: IncManager) -> dict[str, int]:
    """What switches have counted of the only connection, without passes and what is 0."""
    (status,) = manager.status().connections
    return {count.name: count.packets for count in status.counts if count.packets and count.name != "more passes"}


def test_switches_count_what_becomes_of_packets(ends: Ends) -> None:
    ends.manager.register_connection(SPEC)
    assert counts(ends.manager) == {}
    ends.leaves(range(8))
    ends.arrive(0, 1, 3, 2)
    assert not ends.passes(2)
    assert counts(ends.manager) == {"sprayed": 8, "NACKs": 1, "blocked": 1}
    ends.arrive(5)  # 4 may be under way
    assert not ends.passes(4)
    assert counts(ends.manager) == {"sprayed": 8, "NACKs": 2, "blocked": 2, "armed": 1}
    ends.arrive(8)  # of the path of 4
    now = counts(ends.manager)
    assert now == {"sprayed": 8, "NACKs": 2, "blocked": 2, "armed": 1, "compensated": 1}
    assert ends.passes(4)
    assert counts(ends.manager) == now | {"NACKs": 3, "passed: lost": 1}
    assert not ends.passes(2)
    assert ends.passes(9)
    last = counts(ends.manager)
    assert last == now | {"NACKs": 5, "blocked": 3, "passed: lost": 1, "passed: no evidence": 1}
    (status,) = ends.manager.status().connections
    names = [count.name for count in status.counts]
    assert names[:2] == ["sprayed", "NACKs"]
    assert ends.manager.connections()[0].counts == status.counts


def test_counters_go_on_when_paths_change_and_begin_again_with_another_connection(ends: Ends) -> None:
    ends.manager.register_connection(SPEC)
    ends.leaves(range(8))
    ends.arrive(0, 1, 3, 2)
    assert not ends.passes(2)
    ends.manager.spray_connection(1, spray=False)
    ends.leaves(range(8))
    assert counts(ends.manager) == {"sprayed": 8, "NACKs": 1, "blocked": 1}
    ends.manager.spray_connection(1, spray=True)
    ends.leaves(range(4))
    assert counts(ends.manager) == {"sprayed": 12, "NACKs": 1, "blocked": 1}
    ends.manager.release_connection(1)
    ends.manager.register_connection(replace(SPEC, source_qp=0x200))  # with the same index
    assert counts(ends.manager) == {}
