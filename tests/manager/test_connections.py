"""Connections on switches with real control planes: registered, sprayed, moved off dead paths, reverted, released."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.host.transport.verbs import Recovery
from p4gen.manager.api import (
    AgentError,
    Code,
    ConnectionSpec,
    ConnectionState,
    HostInfo,
    LinkPort,
    ManagerError,
    NicInfo,
)
from p4gen.manager.manager import IncManager
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.messages import from_message
from p4gen.manager.remote.service import ManagerServer
from p4gen.papers.themis.spec import Mode, Spread, ThemisSpec
from p4gen.protos import incmanager as pb
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec, load_topology

from .rig import Rig, group, small

LEAF = ThemisSpec(paths=4, path_sets=4, connections=2, queue=8, queue_banks=2, ports=8)
SPINE = ThemisSpec(mode=Mode.SOURCE, spread=Spread.ECMP, ports=8)
NETWORK = "clos:3x4x2"
"""Four spines; hosts h0 and h1 at leaf0, h2 and h3 at leaf1, h4 and h5 at leaf2."""


def spread(topology: TopologySpec, leaf: ProgramSpec = LEAF, spine: ProgramSpec = SPINE) -> dict[str, ProgramSpec]:
    spine = spine.model_copy(update={"ip": leaf.ip})
    return {name: leaf if name.startswith("leaf") else spine for name in topology.switches}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, switches of tests that do not fail answer in time."""
    for name in ("CONSENT", "WRITING"):
        monkeypatch.setattr(f"p4gen.manager.connections.connections.{name}", PATIENCE_S)


def rig_of(store: Path | str = ":memory:", leaf: ThemisSpec = LEAF, **options: object) -> Rig:
    topology = load_topology(NETWORK)
    options = {"out_of_order": topology.hosts} | options
    return Rig(topology, spread(topology, leaf), store, drain=0.0, **options)  # type: ignore[arg-type]


def spec(source: str = "h0", destination: str = "h2", qp: int = 0x100, **fields: object) -> ConnectionSpec:
    return ConnectionSpec(source, destination, qp, qp + 1, **fields)  # type: ignore[arg-type]


def refused(code: Code, call: object, *args: object) -> str:
    with pytest.raises(ManagerError) as caught:
        call(*args)  # type: ignore[operator]
    assert caught.value.code is code, caught.value
    return caught.value.reason


def held(rig: Rig, switch: str) -> dict[str, int]:
    """How many entries a switch has of each table of connections, with the actions of ``data_flows``."""
    counts: dict[str, int] = {}
    for entry in rig.switches[switch].holds().entries:
        table = entry.table.rpartition(".")[2]
        if table in ("data_flows", "answer_flows", "paths"):
            what = entry.action.name.rpartition(".")[2] if table == "data_flows" else table
            counts[what] = counts.get(what, 0) + 1
    return counts


def flow(rig: Rig, switch: str) -> Mapping[str, int]:
    """The arguments of a switch's only entry of ``data_flows``."""
    (entry,) = (e for e in rig.switches[switch].holds().entries if e.table.endswith("data_flows"))
    return entry.action.args


class Writes:
    """The writes of connections' entries at all switches, in order."""

    def __init__(self, rig: Rig) -> None:
        self.seen: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        rig.fault = self._note

    def _note(self, switch: str, step: str) -> None:
        if step.startswith("after ") and step.endswith(("data_flows", "answer_flows")):
            with self._lock:
                self.seen.append((switch, step.removeprefix("after ")))

    def take(self) -> list[tuple[str, str]]:
        with self._lock:
            seen, self.seen = self.seen, []
        return seen


def port_of(rig: Rig, switch: str, other: str) -> int:
    return next(p for p, link in enumerate(rig.topology.ports[switch]) if link.other(switch) == other)


def link(rig: Rig, manager: IncManager, spine: str, *, up: bool, leaf: str = "leaf0") -> None:
    manager.report_links(leaf, {port_of(rig, leaf, spine): up})


