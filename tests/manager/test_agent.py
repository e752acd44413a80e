"""IncAgent on real switch processes: what it wants is there, what it does not is gone, and failures say what failed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, TypeVar

import pytest
from patience import PATIENCE_S

from p4gen.groups.group import Endpoint, PlacedEdge, SwitchConfig
from p4gen.manager.api import AgentError, Changes
from p4gen.manager.switches.agent import IncAgent, cookie_of
from p4gen.manager.switches.ticks import TickSender
from p4gen.model.entries import Action, CloneSession, Entry, Exact, MulticastGroup, Replica
from p4gen.p4rt import encoded
from p4gen.p4rt.client import Client
from p4gen.p4rt.encoded import CLONE, MULTICAST
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.switch.running import scratch

from .processes import SPEC, TARGETS, SwitchRig, canonical, close_rigs, config, eventually, placement, rigs, size

T = TypeVar("T")
NOTHING = SwitchConfig((), ())
DELETE = 3


@pytest.fixture(scope="module", autouse=True)
def processes() -> Iterator[None]:
    yield
    close_rigs()


@pytest.fixture(params=TARGETS)
def rig(request: pytest.FixtureRequest) -> SwitchRig:
    return rigs(request.param)


@pytest.fixture
def embedded() -> SwitchRig:
    return rigs("embedded")


@pytest.fixture
def agents() -> Iterator[Callable[..., IncAgent]]:
    made: list[IncAgent] = []

    def make(rig: SwitchRig, spec: EpicSpec = SPEC, **more: Any) -> IncAgent:
        made.append(IncAgent(rig.info(spec), **more))
        return made[-1]

    yield make
    for agent in made:
        agent.close()


Agents = Callable[..., IncAgent]


def seen_by_others(rig: SwitchRig) -> Any:
    """The entries by table, as a controller that is not the agent reads them."""
    with Client(rig.address, election=(0, 1)) as other:
        tables = [other.entries(table.name) for table in other.schema.tables.values()]
        return canonical(SwitchConfig(tuple(entry for table in tables for entry in table), ()))[0]


def test_a_switch_holds_what_is_wanted(rig: SwitchRig, agents: Agents) -> None:
    agent = agents(rig)
    one, two = config(1), config(2)
    assert agent.apply(one) == Changes(inserted=size(one))
    assert canonical(agent.read()) == canonical(one)
    assert seen_by_others(rig) == canonical(one)[0]
    more = agent.apply(two)
    assert more.inserted == size(two) - size(one)
    assert canonical(agent.read()) == canonical(two)
    assert agent.apply(two) == Changes()
    assert agent.apply(two, resync=True) == Changes()
    assert agent.apply(one) == Changes(modified=more.modified, deleted=more.inserted)
    assert canonical(agent.read()) == canonical(one)
    assert agent.apply(NOTHING) == Changes(deleted=size(one))
    assert canonical(agent.read()) == (set(), set(), set())
    assert seen_by_others(rig) == set()


def test_only_what_differs_is_written(rig: SwitchRig, agents: Agents) -> None:
    agent = agents(rig)
    wanted = config(1)
    agent.apply(wanted)
    (number,) = (n for n, entry in enumerate(wanted.entries) if entry.table == "contexts")
    entries = list(wanted.entries)
    entries[number] = replace(entries[number], action=Action("set_context", {"epoch": 77, "first_psn": 5}))
    groups = list(wanted.multicast_groups)
    groups[0] = MulticastGroup(groups[0].group_id, groups[0].replicas[:1])
    changed = SwitchConfig(tuple(entries), tuple(groups), (*wanted.clone_sessions, CloneSession(77, (Replica(1),))))
    assert agent.apply(changed) == Changes(inserted=1, modified=2)
    assert canonical(agent.read()) == canonical(changed)
    assert agent.apply(wanted) == Changes(modified=2, deleted=1)
    assert canonical(agent.read()) == canonical(wanted)


def test_what_others_did_is_put_right(rig: SwitchRig, agents: Agents) -> None:
    agent = agents(rig)
    wanted = config(1)
    agent.apply(wanted)
    with Client(rig.address) as other:
        # It is the primary now, and undoes some of it.
        with pytest.raises(AgentError, match=r"s0: cannot apply: .*(PERMISSION_DENIED|not primary)"):
            agent.apply(config(2))
        other.delete(next(e for e in wanted.entries if e.table == "contexts"))
        stray = Entry("addresses", {"hdr.ipv4.dst_addr": Exact(0x01020304)}, Action("NoAction"))
        other.insert(stray)
        other.set_multicast_group(MulticastGroup(wanted.multicast_groups[0].group_id, (Replica(5, 9),)))
        other.set_multicast_group(MulticastGroup(4000, (Replica(5, 9),)))
        other.set_clone_session(CloneSession(wanted.clone_sessions[0].session_id, ()))
    assert agent.apply(wanted) == Changes(inserted=2, modified=1, deleted=2)
    assert canonical(agent.read()) == canonical(wanted)


def test_what_is_known_is_not_read_again_unless_it_is_asked_for(embedded: SwitchRig, agents: Agents) -> None:
    agent = agents(embedded)
    wanted = config(1)
    agent.apply(wanted)
    with Client(embedded.address) as other:
        other.delete(wanted.entries[0])
    assert agent.apply(wanted) == Changes()

    def repaired() -> Changes | None:
        try:
            return agent.apply(wanted, resync=True)
        except AgentError:  # for a moment the other one is still the primary
            return None

    assert eventually(repaired) == Changes(inserted=1)


def test_a_second_agent_keeps_what_there_is(rig: SwitchRig, agents: Agents) -> None:
    wanted = config(2)
    first = agents(rig)
    first.apply(wanted)
    count_a_drop(first)
    before = sum(first.drops().values())
    first.close()
    second = agents(rig)
    assert canonical(second.read()) == canonical(wanted)
    assert second.apply(wanted) == Changes()
    # A second tick may have been on its way.
    assert sum(second.drops().values()) >= before, "the program was loaded again"


def test_another_program_is_loaded_and_the_old_one_s_entries_are_gone(rig: SwitchRig, agents: Agents) -> None:
    first = agents(rig)
    first.apply(config(2))
    first.close()
    spec = EpicSpec(mode=Mode.II, lanes=8, groups=8, ports=8)
    second = agents(rig, spec)
    assert cookie_of(second.info) != cookie_of(first.info)
    assert canonical(second.read()) == (set(), set(), set())
    assert second.apply(config(1, spec)) == Changes(inserted=size(config(1, spec)))


def count_a_drop(agent: IncAgent) -> None:
    """Have the program drop a frame and count it: a tick for a queue pair of the group that no edge has."""
    edge = placement(1).edges[0]
    stray = replace(edge.edge, local=replace(edge.edge.local, qp=0xABCDE))
    with_ticks = agent._ticks or TickSender()
    agent._ticks = with_ticks
    agent.set_ticks([PlacedEdge(edge.switch, edge.pipeline, edge.context, stray)])
    eventually(lambda: agent.ticks_per_second)
    agent.set_ticks([])
    with_ticks.close()
    eventually(agent.drops)


def test_a_restart_leaves_nothing(rig: SwitchRig, agents: Agents) -> None:
    agent = agents(rig)
    agent.apply(config(2))
    count_a_drop(agent)
    agent.restart()
    assert agent.drops() == {}
    assert canonical(agent.read()) == (set(), set(), set())
    assert agent.apply(config(2)) == Changes(inserted=size(config(2)))


# --- what a switch refuses ---


def addresses(first: int, count: int) -> tuple[Entry, ...]:
    return tuple(Entry("addresses", {"hdr.ipv4.dst_addr": Exact(first + i)}, Action("NoAction")) for i in range(count))


def test_a_full_table(rig: SwitchRig, agents: Agents) -> None:
    agent = agents(rig)
    room = agent._schema.tables.named("addresses").size
    full = SwitchConfig(addresses(0x0A000000, room), ())
    agent.apply(full)
    with pytest.raises(AgentError) as caught:
        agent.apply(SwitchConfig((*full.entries, *addresses(0x0B000000, 1)), ()))
    assert not caught.value.unreachable
    message = caught.value.diagnostics[0].message
    assert "s0: " in message
    assert "insert table IncIngress.lookup_table.addresses [hdr.ipv4.dst_addr=0xb000000]: " in message
    assert message.endswith(f" (it has room for {room} entries, {room + 1} are wanted)")
    # Whatever it holds now: the next time it is put right, also where all of a full table changes.
    other = SwitchConfig(addresses(0x0C000000, room), ())
    assert agent.apply(other) == Changes(inserted=room, deleted=room)
    assert canonical(agent.read()) == canonical(other)


def test_many_failures_are_counted(embedded: SwitchRig, agents: Agents) -> None:
    agent = agents(embedded)
    with pytest.raises(AgentError, match=r"\(and 15 more like it\)"):
        agent.apply(SwitchConfig(addresses(0, agent._schema.tables.named("addresses").size + 20), ()))


@pytest.mark.parametrize(
    ("entry", "cause"),
    [
        (Entry("nowhere", {}, Action("NoAction")), "table nowhere: no table of that name"),
        (Entry("contexts", {"kontext": Exact(1)}, Action("NoAction")), "key kontext: no key of that name"),
        (Entry("contexts", {"context": Exact(1)}, Action("set_pattern")), "action set_pattern: no action"),
        (
            Entry("contexts", {"context": Exact(1)}, Action("set_context", {"epoch": 256, "first_psn": 0})),
            r"parameter epoch: value 256 does not fit bit<8>",
        ),
        (Entry("contexts", {"context": Exact(1)}, Action("set_context", {"epoch": 1})), "first_psn: missing"),
        (Entry("contexts", {"context": Exact(1 << 40)}, Action("NoAction")), "does not fit"),
    ],
)
def test_an_entry_that_does_not_fit_the_program(embedded: SwitchRig, agents: Agents, entry: Entry, cause: str) -> None:
    agent = agents(embedded)
    agent.apply(config(1))
    with pytest.raises(AgentError, match=cause) as caught:
        agent.apply(SwitchConfig((*config(1).entries, entry), ()))
    assert "s0: cannot apply" in str(caught.value)
    assert agent.apply(config(1)) == Changes(), "something of it was written"


def test_an_entry_that_is_wanted_twice(embedded: SwitchRig, agents: Agents) -> None:
    agent = agents(embedded)
    key = {"context": Exact(1)}
    one, two = (Entry("contexts", key, Action("set_context", {"epoch": n, "first_psn": 0})) for n in (1, 2))
    assert agent.apply(SwitchConfig((one, one), ())) == Changes(inserted=1)
    with pytest.raises(AgentError, match=r"contexts \[context=0x1\] occurs twice"):
        agent.apply(SwitchConfig((one, two), ()))


@pytest.mark.parametrize("what", ["forgets", "alters", "keeps"])
def test_a_switch_that_does_not_do_what_it_says(
    rig: SwitchRig, agents: Agents, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    agent = agents(rig)
    agent.apply(config(1))
    session = agent._connected().session
    write = session.write_encoded

    def lie(updates: Any) -> None:
        for kind, entity in updates:
            if what == "keeps" and kind == DELETE:
                continue
            if what != "keeps" and kind != DELETE and entity.startswith(b"\x4a"):  # multicast groups
                if what == "forgets":
                    continue
                entity = encoded.entity(*encoded.multicast_group(MulticastGroup(99, (Replica(1),))))  # noqa: PLW2901
            write([(kind, entity)])

    monkeypatch.setattr(session, "write_encoded", lie)
    if what == "keeps":
        with pytest.raises(AgentError, match=r"s0: table .*: the switch still holds it after deleting it"):
            agent.apply(NOTHING)
    else:
        group = MulticastGroup(99, (Replica(1), Replica(2)))
        complaint = "does not hold it" if what == "forgets" else "holds something else"
        with pytest.raises(AgentError, match=rf"s0: multicast group 99: the switch accepted the entry but {complaint}"):
            agent.apply(SwitchConfig(config(1).entries, (*config(1).multicast_groups, group)))


# --- the order of writes ---


def test_the_order_of_writes(embedded: SwitchRig, agents: Agents, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = agents(embedded)
    agent.apply(config(2))
    names = {table.id: table.name.rpartition(".")[2] for table in agent._schema.tables.values()}
    names |= {MULTICAST: "multicast", CLONE: "clone"}
    steps: list[list[tuple[int, str]]] = []
    write = agent._write

    def note(client: Client, updates: Any, target: Any) -> None:
        steps.append([(kind, names[key[0]]) for kind, key, _ in updates])
        write(client, updates, target)

    monkeypatch.setattr(agent, "_write", note)
    # One group less, another context for the other, and a next hop that is not needed any more.
    wanted = config(3)
    less = SwitchConfig(
        tuple(
            entry
            for entry in wanted.entries
            if entry.match.get("context") != Exact(0) and entry.match != {"next_hop": Exact(1)}
        ),
        wanted.multicast_groups[9:],
        wanted.clone_sessions[1:],
    )
    changes = agent.apply(less)
    assert changes.deleted
    assert changes.inserted
    kinds = [{kind for kind, _ in step} for step in steps]
    assert kinds[0] == {DELETE}, "deletions that make room come first"
    assert [table for _, table in steps[0]] == sorted(
        (table for _, table in steps[0]), key=list(names.values()).index
    ), "tables that are looked up first lose their entries first"
    written = next(i for i, step in enumerate(steps) if step[0][1] in names.values() and DELETE not in kinds[i])
    assert {table for _, table in steps[written]} <= {"multicast", "clone"}, "groups come before entries"
    inserted = [table for _, table in steps[written + 1]]
    assert inserted == sorted(inserted, key=list(names.values()).index, reverse=True)
    assert steps[written + 2] == [(DELETE, "next_hops")], "routes lead to next hops until they are changed"
    assert {table for _, table in steps[-1]} == {"multicast", "clone"}, "groups go after what refers to them"


# --- switches that go ---


@pytest.mark.long
def test_a_switch_that_is_killed_and_comes_back(rig: SwitchRig, agents: Agents) -> None:
    lost: list[str] = []
    agent = agents(rig, lost=lost.append)
    wanted = config(2)
    agent.apply(wanted)
    rig.kill()
    eventually(lambda: lost == ["s0"])
    with pytest.raises(AgentError, match="s0 does not answer") as caught:
        agent.drops()
    assert caught.value.unreachable
    for _ in range(2):
        with pytest.raises(AgentError, match="s0 does not answer: nothing listens at unix:") as caught:
            agent.apply(wanted)
        assert caught.value.unreachable
    rig.start()
    with pytest.raises(AgentError, match="no connection to"):
        agent.drops()
    assert agent.apply(wanted) == Changes(inserted=size(wanted))
    assert canonical(agent.read()) == canonical(wanted)
    assert agent.drops() == {}
    assert lost == ["s0"]


def test_a_switch_that_hangs(rig: SwitchRig, agents: Agents) -> None:
    agent = agents(rig, timeout=0.5)

    def patiently(run: Callable[[], T]) -> T:
        """For so short a time-out, any switch may hang on a loaded machine."""
        while True:
            try:
                return run()
            except AgentError:
                assert time.monotonic() < deadline

    deadline = time.monotonic() + PATIENCE_S
    patiently(lambda: agent.apply(config(1)))
    rig.signal(signal.SIGSTOP)
    with pytest.raises(AgentError, match="s0 does not answer") as caught:
        agent.apply(config(2))
    assert caught.value.unreachable
    with pytest.raises(AgentError, match="s0 does not answer") as caught:
        agent.apply(config(2))
    assert caught.value.unreachable
    rig.signal(signal.SIGCONT)
    patiently(lambda: agent.apply(config(2)))
    assert canonical(patiently(agent.read)) == canonical(config(2))


def test_nothing_listens(agents: Agents, embedded: SwitchRig) -> None:
    agent = agents(embedded)
    agent.info = replace(agent.info, address="127.0.0.1:1")
    with pytest.raises(AgentError, match=r"s0 does not answer: nothing listens at 127\.0\.0\.1:1") as caught:
        agent.apply(NOTHING)
    assert caught.value.unreachable


def test_a_program_that_the_switch_refuses(embedded: SwitchRig) -> None:
    agent = IncAgent(replace(embedded.info(), device_config=b"control nonsense"))
    with pytest.raises(AgentError, match="s0: cannot apply: INVALID_ARGUMENT") as caught:
        agent.apply(NOTHING)
    assert not caught.value.unreachable


# --- ticks ---


@pytest.mark.long
def test_ticks_arrive_and_pause_with_the_connection(rig: SwitchRig, agents: Agents) -> None:
    with_ticks = TickSender(0.005)
    agent = agents(rig, ticks=with_ticks)
    edge = placement(1).edges[0]
    stray = replace(edge, edge=replace(edge.edge, local=Endpoint(edge.edge.local.mac, edge.edge.local.ip, 0xABCDE)))
    agent.set_ticks([stray])  # nothing is connected yet
    time.sleep(0.05)
    assert agent.ticks_per_second == 0
    agent.apply(config(1))
    eventually(lambda: sum(agent.drops().values()) >= 20)
    rig.kill()
    eventually(lambda: agent.ticks_per_second == 0)
    rig.start()
    agent.apply(config(1))
    eventually(lambda: sum(agent.drops().values()) >= 20)
    agent.set_ticks([])

    def still() -> bool:
        before = agent.drops()
        time.sleep(0.05)
        return agent.drops() == before

    eventually(still)
    with_ticks.close()


@pytest.mark.long
def test_a_switch_without_a_cpu_port_gets_no_more_ticks(agents: Agents, caplog: pytest.LogCaptureFixture) -> None:
    with scratch() as folder:
        rig = SwitchRig(folder, cpu_port=0)
        rig.start()
        with_ticks = TickSender(0.005)
        agent = agents(rig, ticks=with_ticks)
        agent.apply(config(1))
        agent.set_ticks(placement(1).edges)
        eventually(lambda: "s0 refuses ticks, so they stop" in caplog.text)
        assert agent.ticks_per_second == 0
        assert "CPU port" in caplog.text
        assert agent.apply(config(2)).inserted, "all else works"
        with_ticks.close()
        agent.close()
        rig.close()
