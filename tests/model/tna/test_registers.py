"""Registers and the actions on them."""

from __future__ import annotations

import pytest

from p4gen.errors import InputError
from p4gen.model import Trace
from p4gen.model.entries import Action, CounterValue, Entry

from .programs import frame, machine, switch, text

ADD = """Register<bit<32>, bit<16>>(4) reg;
RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {
    void apply(inout bit<32> value, out bit<32> rv) { rv = value; value = value + hdr.h.d; } };"""
SEND = "tm.ucast_egress_port = 3;"


def test_an_action_returns_what_it_assigns_and_writes_the_word_back() -> None:
    model = switch(text(f"hdr.h.d = add.execute(hdr.h.c); {SEND}", ADD))
    assert model.process(1, frame(c=2, d=5)) == [(3, frame(c=2, d=0))]
    assert model.process(1, frame(c=2, d=7)) == [(3, frame(c=2, d=5))]
    assert model.registers("reg") == [0, 0, 12, 0]


def test_an_index_beyond_the_register_is_a_trap_and_changes_nothing() -> None:
    model = switch(text(f"hdr.h.d = add.execute(hdr.h.c); {SEND}", ADD))
    assert model.process(1, frame(c=4, d=5)) == [(3, frame(c=4, d=0))]
    assert model.registers("reg") == [0, 0, 0, 0]
    assert [trap.what for trap in model.traps()] == ["register Ig.reg: index 4, it has 4 elements"]


def test_a_result_that_apply_does_not_assign_is_0() -> None:
    local = """Register<bit<32>, bit<16>>(1, 7) reg; RegisterAction<bit<32>, bit<16>, bit<32>>(reg) some = {
        void apply(inout bit<32> value, out bit<32> rv) { if (hdr.h.a == 1) { rv = value; } } };"""
    model = switch(text(f"hdr.h.d = some.execute(0); {SEND}", local))
    assert model.process(1, frame(1, d=9)) == [(3, frame(1, d=7))]
    assert model.process(1, frame(2, d=9)) == [(3, frame(2, d=0))]


def test_pairs_saturate_and_start_as_they_are_told() -> None:
    local = """Register<pair, bit<16>>(2, {1, 2}) reg; RegisterAction<pair, bit<16>, bit<32>>(reg) both = {
        void apply(inout pair value, out bit<32> rv) {
            value.first = value.first |-| hdr.h.d; value.second = value.second |+| 0xFFFFFFF0;
            rv = value.second; } };"""
    model = switch(text(f"hdr.h.d = both.execute(1); {SEND}", local))
    assert model.registers("reg") == [1 << 32 | 2] * 2
    assert model.process(1, frame(d=9)) == [(3, frame(d=0xFFFFFFF2))]
    assert model.process(1, frame(d=9)) == [(3, frame(d=0xFFFFFFFF))]
    assert model.registers("reg") == [1 << 32 | 2, 0xFFFFFFFF]
    model.write_register("reg", 0, 5 << 32 | 6)
    assert model.register("reg", 0) == 5 << 32 | 6
    model.reset()
    assert model.registers("reg") == [1 << 32 | 2] * 2


def test_signed_words_saturate_at_their_ends() -> None:
    local = """Register<int<32>, bit<16>>(1) reg; RegisterAction<int<32>, bit<16>, int<32>>(reg) add = {
        void apply(inout int<32> value, out int<32> rv) { value = value |+| (int<32>)hdr.h.d; rv = value; } };"""
    model = switch(text(f"hdr.h.d = (bit<32>)add.execute(0); {SEND}", local))
    assert model.process(1, frame(d=0x7FFFFFFF)) == [(3, frame(d=0x7FFFFFFF))]
    assert model.process(1, frame(d=1)) == [(3, frame(d=0x7FFFFFFF))]
    assert model.process(1, frame(d=0x80000000)) == [(3, frame(d=0xFFFFFFFF))]


@pytest.mark.parametrize(("d", "found"), [(4, 0b0001), (5, 0b0010), (20, 0b1000), (3, 0b0001)])
def test_predicate_has_one_bit_for_the_outcome_of_both_comparisons(d: int, found: int) -> None:
    local = """Register<bit<32>, bit<16>>(1, 4) reg; RegisterAction<bit<32>, bit<16>, bit<32>>(reg) test = {
        void apply(inout bit<32> value, out bit<32> rv) {
            rv = this.predicate(hdr.h.d > value, hdr.h.d > 10); } };"""
    model = switch(text(f"hdr.h.d = test.execute(0); {SEND}", local))
    assert model.process(1, frame(d=d)) == [(3, frame(d=found))]


def test_execute_log_counts_its_index() -> None:
    model = switch(text(f"add.execute_log(); {SEND}", ADD))
    for d in (1, 2, 3, 4, 5):
        model.process(1, frame(d=d))
    assert model.registers("reg") == [6, 2, 3, 4]


def test_register_parameters_are_the_control_planes() -> None:
    local = """RegisterParam<bit<32>>(10) step; Register<bit<32>, bit<16>>(1) reg;
        RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {
            void apply(inout bit<32> value, out bit<32> rv) { value = value + step.read(); rv = value; } };"""
    model = switch(text(f"hdr.h.d = add.execute(0); {SEND}", local))
    assert model.process(1, frame()) == [(3, frame(d=10))]
    machine(model).set_parameter("step", 7)
    assert model.process(1, frame()) == [(3, frame(d=17))]
    with pytest.raises(InputError, match="register parameter stop: no register parameter of that name"):
        machine(model).set_parameter("stop", 1)