def test_the_destination_knows_a_connection_first_and_forgets_it_last() -> None:
    rig = rig_of()
    with rig.register() as manager:
        writes = Writes(rig)
        found = manager.register_connection(spec())
        assert found == manager.connections()[0]
        assert (found.number, found.state, found.generation) == (1, ConnectionState.SPRAYED, 1)
        assert (found.source_switch, found.destination_switch) == ("leaf0", "leaf1")
        assert found.paths == ("spine0", "spine1", "spine2", "spine3")
        assert writes.take() == [
            ("leaf1", "insert answer_flows"), ("leaf1", "insert data_flows"), ("leaf0", "insert data_flows"),
        ]  # fmt: skip
        assert held(rig, "leaf0") == {"spray": 1, "paths": 4}
        assert held(rig, "leaf1") == {"deliver": 1, "answer_flows": 1, "paths": 4}
        assert held(rig, "leaf2") == held(rig, "spine0") == {}
        rig.check()
        manager.release_connection(1)
        assert [switch for switch, _ in writes.take()] == ["leaf0", "leaf1", "leaf1"]
        assert manager.connections() == []
        assert held(rig, "leaf0") == held(rig, "leaf1") == {}
        rig.check()
        assert "no connection 1" in refused(Code.NOT_FOUND, manager.release_connection, 1)


def test_a_reused_index_has_another_epoch() -> None:
    rig = rig_of()
    with rig.register() as manager:
        epochs = []
        for _ in range(3):
            found = manager.register_connection(spec())
            epochs.append((found.index, found.epoch, flow(rig, "leaf1")["epoch"]))
            manager.release_connection(found.number)
        assert epochs == [(0, 1, 1), (0, 2, 2), (0, 3, 3)]
        rig.check()


def test_when_all_epochs_are_used_the_program_is_loaded_again() -> None:
    rig = rig_of(leaf=LEAF.model_copy(update={"connections": 1}))
    with rig.register() as manager:
        for _ in range(255):
            manager.release_connection(manager.register_connection(spec()).number)
        loads = rig.switches["leaf1"].loads
        other = manager.register_connection(spec("h2", "h4"))  # leaf1 is now in use
        why = refused(Code.NO_ROOM, manager.register_connection, spec())
        assert "leaf1: all 255 epochs" in why
        manager.release_connection(other.number)
        assert manager.register_connection(spec()).epoch == 1
        assert rig.switches["leaf1"].loads == loads + 1
        rig.check()


def test_what_cannot_be_sprayed_is_refused_with_the_reason_and_leaves_nothing() -> None:
    rig = rig_of()
    with rig.register() as manager:
        ask = manager.register_connection
        assert "no host 'h9'" in refused(Code.NOT_FOUND, ask, spec("h9"))
        assert "both connected to leaf0" in refused(Code.REFUSED, ask, spec("h0", "h1"))
        assert "both ends are h0" in refused(Code.INVALID, ask, spec("h0", "h0"))
        assert "QP 1 of h0" in refused(Code.INVALID, ask, spec(qp=1))
        assert "MTU 1500" in refused(Code.INVALID, ask, spec(mtu=1500))
        assert "16 bits" in refused(Code.INVALID, ask, spec(answer_port=1 << 16))
        assert "8 bits" in refused(Code.INVALID, ask, spec(answer_tos=256))
        ask(spec(qp=0x10))
        assert "already the requester of connection 1" in refused(
            Code.EXISTS, ask, replace(spec(qp=0x10), destination_qp=9)
        )
        assert "already the responder" in refused(Code.EXISTS, ask, replace(spec(qp=0x10), source_qp=9))
        ask(spec("h1", "h4", 0x20))
        assert "leaf0: 2 connections start there" in refused(Code.NO_ROOM, ask, spec("h0", "h2", 0x30))
        ask(spec("h2", "h5", 0x20))
        assert "leaf2: 2 connections end there" in refused(Code.NO_ROOM, ask, spec("h3", "h4", 0x40))
        assert len(manager.connections()) == 3
        rig.check()
        # The other direction of a connection is one of its own.
        assert ask(ConnectionSpec("h2", "h0", 0x11, 0x10)).state is ConnectionState.SPRAYED
        rig.check()


