"""What survives the manager, and files that are none of its."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from placement.networks import spec_for, topologies

from p4gen.errors import InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.verbs import Peer, Recovery
from p4gen.manager.api import GroupSpec, GroupState, HostInfo, LinkPort, NicInfo, SwitchInfo
from p4gen.manager.store.encoding import decode, encode
from p4gen.manager.store.schema import APPLICATION
from p4gen.manager.store.store import Store, StoredGroup, StoreError
from p4gen.papers.epic.spec import Mode
from p4gen.plan.placement.network import place
from p4gen.plan.placement.placed import GroupRequest, PlacedGroup, PlacedTrees, RankEnd
from p4gen.plan.placement.pools import Kind
from p4gen.plan.placement.spans import Spans
from p4gen.plan.placement.tree import NodeKey
from p4gen.vocabulary.topology import load_topology

from .rig import added_since, small

INFO = SwitchInfo("s0", "unix:/s0", small("III"), "p4info", bytes(range(256)), links=(LinkPort(0, "h0", "veth0"),))


def placed(*, sync: PsnSync = PsnSync.SUBGROUPS, trees: int = 1) -> PlacedTrees:
    topology = load_topology("tree-3-2")
    request = GroupRequest(topology.rank_hosts, sync=sync)
    groups = place(topology, small("III", groups=64), [request] * trees).groups
    return PlacedTrees(groups, tuple(5e9 / number for number in range(1, trees + 1)) if trees > 1 else ())


RXE = NicInfo(Recovery.GO_BACK_N, (256, 1024), 129, 128, ((17, 33), (40, 41)))


def stored(name: str = "g", state: GroupState = GroupState.ACTIVE) -> StoredGroup:
    return StoredGroup(GroupSpec(name, ("h0", "h1"), slots=8), state, 3, 4, "why")


@given(topologies(), st.sampled_from(Mode), st.sampled_from(PsnSync), st.sampled_from([1, 2]), st.data())
def test_any_placed_group_is_read_as_written(  # type: ignore[no-untyped-def]
    topology, mode: Mode, sync: PsnSync, pipelines: int, data: st.DataObject
) -> None:
    assume(not (mode.stores and sync is PsnSync.REFINED))  # which it refuses
    ranks = data.draw(st.lists(st.sampled_from(topology.hosts), min_size=1, max_size=4, unique=True))
    request = GroupRequest(tuple(ranks), sync=sync)
    (group,) = place(topology, spec_for(topology, [request], mode, pipelines), [request]).groups
    assert decode(PlacedGroup, encode(group)) == group
    assert decode(SwitchInfo, encode(INFO)) == INFO
    with pytest.raises((TypeError, ValueError)):
        decode(GroupSpec, ["g", [1], None, "refined", [], None])


@pytest.mark.parametrize("trees", [1, 3])
def test_everything_comes_back(tmp_path: Path, trees: int) -> None:
    store = Store(tmp_path / "db")
    group = placed(trees=trees)
    with store.transaction():
        store.put_switch(5, INFO)
        store.put_host(HostInfo("h0"), 2)
        store.put_host(HostInfo("h0", out_of_order=True), 2)
        store.put_host(HostInfo("h1", nic=RXE), 3)
        store.put_ports_down([("s0", 1)])
        store.put_group(stored())
        store.put_placement("g", 3, group, 7, 1000)
        store.put_agreed("g", 3, 42)
        store.put_epochs("s0", Kind.SLOT, 1, 9, Spans([(0, 8), (16, 24)]))
        store.put_meta("topology", 99)
    store.close()
    store = Store(tmp_path / "db")
    found = store.load()
    assert found.switches == {"s0": (5, INFO)}
    assert (found.hosts, found.out_of_order, found.ports_down) == ({"h0": 2, "h1": 3}, {"h0"}, {("s0", 1)})
    assert found.nics == {"h1": RXE}
    assert (found.next_tree, found.next_qp, found.topology) == (7, 1000, 99)
    assert found.groups["g"] == replace(stored(), placements={3: group}, agreed={3: 42})
    assert list(found.histories["s0"].seen(Kind.SLOT, 1, 9)) == [(0, 8), (16, 24)]
    with store.transaction():
        store.drop_group("g")
        store.drop_epochs("s0")
        store.drop_nodes()
    assert not any(store.counts().values())
    store.close()


def test_a_file_of_an_earlier_version_is_read_and_written_as_it_was(tmp_path: Path) -> None:
    sample = (Path(__file__).parent / "store-1.sql").read_text(encoding="utf-8")
    with sqlite3.connect(tmp_path / "db") as db:
        db.executescript(sample)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute("PRAGMA user_version = 1")
    db.close()
    store = Store(tmp_path / "db")
    found = store.load()
    assert found.switches == {"s0": (5, INFO)}
    assert found.groups["g"].spec == GroupSpec("g", ("h0", "h1", "h2"), slots=8)
    whole = found.groups["g"].placements[3]
    (group,) = whole.parts
    assert not whole.rates
    assert (group.request.ranks, group.switches, group.number) == (("h0", "h1", "h2"), ("s0", "s1", "s2"), 0)
    assert group.channels[0].ends[2] == RankEnd(514, Peer(0x0200_0001_0003, 0x0AFF_0001, 257, 53250))
    assert group.channels[0].contexts[NodeKey("s1", 0)].base_down == 2
    with store.transaction():
        store.drop_group("g")
        store.put_switch(5, found.switches["s0"][1])
        store.put_group(found.groups["g"])
        store.put_placement("g", 3, whole, found.next_tree, found.next_qp)
        store.put_agreed("g", 3, 42)
    store.close()
    with sqlite3.connect(tmp_path / "db") as db:
        for table in added_since(1):
            db.execute(f"DROP TABLE {table}")
        again = "".join(f"{line}\n" for line in db.iterdump())
    db.close()
    assert sorted(map(in_order, again.splitlines())) == sorted(map(in_order, sample.splitlines()))


def in_order(line: str) -> list[str]:
    """The parts of a line of SQL; the fields of a JSON object have no order."""
    return sorted(re.split(r"[{},] ?", line))


def write(store: Store, group: PlacedTrees) -> None:
    with store.transaction():
        store.put_group(stored("h"))
        store.put_placement("h", 1, group, 0, 0)


def test_nothing_is_given_twice() -> None:
    store = Store()
    group = placed(sync=PsnSync.REFINED)
    with store.transaction():
        store.put_group(stored())
        store.put_placement("g", 3, group, 0, 0)
    before = store.counts()
    first = replace(group.first, addresses={name: ip + 256 for name, ip in group.first.addresses.items()})
    other = PlacedTrees((first,))
    for again in (group, other):  # the same tree number; then only the same contexts
        with pytest.raises(StoreError, match="UNIQUE constraint failed"):
            write(store, again)
        assert store.counts() == before, "all or nothing"


def test_files_of_others(tmp_path: Path) -> None:
    def refused(name: str) -> str:
        with pytest.raises(InputError) as caught:
            Store(tmp_path / name).load()
        return caught.value.reason.removeprefix(f"{tmp_path / name}: ")

    (tmp_path / "text").write_text("not a database at all, but long enough to be looked at " * 20)
    assert refused("text") == "not an SQLite file"
    with sqlite3.connect(tmp_path / "foreign") as db:
        db.execute("CREATE TABLE groups (name)")
    db.close()
    assert refused("foreign") == "an SQLite file, but not one of p4gen's manager"
    Store(tmp_path / "new").close()
    with sqlite3.connect(tmp_path / "new") as db:
        db.execute("PRAGMA user_version = 9")
    db.close()
    assert refused("new") == "its schema is 9, this p4gen's is 8"
    assert refused("no/such/folder") == "unable to open database file"
    first = Store(tmp_path / "used")
    assert refused("used") == "another manager is using it"
    first.close()
    Store(tmp_path / "used").close()


@pytest.mark.parametrize("column", ["spec", "state", "placed"])
def test_damaged_rows(tmp_path: Path, column: str) -> None:
    store = Store(tmp_path / "db")
    with store.transaction():
        store.put_group(stored())
        store.put_placement("g", 3, placed(), 0, 0)
    store.close()
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute(f"UPDATE {'placements' if column == 'placed' else 'groups'} SET {column} = '[1'")
    db.close()
    store = Store(tmp_path / "db")
    with pytest.raises(InputError, match="damaged"):
        store.load()
    store.close()


def test_a_row_of_the_wrong_type_is_told_in_one_line(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    with store.transaction():
        store.put_group(stored())
    store.close()
    with sqlite3.connect(tmp_path / "db") as db:
        db.execute("""UPDATE groups SET spec = '["g", ["h0", 1], null, "refined", [], null]'""")
    db.close()
    store = Store(tmp_path / "db")
    with pytest.raises(InputError) as caught:
        store.load()
    store.close()
    assert caught.value.reason == f"{tmp_path / 'db'}: damaged: ranks.1: Input should be a valid string"


def test_damaged_pages(tmp_path: Path) -> None:
    store = Store(tmp_path / "db")
    with store.transaction():
        for number in range(200):
            store.put_group(stored(f"g{number}"))
    store.close()
    raw = bytearray((tmp_path / "db").read_bytes())
    raw[4096 * 3 : 4096 * 12] = bytes(4096 * 9)
    (tmp_path / "db").write_bytes(raw)
    with pytest.raises(InputError, match=r"damaged|malformed"):
        Store(tmp_path / "db").load()
