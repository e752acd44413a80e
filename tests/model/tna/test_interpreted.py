"""What only the interpreter has: queues and stacks, math units, elements seen as another type. The engine jit refuses
it by name."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from p4gen.errors import InputError
from p4gen.p4.compile import compile_text
from p4gen.stf.engines import native

from . import programs
from .programs import IG_PARSER, frame, switch, text
from .test_registers import ADD, SEND


@pytest.fixture(autouse=True)
def engine() -> Iterator[None]:
    """The interpreter alone."""
    before, programs.ENGINE = programs.ENGINE, "interp"
    yield
    programs.ENGINE = before


QUEUE = """Register<bit<32>, bit<16>>(2) reg;
RegisterAction<bit<32>, bit<16>, bit<32>>(reg) put = {
    void apply(inout bit<32> value, out bit<32> rv) { value = hdr.h.d; rv = 1; }
    void overflow(inout bit<32> value, out bit<32> rv) { rv = 7; } };
RegisterAction<bit<32>, bit<16>, bit<32>>(reg) take = {
    void apply(inout bit<32> value, out bit<32> rv) { rv = value; } };
RegisterAction<bit<32>, bit<16>, bit<32>>(reg) all = { void apply(inout bit<32> value) { value = value + 1; } };"""


@pytest.mark.parametrize(("put", "take", "first"), [("enqueue", "dequeue", [5, 6]), ("push", "pop", [6, 5])])
def test_registers_are_queues_and_stacks(put: str, take: str, first: list[int]) -> None:
    body = f"if (hdr.h.a == 1) {{ hdr.h.d = put.{put}(); }} else {{ hdr.h.d = take.{take}(); }} {SEND}"
    model = switch(text(body, QUEUE, arch="t2na"))

    def results(*numbers: int) -> list[int]:
        sent = [frame(1, d=number) if number else frame(2) for number in numbers]
        return [int.from_bytes(model.process(1, one)[0][1][4:8]) for one in sent]

    assert results(5, 6, 9) == [1, 1, 7]
    assert results(0, 0, 0) == [*first, 0]
    assert results(8, 0, 3) == [1, 8, 1]
    frozen = model.freeze()
    assert results(0) == [3]
    model.restore(frozen)
    assert results(0, 0) == [3, 0]


def test_all_elements_are_changed_at_once_by_sweep_and_clear() -> None:
    body = f"if (hdr.h.a == 1) {{ all.sweep(); }} else {{ reg.clear(hdr.h.d); }} {SEND}"
    model = switch(text(body, QUEUE, arch="t2na"))
    model.process(1, frame(1))
    assert model.registers("reg") == [1, 1]
    model.process(1, frame(2, d=40))
    model.process(1, frame(1))
    assert model.registers("reg") == [41, 41]


def test_an_action_may_see_elements_as_another_type() -> None:
    types = "struct four { bit<8> a; bit<8> b; bit<16> c; } struct sixteen { bit<64> high; bit<64> low; }"
    local = """Register<four, bit<16>>(1, {1, 2, 3}) reg; RegisterAction<bit<32>, bit<16>, bit<32>>(reg) whole = {
            void apply(inout bit<32> value, out bit<32> rv) { rv = value; value = value + 0x01000001; } };
        Register<sixteen, bit<16>>(1, {0x0907, 0x0305}) wide; MinMaxAction<sixteen, bit<16>, bit<8>>(wide) least = {
            void apply(inout bit<128> value, out bit<8> rv) { rv = this.min8(value, 0x0303); value[7:0] = 1; } };"""
    body = f"hdr.h.d = whole.execute(0); hdr.h.a = least.execute(0); {SEND}"
    model = switch(text(body, local, arch="t2na", ig_parser=IG_PARSER + types))
    assert model.process(1, frame()) == [(3, frame(3, d=0x01020003))]
    assert model.registers("reg") == [0x02020004]
    assert [model.register(name, 0) for name in ("reg.a", "Ig.reg.c", "wide.low")] == [2, 4, 0x0301]
    model.write_register("Ig.reg.b", 0, 255)
    assert model.registers("reg") == [0x02FF0004]
    with pytest.raises(InputError, match=r"register Ig\.reg: .*256"):
        model.write_register("reg.b", 0, 256)
    assert model.process(1, frame()) == [(3, frame(1, d=0x02FF0004))]


@pytest.mark.parametrize(
    ("unit", "number", "found"),
    [
        ("MathOp_t.MUL, 3", 100, 288),
        ("MathOp_t.SQR, 1", 12, 144),
        ("MathOp_t.SQRT, 1", 4096, 64),
        ("MathOp_t.SQRT, 1", 2, 1),
        ("MathOp_t.DIV, 1000", 8, 125),
        ("MathOp_t.DIV, 1, 2", 9, 0),
        ("MathOp_t.RSQRT, 256", 64, 32),
        ("false, 0, 2, {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 77}", 0, 77 << 2),
        ("false, 0, -3, {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}", 0xF0, 15 << 7 >> 3),
    ],
)
def test_math_units_have_the_highest_bits_of_a_power(unit: str, number: int, found: int) -> None:
    local = f"""MathUnit<bit<32>>({unit}) m; Register<bit<32>, bit<16>>(1) reg;
        RegisterAction<bit<32>, bit<16>, bit<32>>(reg) power = {{
            void apply(inout bit<32> value, out bit<32> rv) {{ value = m.execute(hdr.h.d); rv = value; }} }};"""
    model = switch(text(f"hdr.h.d = power.execute(0); {SEND}", local))
    assert model.process(1, frame(d=number)) == [(3, frame(d=found))]


NARROW = """Register<bit<32>, bit<16>>(4) reg; RegisterAction<bit<16>, bit<16>, bit<16>>(reg) add = {
    void apply(inout bit<16> value, out bit<16> rv) { rv = value; } };"""


@pytest.mark.parametrize(
    ("local", "message"),
    [
        (ADD.replace("rv = value", "rv = this.address()"), "extern RegisterAction.address is not supported"),
        (NARROW, "an action that sees elements of type bit<32> as bit<16> is not supported"),
    ],
)
def test_what_is_not_modelled_is_refused_with_its_place(local: str, message: str) -> None:
    with pytest.raises(InputError, match=rf"t\.p4:\d+:\d+: error: {message} by the behavioural model"):
        switch(text("add.execute(0);", local, arch="t2na"))


@pytest.mark.parametrize(
    ("body", "what"),
    [("hdr.h.d = put.enqueue();", "RegisterAction.enqueue"), ("all.sweep();", "RegisterAction.sweep"),
     ("reg.clear(0);", "Register.clear"), ("hdr.h.d = low.execute(hdr.h.d, 0);", "Lpf.execute")],
)  # fmt: skip
def test_the_engine_jit_refuses_them(body: str, what: str) -> None:
    source = text(body, QUEUE + "Lpf<bit<32>, bit<16>>(2) low;", arch="t2na")
    switch(source)
    with pytest.raises(InputError, match=rf"t\.p4:\d+:\d+: error: extern {what} is not supported"):
        native(compile_text(source, "t.p4", ()).program, lambda: 0)