def test_only_nics_that_say_that_they_take_packets_out_of_order_are_sprayed(tmp_path: Path) -> None:
    rig = rig_of(store=tmp_path / "db", out_of_order=("h0", "h2"))
    with rig.register() as manager:
        assert manager.register_connection(spec("h0", "h2")).state is ConnectionState.SPRAYED
        manager.register_host(HostInfo("h3"))  # goes back N
        for ends in (("h0", "h3"), ("h3", "h0"), ("h0", "h4"), ("h4", "h2")):  # h4 is not there
            why = refused(Code.REFUSED, manager.register_connection, spec(*ends, 0x200))
            assert why.startswith(f"{(set(ends) - {'h0', 'h2'}).pop()} does not say that its NIC takes packets out of")
        rig.check()
        assert held(rig, "leaf2") == {}
        manager.register_host(HostInfo("h3", out_of_order=True))
        assert manager.register_connection(spec("h0", "h3", 0x200)).state is ConnectionState.SPRAYED
        manager.register_host(HostInfo("h3"))
        rig.wait(lambda: manager.connections()[1].state is ConnectionState.ECMP)
        assert "h3 does not say" in manager.connections()[1].reason
        manager.register_host(HostInfo("h3", out_of_order=True))
        rig.wait(lambda: manager.connections()[1].state is ConnectionState.SPRAYED)
        manager.register_host(HostInfo("h3", out_of_order=True, nic=NicInfo(Recovery.GO_BACK_N)))
        link(rig, manager, "spine0", up=False)
        rig.wait(lambda: rig.settled() and not any(c.state is ConnectionState.CHANGING for c in manager.connections()))
        first, second = manager.connections()
        assert (len(first.paths), first.state) == (3, ConnectionState.SPRAYED)
        assert second.state is ConnectionState.ECMP
        assert second.reason == "the NIC of h3 goes back N, so it takes no packets out of order"
    rig.kill()
    with rig.again() as manager:  # the store has what hosts have said
        link(rig, manager, "spine0", up=True)
        wanted = (4, ConnectionState.SPRAYED)
        rig.wait(lambda: rig.settled() and (len((c := manager.connections()[0]).paths), c.state) == wanted)
        assert manager.connections()[1].reason == second.reason


@pytest.mark.parametrize(
    ("leaf", "reason"),
    [
        (SPINE, "leaf0: its program does not treat connections that start there differently"),
        (small(), "leaf0: its program does not treat connections that start there differently"),
        (LEAF.model_copy(update={"mode": Mode.SOURCE}), "leaf1: its program does not treat connections that end there"),
        (LEAF.model_copy(update={"paths": 2}), "leaf0: path set 0 has 4 paths; the program sprays over 1 to 2"),
    ],
)
def test_programs_that_cannot_are_named(leaf: ProgramSpec, reason: str) -> None:
    topology = load_topology(NETWORK)
    rig = Rig(topology, spread(topology, leaf), drain=0.0, out_of_order=topology.hosts)
    with rig.register() as manager:
        assert reason in refused(Code.NO_ROOM, manager.register_connection, spec())
        rig.check()


def test_a_host_with_links_to_two_switches_is_refused() -> None:
    rig = rig_of(given=False, out_of_order=())
    with rig.register() as manager:
        info = rig.info("leaf1")
        twice = replace(info, links=(*info.links, LinkPort(len(info.links), "h0")))
        manager.register_switch(twice)
        for host in rig.topology.hosts:
            manager.register_host(HostInfo(host, out_of_order=True))
        why = refused(Code.REFUSED, manager.register_connection, spec("h0", "h4"))
        assert "h0 is connected to leaf0 and leaf1" in why
        assert manager.register_connection(spec("h2", "h4")).state is ConnectionState.SPRAYED


