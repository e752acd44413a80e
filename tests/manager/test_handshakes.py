"""Hosts set up connections by RDMA CM, through the generated programs: what the manager makes of it."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from p4gen.host.transport.verbs import Recovery
from p4gen.manager.api import ConnectionSpec, ConnectionState, HostAddresses, HostInfo, NicInfo
from p4gen.manager.connections import handshakes
from p4gen.manager.manager import IncManager
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.service import ManagerServer
from p4gen.papers.themis.spec import Cm
from p4gen.rocev2.cm import Datagram, Kind, Message, gid_of
from p4gen.rocev2.headers import BTH, Ethernet
from p4gen.rocev2.packet import RocePacket

from .rig import Rig, added_since
from .test_connection_packets import Ends
from .test_connections import LEAF, _patient, held, port_of, rig_of  # noqa: F401

CPU = 510
REQUESTER, RESPONDER = 0x100, 0x101


@dataclass
class Network:
    """Frames of hosts go through the models of all switches; what comes to a CPU port goes to the manager."""

    rig: Rig
    manager: IncManager
    lost: Kind | None = None
    """Messages whose copies do not reach the manager."""
    heard: bool = True
    """Whether copies reach it now."""

    def __post_init__(self) -> None:
        self.hosts: Mapping[str, HostAddresses] = {
            host: self.manager.register_host(HostInfo(host, out_of_order=True)) for host in self.rig.topology.hosts
        }
        self.rig.wait(self.rig.settled)

    def send(self, source: str, packet: RocePacket) -> list[str]:
        """A host sends a frame. Returns the hosts that get it."""
        found, ports = [], self.rig.topology.ports
        waiting = [(ports[source][0].other(source), source, packet.to_bytes())]
        while waiting:
            switch, before, frame = waiting.pop()
            with self.rig.switches[switch].lock:
                outputs = self.rig.switches[switch].model.process(port_of(self.rig, switch, before), frame)
            for port, out in outputs:
                if port == CPU:
                    if self.heard:
                        self.manager.hear(switch, out)
                elif (other := ports[switch][port].other(switch)) in self.hosts:
                    found.append(other)
                else:
                    waiting.append((other, switch, out))
        return found

    def packet(self, source: str, destination: str, message: Message) -> RocePacket:
        a, b = self.hosts[source], self.hosts[destination]
        return Datagram(a.ip, b.ip, message).packet(Ethernet(a.gateway, a.mac))

    def say(self, source: str, destination: str, kind: Kind, **values: int) -> None:
        """A host sends a message, which reaches its destination; the manager has acted upon it afterwards."""
        self.heard = kind is not self.lost
        if kind is Kind.REQ:
            gids = {"local_gid": gid_of(self.hosts[source].ip), "remote_gid": gid_of(self.hosts[destination].ip)}
            values = {"path_mtu": 5, "traffic_class": 0x68} | gids | values
        assert self.send(source, self.packet(source, destination, Message.of(kind, **values))) == [destination]
        self.settle()

    def settle(self) -> None:
        self.rig.wait(lambda: self.manager._handshakes.idle)
        self.rig.wait(self.rig.settled)

    def connect(self, a: str = "h0", b: str = "h2", qp: int = REQUESTER) -> None:
        """A whole handshake."""
        mine, theirs = qp * 2, qp * 2 + 1
        self.say(a, b, Kind.REQ, local_id=mine, local_qpn=qp)
        self.say(b, a, Kind.REP, local_id=theirs, remote_id=mine, local_qpn=qp + 1)
        self.say(a, b, Kind.RTU, local_id=mine, remote_id=theirs)

    def disconnect(self, a: str = "h0", b: str = "h2", qp: int = REQUESTER, **values: int) -> None:
        """The requester ends it."""
        ids = {"local_id": qp * 2, "remote_id": qp * 2 + 1, "remote_qpn": qp + 1}
        self.say(a, b, Kind.DREQ, **ids | values)
        self.say(b, a, Kind.DREP, local_id=qp * 2 + 1, remote_id=qp * 2)

    @property
    def counts(self) -> Mapping[str, int]:
        return self.manager.status().handshakes

    @property
    def specs(self) -> list[ConnectionSpec]:
        return [status.spec for status in self.manager.connections()]


def network(leaf_connections: int = 8, store: Path | str = ":memory:", ip: str = "4") -> Network:
    rig = rig_of(store, LEAF.model_copy(update={"connections": leaf_connections, "cm": Cm.COPY, "ip": ip}))
    return Network(rig, rig.register())


BOTH = [
    ConnectionSpec("h0", "h2", REQUESTER, RESPONDER, 4096, answer_tos=0x68),
    ConnectionSpec("h2", "h0", RESPONDER, REQUESTER, 4096, answer_tos=0x68),
]


@pytest.mark.parametrize("ip", ["4", "6", "both"])
def test_a_handshake_registers_both_directions_and_a_disconnect_releases_them(ip: str) -> None:
    net = network(ip=ip)
    with net.manager as manager:
        ends = Ends(net.rig, manager)
        assert len(set(ends.leaves(range(8)))) == 1
        net.connect()
        assert net.specs == BOTH
        assert {status.state for status in manager.connections()} == {ConnectionState.SPRAYED}
        assert len(set(ends.leaves(range(8)))) == 4
        ends.arrive(0, 1, 3, 2)
        assert not ends.passes(2)
        net.rig.check()
        net.disconnect()
        assert net.specs == []
        assert len(set(ends.leaves(range(8)))) == 1
        assert ends.passes(2)
        assert held(net.rig, "leaf0") == held(net.rig, "leaf1") == {}
        assert net.counts == {"ended": 1, "noted": 3, "registered": 2, "released": 2}
        assert manager._store.counts()["handshakes"] == 0
        net.rig.check()


@pytest.mark.parametrize("lost", [Kind.REQ, Kind.REP, Kind.RTU])
def test_without_a_message_nothing_is_registered(lost: Kind) -> None:
    net = network()
    with net.manager:
        net.lost = lost
        net.connect()
        assert net.specs == []
        net.disconnect()
        assert "released" not in net.counts
        net.lost = None
        net.connect()
        assert net.specs == BOTH


@pytest.mark.parametrize("order", ["REQ RTU REP", "REP REQ RTU"])
def test_copies_of_two_leaves_come_in_any_order(order: str) -> None:
    net = network()
    messages = {
        "REQ": ("h0", "h2", Kind.REQ, {"local_id": 7, "local_qpn": REQUESTER}),
        "REP": ("h2", "h0", Kind.REP, {"local_id": 9, "remote_id": 7, "local_qpn": RESPONDER}),
        "RTU": ("h0", "h2", Kind.RTU, {"local_id": 7, "remote_id": 9}),
    }
    with net.manager:
        for name in order.split():
            source, destination, kind, values = messages[name]
            assert net.specs == []
            net.say(source, destination, kind, **values)
        assert net.specs == BOTH


@pytest.mark.parametrize("end", ["h0", "h2"])
def test_a_connection_with_an_end_that_goes_back_n_stays_on_ecmp(end: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "p4gen.manager")
    net = network()
    with net.manager as manager:
        ends = Ends(net.rig, manager)
        manager.register_host(HostInfo(end, out_of_order=True, nic=NicInfo(Recovery.GO_BACK_N)))
        net.connect()
        assert net.specs == []
        assert net.counts == {"noted": 2, "refused": 2}
        assert f"the NIC of {end} goes back N, so it takes no packets out of order" in caplog.text
        assert len(set(ends.leaves(range(8)))) == 1
        manager.register_host(HostInfo(end, out_of_order=True))
        net.connect(qp=0x300)
        assert {status.state for status in manager.connections()} == {ConnectionState.SPRAYED}
        manager.register_host(HostInfo(end, nic=NicInfo(Recovery.GO_BACK_N)))
        net.rig.wait(lambda: {status.state for status in manager.connections()} == {ConnectionState.ECMP})
        assert all(status.reason.startswith(f"the NIC of {end} goes") for status in manager.connections())
        net.rig.check()


def test_repeated_and_late_messages_change_nothing() -> None:
    net = network()
    with net.manager as manager:
        net.connect()
        before = manager.connections()
        net.connect()  # every message once more
        assert manager.connections() == before
        assert net.counts["repeated"] == 3
        net.say("h2", "h0", Kind.REP, local_id=99, remote_id=98, local_qpn=7)
        net.say("h0", "h2", Kind.RTU, local_id=98, remote_id=99)
        net.disconnect(remote_qpn=0x999)
        assert net.counts["contradictory"] == 1
        net.say("h0", "h2", Kind.DREQ, local_id=98, remote_id=99, remote_qpn=RESPONDER)
        # The DREP answers the DREQ before, which was not believed; it says that the connection is over.
        assert manager.connections() == []
        net.disconnect()
        assert net.counts["unknown"] == 4


def test_other_hosts_cannot_speak_for_one() -> None:
    net = network()
    with net.manager as manager:
        net.connect()
        mine = net.hosts["h0"]
        dreq = Message.of(Kind.DREQ, local_id=2 * REQUESTER, remote_id=2 * REQUESTER + 1, remote_qpn=RESPONDER)
        for host in ("h1", "h4", "h3"):  # beside h0, elsewhere, beside the responder
            theirs = net.hosts[host]
            forged = Datagram(mine.ip, net.hosts["h2"].ip, dreq).packet(Ethernet(theirs.gateway, theirs.mac))
            assert net.send(host, forged) == ["h2"], "it is routed all the same"
            net.settle()
        assert net.specs == BOTH
        # Even if a switch copied it:
        for switch in ("leaf1", "leaf2", "spine0"):
            manager.hear(switch, net.packet("h0", "h2", dreq).to_bytes())
            net.settle()
        assert net.specs == BOTH
        assert net.counts["foreign"] == 3


def test_what_a_nic_would_not_take_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    net = network()
    with net.manager as manager:
        net.connect()
        dreq = Message.of(Kind.DREQ, local_id=2 * REQUESTER, remote_id=2 * REQUESTER + 1, remote_qpn=RESPONDER)
        packet = net.packet("h0", "h2", dreq)
        mad = packet.payload
        wrong = [
            replace(packet, icrc=bytes(4)),
            replace(packet, payload=bytes(8) + mad[8:]).sealed(),  # no key of QP 1
            replace(packet, payload=mad[:10] + b"\1" + mad[11:]).sealed(),  # class version 1
            replace(packet, payload=mad[:25] + b"\x1f" + mad[26:]).sealed(),  # an attribute that there is not
        ]
        with caplog.at_level(logging.INFO, "p4gen.manager"):
            for frame in wrong:
                assert net.send("h0", frame) == ["h2"]
            net.settle()
            manager.hear("leaf0", b"")
            manager.hear("leaf0", replace(packet, bth=BTH(0x64, 3, 0)).sealed().to_bytes())
            net.settle()
        assert net.counts["malformed"] == len(wrong) + 2
        assert net.specs == BOTH
        assert "RDMA CM: leaf0: ICRC is 00000000, not " in caplog.text


def test_a_full_table_is_counted_and_the_connection_stays_on_ecmp(caplog: pytest.LogCaptureFixture) -> None:
    net = network(leaf_connections=1)
    with net.manager as manager, caplog.at_level(logging.WARNING, "p4gen.manager"):
        net.connect("h0", "h2")
        net.connect("h1", "h3", 0x300)
        assert net.specs == BOTH
        assert net.counts["no room"] == 2
        assert "stays on ECMP: leaf0: 1 connections start there, as many as its program knows" in caplog.text
        ends = Ends(net.rig, manager, ConnectionSpec("h1", "h3", 0x300, 0x301))
        assert len(set(ends.leaves(range(8)))) == 1
        net.disconnect("h1", "h3", 0x300)
        assert net.specs == BOTH
        net.disconnect()
        net.connect("h1", "h3", 0x300)
        assert [spec.source for spec in net.specs] == ["h1", "h3"]
        net.rig.check()


def test_one_direction_alone_is_registered_where_the_other_has_no_room() -> None:
    net = network(leaf_connections=1)
    with net.manager as manager:
        manager.register_connection(ConnectionSpec("h1", "h4", 5, 6))
        net.connect()
        assert [(spec.source, spec.destination) for spec in net.specs] == [("h1", "h4"), ("h2", "h0")]
        net.disconnect()
        assert [(spec.source, spec.destination) for spec in net.specs] == [("h1", "h4")]


def test_what_a_library_has_registered_is_the_librarys() -> None:
    net = network()
    with net.manager as manager:
        mine = manager.register_connection(BOTH[0])
        net.connect()
        assert net.specs == BOTH
        assert net.counts["already registered"] == 1
        net.disconnect()
        assert manager.connections() == [mine]


def test_what_a_user_has_released_is_gone() -> None:
    net = network()
    with net.manager as manager:
        net.connect()
        manager.release_connection(manager.connections()[0].number)
        net.disconnect()
        assert net.specs == []
        assert "refused" not in net.counts


def test_hosts_of_one_switch_are_not_sprayed() -> None:
    net = network()
    with net.manager:
        net.connect("h0", "h1")
        assert net.specs == []
        assert net.counts["refused"] == 2
        net.disconnect("h0", "h1")


def test_a_qp_that_is_used_again_loses_its_former_connection() -> None:
    net = network()
    with net.manager:
        net.connect()
        net.say("h0", "h4", Kind.REQ, local_id=1, local_qpn=REQUESTER)  # no DREQ was sent
        net.say("h4", "h0", Kind.REP, local_id=2, remote_id=1, local_qpn=7)
        assert net.specs == BOTH
        net.say("h0", "h4", Kind.RTU, local_id=1, remote_id=2)
        assert [(spec.source, spec.destination) for spec in net.specs] == [("h0", "h4"), ("h4", "h0")]
        net.rig.check()


def test_a_new_manager_ends_the_connections_of_the_old_one(tmp_path: Path) -> None:
    net = network(store=tmp_path / "db")
    net.connect()
    net.rig.kill()
    with net.rig.again() as net.manager:
        net.settle()
        assert net.specs == BOTH
        net.disconnect()
        assert net.specs == []
        net.rig.check()


def test_a_manager_that_dies_while_it_registers_leaves_nothing_for_ever(tmp_path: Path) -> None:
    net = network(store=tmp_path / "db")
    died: list[str] = []

    def fault(switch: str, step: str) -> None:
        if (switch, step) == ("leaf1", "before insert data_flows") and net.specs and not died:
            died.append(step)
            net.rig.die()

    net.rig.fault = fault
    for source, destination, kind, values in (
        ("h0", "h2", Kind.REQ, {"local_id": 1, "local_qpn": REQUESTER}),
        ("h2", "h0", Kind.REP, {"local_id": 2, "remote_id": 1, "local_qpn": RESPONDER}),
    ):
        net.say(source, destination, kind, **values)
    net.send("h0", net.packet("h0", "h2", Message.of(Kind.RTU, local_id=1, remote_id=2)))
    net.rig.wait(lambda: died)
    net.rig.kill()
    with net.rig.again() as net.manager:
        net.settle()
        assert net.specs in (BOTH[:1], [])
        net.say("h0", "h2", Kind.DREQ, local_id=1, remote_id=2, remote_qpn=RESPONDER)
        assert net.specs == []
        net.rig.check()


def test_more_messages_than_can_be_read_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshakes, "MOST_WAITING", 2)
    net = network()
    with net.manager as manager:
        with manager._changed:  # the thread waits to count the first one
            for _ in range(20):
                manager.hear("leaf0", b"")
        net.settle()
        assert net.counts["lost"] >= 17
        net.connect()
        assert net.specs == BOTH


def test_counts_are_in_the_status_over_grpc(tmp_path: Path) -> None:
    net = network()
    with net.manager as manager, ManagerServer(manager, f"unix:{tmp_path / 'm'}") as server:
        net.connect()
        with ManagerClient(server.address) as client:
            assert client.status().handshakes == {"noted": 2, "registered": 2}


def test_a_store_of_schema_2_is_read(tmp_path: Path) -> None:
    net = network(store=tmp_path / "db")
    net.manager.register_connection(BOTH[0])
    net.rig.kill()
    with sqlite3.connect(tmp_path / "db") as db:
        for table in added_since(2):
            db.execute(f"DROP TABLE {table}")
        db.execute("PRAGMA user_version = 2")
    db.close()
    with net.rig.again() as net.manager:
        net.settle()
        for host in net.rig.topology.hosts:  # they come back, too, and say what their NICs do
            net.manager.register_host(HostInfo(host, out_of_order=True))
        net.connect(qp=0x300)
        assert len(net.specs) == 3