def test_pipes_have_memories_of_their_own_and_tables_in_common() -> None:
    local = (
        ADD
        + """Counter<bit<32>, bit<8>>(2, CounterType_t.PACKETS_AND_BYTES) cnt;
        action send(PortId_t port) { tm.ucast_egress_port = port; }
        table ports { key = { hdr.h.a : exact; } actions = { send; } }"""
    )
    model = switch(text("hdr.h.d = add.execute(0); cnt.count(1); ports.apply();", local))
    model.insert(Entry("ports", {"hdr.h.a": 1}, Action("send", {"port": 5})))
    for port in (0, 129, 129, 385):
        assert model.process(port, frame(1, d=1)) in [[(5, frame(1, d=n))] for n in range(3)]
    assert [machine(model).registers("reg", pipe)[0] for pipe in range(4)] == [1, 2, 0, 1]
    assert model.registers("reg") == [1, 0, 0, 0]
    assert model.counter("cnt", 1) == CounterValue(4, 64)
    model.write_register("reg", 0, 100)
    assert [machine(model).registers("reg", pipe)[0] for pipe in range(4)] == [100] * 4


def test_frozen_states_have_all_pipes() -> None:
    source = text(f"hdr.h.d = add.execute(0); {SEND}", ADD)
    model, other = switch(source), switch(source)
    model.process(0, frame(d=1))
    model.process(128, frame(d=2))
    frozen = model.freeze()
    model.process(128, frame(d=3))
    assert model.freeze() != frozen
    other.restore(frozen)
    assert other.freeze() == frozen
    assert other.process(128, frame()) == [(3, frame(d=2))]


def test_direct_registers_and_counters_belong_to_entries() -> None:
    local = """DirectRegister<bit<32>>(100) seen; DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) hits;
        DirectRegisterAction<bit<32>, bit<32>>(seen) next = {
            void apply(inout bit<32> value, out bit<32> rv) { rv = value; value = value + 1; } };
        action go() { hdr.h.d = next.execute(); hits.count(2); tm.ucast_egress_port = 3; }
        action quiet() { tm.ucast_egress_port = 4; }
        table t { key = { hdr.h.a : exact; } actions = { go; quiet; } registers = seen; counters = hits; }"""
    model = switch(text("t.apply();", local))
    entries = [Entry("t", {"hdr.h.a": 1}, Action("go")), Entry("t", {"hdr.h.a": 2}, Action("go"))]
    model.insert(*entries, Entry("t", {"hdr.h.a": 3}, Action("quiet")))
    found = [model.process(0, frame(a))[0][1] for a in (1, 2, 1, 1)]
    assert found == [frame(a, d=d) for a, d in ((1, 100), (2, 100), (1, 101), (1, 102))]
    assert model.process(0, frame(3)) == [(4, frame(3))]
    assert [model.entry_counter(e) for e in entries] == [CounterValue(3, 42), CounterValue(1, 14)]
    assert model.entry_counter(Entry("t", {"hdr.h.a": 3}, Action("quiet"))) == CounterValue(0, 0)


def test_actions_of_tofino_2_have_four_results() -> None:
    local = """Register<pair, bit<16>>(1, {3, 4}) reg;
        RegisterAction4<pair, bit<16>, bit<32>, bit<32>, bit<16>, bit<8>>(reg) four = {
            void apply(inout pair value, out bit<32> r1, out bit<32> r2, out bit<16> r3, out bit<8> r4) {
                r1 = value.first; r2 = value.second; r3 = 9; value.first = 8; } };"""
    body = f"bit<32> second; hdr.h.d = four.execute(0, second, hdr.h.c, hdr.h.b); hdr.h.a = second[7:0]; {SEND}"
    model = switch(text(body, local, arch="t2na"))
    assert model.process(1, frame(1, 2, 3, 5)) == [(3, frame(4, 0, 9, 3))]
    assert model.registers("reg") == [8 << 32 | 4]


def test_smallest_part_of_a_word_on_tofino_2() -> None:
    local = """Register<bit<32>, bit<16>>(1, 0x05030409) reg; RegisterAction<bit<32>, bit<16>, bit<8>>(reg) least = {
        void apply(inout bit<32> value, out bit<8> rv) { rv = this.min8(value, 0b1011); } };"""
    model = switch(text(f"hdr.h.a = least.execute(0); {SEND}", local, arch="t2na"))
    assert model.process(1, frame()) == [(3, frame(4))]


def test_the_trace_tells_the_word_before_and_after() -> None:
    model, trace = switch(text(f"add.execute(1); {SEND}", ADD)), Trace()
    model.process(1, frame(d=5), trace)
    (event,) = trace.of("write")
    assert event.what == "Ig.reg[1]: 0 becomes 5"
    assert (event.data["register"], event.data["old"], event.data["value"]) == ("Ig.reg", 0, 5)


def test_what_is_not_modelled_is_refused_with_its_place() -> None:
    local = ADD.replace("rv = value", "rv = this.address()")
    with pytest.raises(InputError, match=r"t\.p4:\d+:\d+: error: extern RegisterAction.address is not supported"):
        switch(text("add.execute(0);", local, arch="t2na"))