def test_a_dead_path_is_left_after_nacks_pass_and_before_they_are_filtered_again() -> None:
    rig = rig_of()
    with rig.register() as manager:
        manager.register_connection(spec())
        writes = Writes(rig)
        link(rig, manager, "spine1", up=False)
        rig.wait(lambda: manager.connections()[0].generation == 2 and rig.settled())
        found = manager.connections()[0]
        assert (found.state, found.paths) == (ConnectionState.SPRAYED, ("spine0", "spine2", "spine3"))
        assert writes.take() == [
            ("leaf1", "delete answer_flows"),
            ("leaf1", "modify data_flows"),
            ("leaf0", "delete data_flows"),
            ("leaf0", "insert data_flows"),
            ("leaf1", "insert answer_flows"),
        ]
        assert flow(rig, "leaf0")["path_set"] == flow(rig, "leaf1")["path_set"] == found.path_set == 1
        assert held(rig, "leaf0")["paths"] == 256  # three paths take an entry for each value of the PSN's low byte
        rig.check()
        link(rig, manager, "spine1", up=True)
        rig.wait(lambda: len(manager.connections()[0].paths) == 4 and rig.settled())
        assert (manager.connections()[0].generation, flow(rig, "leaf1")["epoch"]) == (3, 1)
        rig.check()


def test_a_link_behind_the_spine_takes_its_path_away_too() -> None:
    rig = rig_of()
    with rig.register() as manager:
        manager.register_connection(spec())
        manager.register_connection(spec("h1", "h4", 0x200))
        link(rig, manager, "spine2", up=False, leaf="leaf1")
        rig.wait(lambda: manager.connections()[0].generation == 2 and rig.settled())
        first, second = manager.connections()
        assert first.paths == ("spine0", "spine1", "spine3")
        assert (second.paths, second.generation) == (("spine0", "spine1", "spine2", "spine3"), 1)
        assert first.path_set != second.path_set
        rig.check()


def test_without_any_path_a_connection_waits_for_one() -> None:
    rig = rig_of()
    with rig.register() as manager:
        manager.register_connection(spec())
        for spine in range(4):
            link(rig, manager, f"spine{spine}", up=False)
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.ECMP and rig.settled())
        assert "no path between h2 and leaf0" in manager.connections()[0].reason
        assert held(rig, "leaf0") == {}
        assert held(rig, "leaf1")["deliver"] == 1
        assert "answer_flows" not in held(rig, "leaf1")
        assert "no path" in refused(Code.UNREACHABLE, manager.register_connection, spec("h1", "h3"))
        rig.check()
        link(rig, manager, "spine3", up=True)
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.SPRAYED and rig.settled())
        assert manager.connections()[0].paths == ("spine3",)
        rig.check()


def test_spraying_is_turned_off_and_on() -> None:
    rig = rig_of()
    with rig.register() as manager:
        manager.register_connection(spec())
        writes = Writes(rig)
        found = manager.spray_connection(1, spray=False)
        assert (found.state, found.reason) == (ConnectionState.ECMP, "spraying is off")
        assert writes.take() == [("leaf1", "delete answer_flows"), ("leaf0", "delete data_flows")]
        link(rig, manager, "spine0", up=False)  # it stays off
        rig.wait(rig.settled)
        assert manager.connections()[0].state is ConnectionState.ECMP
        found = manager.spray_connection(1, spray=True)
        assert (found.state, found.reason, len(found.paths)) == (ConnectionState.SPRAYED, "", 3)
        assert [switch for switch, _ in writes.take()][-2:] == ["leaf0", "leaf1"]
        assert manager.spray_connection(1, spray=True) == found
        rig.check()


@pytest.mark.parametrize("switch", ["leaf0", "leaf1"])
@pytest.mark.parametrize("unreachable", [False, True])
def test_a_registration_that_a_switch_fails_leaves_nothing(switch: str, unreachable: bool) -> None:
    rig = rig_of()
    with rig.register() as manager:
        failed: list[str] = []

        def fault(name: str, step: str) -> None:
            if name == switch and step == "before insert data_flows" and not failed:
                failed.append(step)
                raise AgentError("it fails", unreachable=unreachable)

        rig.fault = fault
        code = Code.UNREACHABLE if unreachable else Code.REFUSED
        assert f"{switch}: it fails" in refused(code, manager.register_connection, spec())
        assert manager.connections() == []
        rig.check()
        assert held(rig, "leaf0") == held(rig, "leaf1") == {}
        found = manager.register_connection(spec())
        assert (found.number, found.epoch) == (2, 2)
        rig.check()


