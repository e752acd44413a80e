"""Batches, snapshots, the cache, and what the native engine shares with the interpreter."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from random import Random

import numpy as np
import pytest

from p4gen.bench.workload import Workload, bursts
from p4gen.errors import InputError
from p4gen.model import Model, Trace
from p4gen.model.entries import Action, Entry, Exact
from p4gen.model.jit import Batch
from p4gen.p4 import ir
from p4gen.p4 import types as t
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.spec import EpicSpec

from ..handmade import POS, Maker, action, arg_out, assign, bit, extern, lit, register, table
from .agree import everything

SPEC = EpicSpec(lanes=16, window=2, message=2, groups=2, fan_in=4, ports=8)


@pytest.fixture(scope="module")
def work() -> Workload:
    return bursts(SPEC, 64, 3)


@pytest.fixture(scope="module")
def program(work: Workload) -> ir.Program:
    return compile_text(work.text, "modeii.p4").program


def native(work: Workload, program: ir.Program) -> Model:
    return work.configure(Model(program, engine="jit", cache="", clock=lambda: 5))


def test_a_batch_gives_what_its_packets_give_one_by_one(work: Workload, program: ir.Program) -> None:
    one, many = native(work, program), native(work, program)
    expected = [(i, out) for i, (port, packet) in enumerate(work.packets) for out in one.process(port, packet)]
    batch = many.process_batch(work.batch)
    assert batch.packets() == [out for _, out in expected]
    assert batch.sources is not None
    assert batch.sources.tolist() == [i for i, _ in expected]
    assert everything(one) == everything(many)


def test_an_empty_batch_gives_an_empty_batch(work: Workload, program: ir.Program) -> None:
    assert native(work, program).process_batch(Batch.of([])).packets() == []


def test_offsets_outside_the_data_are_refused(work: Workload, program: ir.Program) -> None:
    batch = Batch(np.zeros(4, np.uint8), np.array([0, 9]), np.array([0], np.int32))
    with pytest.raises(ValueError, match="within the data"):
        native(work, program).process_batch(batch)


def test_packets_of_a_batch_may_lie_anywhere_if_it_says_where_they_end(work: Workload, program: ir.Program) -> None:
    batch = work.batch
    backwards = batch.data[::-1].tobytes()
    size = len(backwards)
    data = np.concatenate([batch.data, np.frombuffer(backwards, np.uint8)])
    order = np.random.default_rng(5).permutation(len(batch))
    starts, ends, ports = batch.offsets[:-1][order], batch.offsets[1:][order], batch.ports[order]
    scattered = Batch(data, starts, ports, ends=ends)
    expected = native(work, program).process_batch(Batch.of([work.packets[i] for i in order]))
    assert scattered.packets() == [work.packets[i] for i in order]
    assert native(work, program).process_batch(scattered).packets() == expected.packets()
    for bad in (Batch(data[:size], starts, ports, ends=ends + 1), Batch(data, starts, ports, ends=starts - 1)):
        with pytest.raises(ValueError, match="within the data"):
            native(work, program).process_batch(bad)


def test_times_of_a_batch_are_the_packets_timestamps() -> None:
    maker = Maker(fields=(("a", bit(48)),))
    maker.ingress = [assign(maker.h("a"), maker.sm("ingress_global_timestamp")), maker.send(1)]
    model = maker.model(engine="jit", cache="", clock=lambda: 3)
    batch = Batch.of([(0, bytes(6)), (0, bytes(6))])
    timed = Batch(batch.data, batch.offsets, batch.ports, times=np.array([7, 8], np.uint64))
    assert [int.from_bytes(p) for _, p in model.process_batch(timed).packets()] == [7, 8]
    assert [int.from_bytes(p) for _, p in model.process_batch(batch).packets()] == [3, 3]


def test_switches_run_in_threads_at_the_same_time(work: Workload, program: ir.Program) -> None:
    models = [native(work, program) for _ in range(2)]
    found: list[Batch] = []
    threads = [threading.Thread(target=lambda m=m: found.append(m.process_batch(work.batch))) for m in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0].packets() == found[1].packets() != []


# --- snapshots ---


def test_restoring_a_snapshot_brings_everything_back(work: Workload, program: ir.Program) -> None:
    model = native(work, program)
    half = len(work.packets) // 2
    for port, packet in work.packets[:half]:
        model.process(port, packet)
    before, snapshot = everything(model), model.snapshot()
    first = [model.process(port, packet) for port, packet in work.packets[half:]]
    assert everything(model) != before
    model.restore_snapshot(snapshot)
    assert everything(model) == before
    assert [model.process(port, packet) for port, packet in work.packets[half:]] == first


def test_a_snapshot_brings_back_entries_and_groups_too(work: Workload, program: ir.Program) -> None:
    model = native(work, program)
    entries, snapshot = model.entries("endpoints"), model.snapshot()
    outputs = [model.process(*p) for p in work.packets[:8]]
    model.restore_snapshot(snapshot)
    model.delete(*model.entries("endpoints"))
    for group in work.config.multicast_groups:
        model.set_multicast_group(type(group)(group.group_id, ()))
    assert not any(model.process(*p) for p in work.packets[:8])
    other = model.snapshot()
    model.restore_snapshot(snapshot)
    assert model.entries("endpoints") == entries
    assert [model.process(*p) for p in work.packets[:8]] == outputs
    model.restore_snapshot(other)
    assert model.entries("endpoints") == []


def test_the_layout_says_where_registers_are(work: Workload, program: ir.Program) -> None:
    model = native(work, program)
    model.process_batch(work.batch)
    block = model.snapshot()
    for name, register_ in model._state.registers.items():
        item = model.layout.item(name)
        cells = [block[item.offset + i * item.step :][: item.bytes].tobytes() for i in range(item.count)]
        assert [int.from_bytes(c, "little") for c in cells] == list(register_.cells)
        assert item.width == register_.width


def test_lanes_of_one_slot_lie_side_by_side(work: Workload, program: ir.Program) -> None:
    layout = native(work, program).layout
    lanes = [i for i in layout.items if i.name.endswith(".partial")]
    offsets = sorted(i.offset for i in lanes)
    assert offsets == list(range(offsets[0], offsets[0] + 4 * SPEC.lanes, 4))
    assert {i.step for i in lanes} == {4 * SPEC.lanes}


def test_another_programs_snapshot_is_refused(work: Workload, program: ir.Program) -> None:
    other = Maker(ingress=[]).model(engine="jit", cache="")
    with pytest.raises(ValueError, match="not of this program"):
        native(work, program).restore_snapshot(other.snapshot())


def test_an_interpreter_has_no_snapshots(work: Workload, program: ir.Program) -> None:
    with pytest.raises(ValueError, match="native engine"):
        Model(program).snapshot()


# --- the interpreter on the same state ---


def test_a_trace_is_the_interpreters_and_leaves_the_same_state(work: Workload, program: ir.Program) -> None:
    model, plain = native(work, program), native(work, program)
    for i, (port, packet) in enumerate(work.packets):
        trace = Trace() if i % 3 else None
        assert model.process(port, packet, trace) == plain.process(port, packet)
        if trace is not None:
            assert trace.of("state", "table", "output")
    assert everything(model) == everything(plain)


def test_counters_of_entries_go_on_when_the_entry_is_modified() -> None:
    maker = Maker()
    send = action("send", [maker.send(1)])
    other = action("other", [maker.send(2)])
    counter = ir.ExternInstance("hits", "direct_counter", (), ("packets",), (), POS)
    t1 = table("t", [(maker.h("a"), "exact", "a")], [send, other], other, direct=(counter,), size=4)
    maker.tables, maker.externs = [t1], [counter]
    maker.ingress = [ir.Evaluate(POS, ir.ApplyTable(t.Void(), POS, t1, None))]
    for engine in ("interp", "jit"):
        model = maker.model(engine=engine, cache="")
        entry = Entry("t", {"a": Exact(5)}, Action("send"))
        model.insert(entry)
        assert [model.process(0, bytes((5, 0))) for _ in range(3)] == [[(1, b"\5\0")]] * 3
        model.modify(Entry("t", {"a": Exact(5)}, Action("other")))
        assert model.process(0, bytes((5, 0))) == [(2, b"\5\0")]
        assert model.entry_counter(entry).packets == 4
        model.delete(entry)
        model.insert(entry)
        assert model.entry_counter(entry).packets == 0


# --- the cache ---


def _compile(program: ir.Program, cache: Path) -> Model:
    return Model(program, engine="jit", cache=cache)


def test_a_compiled_program_comes_from_the_cache(program: ir.Program, work: Workload, tmp_path: Path) -> None:
    assert not _compile(program, tmp_path).native.cached
    again = _compile(program, tmp_path)
    assert again.native.cached
    assert work.configure(again).process_batch(work.batch).packets()


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty", "writable"])
@pytest.mark.long
def test_a_damaged_cache_is_rebuilt(program: ir.Program, work: Workload, tmp_path: Path, damage: str) -> None:
    _compile(program, tmp_path)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    if damage == "cut":
        file.write_bytes(content[:-9])
    elif damage == "flipped":
        content[-100] ^= 1
        file.write_bytes(content)
    elif damage == "empty":
        file.write_bytes(b"")
    else:
        os.chmod(file, 0o666)
    model = _compile(program, tmp_path)
    assert not model.native.cached
    assert work.configure(model).process_batch(work.batch).packets()
    assert _compile(program, tmp_path).native.cached


def test_a_cache_that_cannot_be_written_is_done_without(program: ir.Program, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert not _compile(program, tmp_path / "file" / "cache").native.cached


# --- refusals ---


def test_what_cannot_be_compiled_is_an_error_with_its_position() -> None:
    maker = Maker()
    maker.ingress = [extern("unheard_of", arg_out(maker.h("a")))]
    with pytest.raises(InputError, match=r"test.p4:1:1: error: extern unheard_of is not supported"):
        maker.model(engine="jit", cache="")


def test_an_index_out_of_range_traps_as_often_as_with_the_interpreter() -> None:
    maker = Maker()
    cells = register("r", 4, bit(8))
    maker.externs = [cells]
    index = ir.Arg("in", ir.Cast(bit(32), POS, maker.h("b")))
    maker.ingress = [
        extern("read", arg_out(maker.h("a")), index, instance=cells),
        extern("write", index, ir.Arg("in", lit(1, bit(8))), instance=cells),
        maker.send(1),
    ]
    rng, found = Random(1), []
    packets = [bytes((9, rng.randrange(8))) for _ in range(50)]
    for engine in ("interp", "jit"):
        model = maker.model(engine=engine, cache="")
        outputs = [model.process(0, packet) for packet in packets]
        found.append((outputs, [(str(trap), trap.count) for trap in model.traps()]))
    assert found[0] == found[1]
    assert found[0][1]
