"""The control plane: names, refusals with their cause, all-or-nothing batches (P4Runtime 1.4, section 9)."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from p4gen.model import ControlError, Model
from p4gen.model.entries import (
    Action,
    CloneSession,
    CounterValue,
    Entry,
    Exact,
    Lpm,
    MulticastGroup,
    Range,
    Replica,
    Ternary,
)
from p4gen.p4 import ir

from .handmade import POS, Maker, action, assign, bit, register, table, var


def make(kind: str = "exact", **options: Any) -> Model:
    maker = Maker()
    port = ir.Variable("port", bit(9), POS)
    go = action("ig.go", [assign(maker.sm("egress_spec"), var(port))], port)
    nop = action("ig.nop", ())
    maker.tables.append(table("ig.t", [(maker.h("a"), kind, "hdr.h.a")], (go, nop), nop, **options))
    apply = ir.ApplyTable(bit(1), POS, maker.tables[0], None)
    maker.ingress.append(ir.Evaluate(POS, apply))
    maker.externs.append(register("ig.r", 4, bit(8)))
    return maker.model()


def entry(value: Any, port: int = 3, priority: int = 0, name: str = "go") -> Entry:
    return Entry("t", {"a": value}, Action(name, {"port": port} if name.endswith("go") else {}), priority)


def test_names_are_full_or_unique_suffixes() -> None:
    model = make()
    model.insert(
        entry(1), Entry("ig.t", {"hdr.h.a": Exact(2)}, Action("ig.go", {"port": 4})), entry(5, 6, name="ig.go")
    )
    assert [model.process(0, bytes([a, 0]))[0][0] for a in (1, 2, 5, 9)] == [3, 4, 6, 0]
    assert model.entries("t")[1] == Entry("ig.t", {"hdr.h.a": Exact(2)}, Action("ig.go", {"port": 4}), 0)


@pytest.mark.parametrize(
    ("wrong", "cause"),
    [
        (Entry("nix", {}, Action("go")), "table nix: no table of that name; there is ig.t"),
        (Entry("t", {"b": 1}, Action("nop")), "table ig.t: key b: no key of that name; there is hdr.h.a"),
        (Entry("t", {}, Action("nop")), "table ig.t: key hdr.h.a: missing"),
        (entry(256), "table ig.t: key hdr.h.a: value 256 does not fit bit<8>"),
        (entry(Ternary(1, 1)), "table ig.t: key hdr.h.a: it is exact, and Ternary does not fit it"),
        (entry(1, name="fly"), "table ig.t: action fly: no action of that name; there are"),
        (entry(1, port=512), "table ig.t: action ig.go: parameter port: value 512 does not fit bit<9>"),
        (Entry("t", {"a": 1}, Action("go")), "table ig.t: action ig.go: parameter port: missing"),
        (Entry("t", {"a": 1}, Action("nop", {"x": 1})), "no parameter x; there are none"),
        (entry(1, priority=7), "table ig.t: its entries have no priority"),
        (entry(7), "table ig.t: an entry with a=0x7 already exists"),
    ],
)
def test_refusals_name_the_thing_and_the_alternatives(wrong: Entry, cause: str) -> None:
    model = make()
    model.insert(entry(7))
    with pytest.raises(ControlError) as caught:
        model.insert(entry(8), wrong)
    assert cause in str(caught.value)
    assert "\n" not in str(caught.value)
    assert [e.match["hdr.h.a"] for e in model.entries("t")] == [Exact(7)], "the batch has left something behind"


def test_a_failed_batch_of_modifications_and_deletions_changes_nothing() -> None:
    model = make()
    model.insert(entry(1, 3), entry(2, 4))
    before = model.entries("t")
    with pytest.raises(ControlError):
        model.modify(entry(1, 9), entry(5, 9))
    with pytest.raises(ControlError):
        model.delete(entry(1), entry(5))
    assert sorted(map(repr, model.entries("t"))) == sorted(map(repr, before))


@pytest.mark.parametrize(
    ("kind", "match"), [("ternary", Ternary(1, 0xF)), ("range", Range(1, 2)), ("optional", Exact(1))]
)
def test_priority_is_required_where_entries_may_overlap(kind: str, match: Any) -> None:
    model = make(kind)
    with pytest.raises(ControlError, match="needs a priority"):
        model.insert(entry(match))
    model.insert(entry(match, priority=2))
    assert model.entries("t")[0].match == {"hdr.h.a": match}
    model.insert(Entry("t", {}, Action("go", {"port": 5}), 1))
    assert [model.process(0, bytes([a, 0]))[0][0] for a in (1, 200)] == [3, 5]


def test_lpm_needs_no_priority_and_a_value_without_stray_bits() -> None:
    model = make("lpm")
    model.insert(entry(Lpm(0x10, 4), 4), entry(Lpm(0x12, 8), 5))
    assert [model.process(0, bytes([a, 0]))[0][0] for a in (0x11, 0x12, 0x20)] == [4, 5, 0]
    with pytest.raises(ControlError, match="has bits outside its mask"):
        model.insert(entry(Lpm(0x11, 4)))
    with pytest.raises(ControlError, match="prefix length 9"):
        model.insert(entry(Lpm(0, 9)))


def test_a_full_table_and_a_const_table_refuse() -> None:
    model = make(size=2)
    model.insert(entry(1), entry(2))
    with pytest.raises(ControlError, match="full, it has room for 2"):
        model.insert(entry(3))
    with pytest.raises(ControlError, match="its entries are const"):
        make(const_entries=True).insert(entry(1))
    with pytest.raises(ControlError, match="its default action is const"):
        make(const_default=True).set_default("t", Action("nop"))


def test_default_action_can_be_replaced_and_restored() -> None:
    model = make()
    model.set_default("t", Action("go", {"port": 7}))
    assert model.process(0, b"\0\0") == [(7, b"\0\0")]
    assert model.default("t") == Action("ig.go", {"port": 7})
    model.set_default("t", None)
    assert model.process(0, b"\0\0") == [(0, b"\0\0")]


def test_replication_is_checked() -> None:
    model = make()
    for group, cause in (
        (MulticastGroup(0, ()), "the id must be"),
        (MulticastGroup(1, (Replica(512),)), "port 512"),
        (MulticastGroup(1, (Replica(1, 1 << 16),)), "rid 65536"),
        (MulticastGroup(1, (Replica(1), Replica(1))), "same port and rid"),
    ):
        with pytest.raises(ControlError, match=cause):
            model.set_multicast_group(group)
    with pytest.raises(ControlError, match="is negative"):
        model.set_clone_session(CloneSession(1, (), -1))


def test_state_can_be_read_and_reset() -> None:
    model = make()
    model.write_register("r", 2, 255)
    assert model.registers("r") == [0, 0, 255, 0]
    assert model.register("ig.r", 2) == 255
    for call, cause in (
        (lambda: model.register("r", 4), "index 4 is out of range"),
        (lambda: model.write_register("r", 0, 256), "value 256"),
        (lambda: model.counter("c"), "counter c: no counter of that name; there are none"),
        (lambda: model.entry_counter(entry(1)), "it has no direct counter"),
    ):
        with pytest.raises(ControlError, match=cause):
            call()
    model.insert(entry(1))
    model.reset()
    assert model.registers("r") == [0] * 4
    assert model.entries("t") == []


def test_direct_counters_count_hits_by_entry() -> None:
    counter = ir.ExternInstance("ig.c", "direct_counter", (), ("packets_and_bytes",), (), POS)
    model = make(direct=(counter,))
    model.insert(entry(1), entry(2))
    for packet in (b"\1\0", b"\1\0xyz", b"\2\0", b"\3\0"):
        model.process(0, packet)
    assert model.entry_counter(entry(1)) == CounterValue(2, 7)
    assert model.entry_counter(entry(2)) == CounterValue(1, 2)


def test_errors_survive_a_trip_between_processes() -> None:
    with pytest.raises(ControlError) as caught:
        make().delete(entry(1))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is ControlError
    assert str(again) == str(caught.value)