@pytest.mark.parametrize("switch", ["leaf0", "leaf1"])
@pytest.mark.parametrize("step", ["delete data_flows", "insert data_flows", "insert answer_flows", "modify data_flows"])
def test_a_change_of_paths_that_a_switch_fails_is_tried_again(switch: str, step: str) -> None:
    rig = rig_of()
    with rig.register() as manager:
        manager.register_connection(spec())
        failed = threading.Event()

        def fault(name: str, what: str) -> None:
            if (name, what) == (switch, f"before {step}") and not failed.is_set():
                failed.set()
                raise AgentError("it fails", unreachable=True)

        rig.fault = fault
        link(rig, manager, "spine1", up=False)
        rig.wait(lambda: len(manager.connections()[0].paths) == 3 and rig.settled())
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.SPRAYED and rig.settled())
        rig.check()


def test_a_source_leaves_dead_paths_although_the_destination_does_not_answer(tmp_path: Path) -> None:
    rig = rig_of(grace=60.0)
    with rig.register() as manager:
        manager.register_connection(spec())
        rig.fault = _silent("leaf1")
        link(rig, manager, "spine1", up=False)
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.ECMP)
        assert "leaf1" in manager.connections()[0].reason
        assert held(rig, "leaf0") == {}
        rig.fault = lambda switch, step: None
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.SPRAYED and rig.settled())
        rig.check()


def _silent(switch: str):  # type: ignore[no-untyped-def]
    def fault(name: str, step: str) -> None:
        if name == switch:
            raise AgentError("it does not answer", unreachable=True)

    return fault


def test_a_manager_that_restarts_finds_connections(tmp_path: Path) -> None:
    rig = rig_of(tmp_path / "db")
    rig.register()
    manager = rig.manager
    first = manager.register_connection(spec())
    second = manager.register_connection(spec("h1", "h3", 0x200, writes_only=True))
    manager.spray_connection(second.number, spray=False)
    before = manager.connections()
    rig.kill()
    rig.switches["leaf1"].restart()  # meanwhile it loses everything
    writes = Writes(rig)
    with rig.again() as manager:
        assert manager.connections() == before
        rig.check()
        assert not any(switch == "leaf0" for switch, _ in writes.take())  # it had what it should have
        assert flow_of(rig, "leaf1", "deliver")["epoch"] == first.epoch
        manager.release_connection(first.number)
        assert manager.register_connection(spec()).number == 3
        assert manager.connections()[1].epoch == 2
        rig.check()


def flow_of(rig: Rig, switch: str, action: str) -> Mapping[str, int]:
    found = [e for e in rig.switches[switch].holds().entries if e.action.name.endswith(action)]
    return min(found, key=lambda entry: entry.action.args["connection"]).action.args


@pytest.mark.sample(3)
@pytest.mark.parametrize("switch", ["leaf0", "leaf1"])
@pytest.mark.parametrize(
    ("request_", "left"), [("register", 0), ("release", 0), ("link", 1)], ids=["register", "release", "link"]
)
def test_killed_in_the_middle(tmp_path: Path, switch: str, request_: str, left: int) -> None:
    """The manager dies at every write at a switch; the next one finds a connection, or nothing of it."""
    for step in (
        "insert data_flows",
        "delete data_flows",
        "insert answer_flows",
        "delete answer_flows",
        "insert paths",
    ):
        rig = rig_of(tmp_path / f"db-{step.replace(' ', '-')}")
        rig.register()
        manager = rig.manager
        if request_ != "register":
            manager.register_connection(spec())
        died = threading.Event()

        def fault(name: str, what: str, step: str = step, rig: Rig = rig, died: threading.Event = died) -> None:
            if (name, what) == (switch, f"after {step}") and not died.is_set():
                died.set()
                rig.die()

        rig.fault = fault
        ended = threading.Thread(target=_ignored, args=(rig, request_), daemon=True)
        ended.start()
        if request_ == "link":
            rig.wait(
                lambda died=died, manager=manager, rig=rig: (
                    died.is_set()
                    or (  # type: ignore[misc]
                        manager.connections()[0].generation == 2 and rig.settled()
                    )
                )
            )
        else:
            ended.join()
        rig.kill()
        with rig.again() as manager:
            rig.wait(rig.settled)
            rig.wait(lambda manager=manager: all(c.state is ConnectionState.SPRAYED for c in manager.connections()))  # type: ignore[misc]
            assert len(manager.connections()) in ({left} if died.is_set() else {0, 1})
            rig.check()


