"""What only the native engine has: batches, and programs that it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from p4gen.chips.tna.generator import Application
from p4gen.errors import InputError
from p4gen.model import ControlError, Model
from p4gen.model.jit import Batch
from p4gen.p4.compile import compile_text

from .programs import frame, machine, text

COUNTING = """Register<bit<32>, bit<16>>(1) reg; RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {
    void apply(inout bit<32> value, out bit<32> rv) { value = value + 1; rv = value; } };"""
BODY = "hdr.h.d = add.execute(0); tm.ucast_egress_port = 3; tm.mcast_grp_a = 1;"


@pytest.fixture
def engine() -> None:
    """Only one."""


def native(source: str, now: int = 0) -> Model:
    return Model(compile_text(source, "t.p4", ()).program, clock=lambda: now, engine="jit", cache="")


def test_a_batch_is_as_its_packets_one_by_one_and_pipes_count_for_themselves() -> None:
    packets = [(port, frame(c=n)) for n, port in enumerate((0, 130, 1, 131, 260))]
    one, other = native(text(BODY, COUNTING)), native(text(BODY, COUNTING))
    found = one.process_batch(Batch.of(packets))
    wanted = [other.process(port, packet) for port, packet in packets]
    assert found.packets() == [output for outputs in wanted for output in outputs]
    assert found.sources is not None
    assert found.sources.tolist() == [0, 1, 2, 3, 4]
    assert [machine(one).registers("reg", pipe) for pipe in range(4)] == [[2], [2], [1], [0]]
    item = one.layout.item("Ig.reg")
    block = one.snapshot().tobytes()
    places = [item.offset + pipe * one.layout.pipe for pipe in range(4)]
    assert [int.from_bytes(block[at : at + 4], "little") for at in places] == [2, 2, 1, 0]


def test_packets_of_the_generator_come_before_those_of_a_batch() -> None:
    sent = native(text("tm.ucast_egress_port = 3;"), now=20)
    machine(sent).start(Application(1, frame(7), packets=2))
    found = sent.process_batch(Batch.of([(1, frame(1)), (2, frame(2))]))
    assert [port for port, _ in found.packets()] == [3] * 4
    assert [data[:1] for _, data in found.packets()] == [b"\x01", b"\x01", b"\x01", b"\x02"]
    assert found.sources is not None
    assert found.sources.tolist() == [0, 0, 0, 1]
    assert len(sent.process_batch(Batch.of([(1, frame(1))]))) == 1


def test_ports_beyond_the_last_are_refused() -> None:
    model = native(text(BODY, COUNTING))
    batch = Batch.of([(0, frame()), (512, frame())])
    with pytest.raises(ControlError, match="port 512: ports are numbered from 0 to 511"):
        model.process_batch(batch)
    with pytest.raises(ControlError, match="port -1: ports are numbered"):
        model.process(-1, frame())
    assert len(model.process_batch(Batch.of([]))) == 0
    assert np.array_equal(model.snapshot(), native(text(BODY, COUNTING)).snapshot())


HEADERS = "struct headers { tag_t tag; h_t h; }"
HASHED = text("hdr.h.d = h.get({ hdr.h.a, hdr.v });", "Hash<bit<32>>(HashAlgorithm_t.CRC32) h;").replace(
    HEADERS, "header v_t { varbit<16> v; } struct headers { tag_t tag; h_t h; v_t v; }"
)
SHARED = """DirectRegister<bit<32>>() seen; DirectRegisterAction<bit<32>, bit<32>>(seen) next = {
        void apply(inout bit<32> value, out bit<32> rv) { rv = value; } };
    action go() { hdr.h.d = next.execute(); }
    table one { key = { hdr.h.a : exact; } actions = { go; } registers = seen; }
    table two { key = { hdr.h.b : exact; } actions = { go; } registers = seen; }"""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (text("one.apply(); two.apply();", SHARED), "register Ig.seen: the native engine wants it to belong to one"),
        (HASHED, "a hash over a varbit"),
        (text("invalidate(meta.x); meta.flag = is_validated(meta.y);"), "is_validated of what is neither a header's"),
        (text("", deparser="for (bit<8> i in 1..2) { m.emit(meta.session); } pkt.emit(hdr);",
              deparser_local="Mirror(1) m;"), "Mirror.emit in a loop, in the native engine,"),
    ],
)  # fmt: skip
def test_what_only_the_interpreter_does_is_refused_with_its_place(source: str, message: str) -> None:
    program = compile_text(source, "t.p4", ()).program
    Model(program)
    with pytest.raises(InputError, match=rf"t\.p4:\d+:\d+: error: {message}"):
        Model(program, engine="jit", cache="")