def _ignored(rig: Rig, request: str) -> None:
    try:
        match request:
            case "register":
                rig.manager.register_connection(spec())
            case "release":
                rig.manager.release_connection(1)
            case "link":
                link(rig, rig.manager, "spine1", up=False)
    except ManagerError:
        pass


def test_a_switch_with_another_program_gets_its_connections_again_if_it_can() -> None:
    rig = rig_of()
    with rig.register() as manager:
        manager.register_connection(spec())
        _program(rig, manager, "leaf1", SPINE)
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.ECMP and rig.settled())
        assert "leaf1: its program does not treat" in manager.connections()[0].reason
        assert held(rig, "leaf0") == {}
        _program(rig, manager, "leaf1", LEAF.model_copy(update={"connections": 4}))
        rig.wait(lambda: manager.connections()[0].state is ConnectionState.SPRAYED and rig.settled())
        rig.check()


def _program(rig: Rig, manager: IncManager, name: str, program: ThemisSpec) -> None:
    switch = type(rig.switches[name])(name, program)
    rig.switches[name] = switch
    manager.register_switch(rig.info(name))


def test_groups_and_connections_share_a_fabric() -> None:
    """Collectives run on the spine and through leaves; a tree never has a node at a program without them."""
    topology = load_topology(NETWORK)
    rig = Rig(topology, spread(topology, spine=small()), drain=0.0, out_of_order=topology.hosts)
    with rig.register() as manager:
        manager.register_connection(spec())
        status = manager.init_group(group("g", "h0", "h2", "h4"))
        assert [name for name, parent in status.tree.items() if parent is None] == ["spine0"]
        why = refused(Code.NO_ROOM, manager.init_group, group("two", "h0", "h1", "h2"))
        assert "leaf0: its program serves no groups" in why
        rig.check()


def test_many_connections_move_together() -> None:
    rig = rig_of(leaf=LEAF.model_copy(update={"connections": 32}))
    with rig.register() as manager:
        pairs: Sequence[tuple[str, str]] = [("h0", "h2"), ("h2", "h4"), ("h4", "h0"), ("h1", "h5")]
        for number in range(24):
            manager.register_connection(spec(*pairs[number % 4], qp=0x100 + 2 * number))
        link(rig, manager, "spine1", up=False)
        rig.wait(lambda: rig.settled() and {len(c.paths) for c in manager.connections()} == {3, 4})
        assert [len(c.paths) for c in manager.connections()] == [3, 4, 3, 3] * 6
        assert {c.state for c in manager.connections()} == {ConnectionState.SPRAYED}
        rig.check()


def test_over_grpc(tmp_path: Path) -> None:
    rig = rig_of()
    address = f"unix:{tmp_path / 'm.sock'}"
    with rig.register() as manager, ManagerServer(manager, address), ManagerClient(address) as client:
        found = client.register_connection(spec(mtu=4096, answer_tos=0x68, writes_only=True))
        assert client.connections() == [found] == manager.connections()
        assert found.spec == spec(mtu=4096, answer_tos=0x68, writes_only=True)
        assert client.spray_connection(1, spray=False).reason == "spraying is off"
        assert client.spray_connection(1, spray=True).state is ConnectionState.SPRAYED
        assert "both connected to leaf0" in refused(Code.REFUSED, client.register_connection, spec("h0", "h1"))
        client.release_connection(1)
        assert client.connections() == []
        assert "no connection 1" in refused(Code.NOT_FOUND, client.release_connection, 1)
        # What a message leaves out has the API's defaults.
        bare = pb.ConnectionSpec(source="h0", destination="h2", source_qp=2, destination_qp=3)
        assert from_message(ConnectionSpec, bare) == ConnectionSpec("h0", "h2", 2, 3)
