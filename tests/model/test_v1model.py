"""What happens to packets around the program's blocks, sentence by sentence of simple_switch.md."""

from __future__ import annotations

import pytest

from p4gen.errors import InputError
from p4gen.model import Model, Trace
from p4gen.model.entries import CloneSession, CounterValue, MulticastGroup, Replica
from p4gen.p4 import ir
from p4gen.p4 import types as t

from .handmade import POS, Maker, arg_in, arg_out, assign, binary, bit, extern, lit, register, var


def when(condition: ir.Expr, *body: ir.Stmt) -> ir.Stmt:
    return ir.If(POS, condition, ir.Block(POS, body), None)


def same(left: ir.Expr, value: int) -> ir.Expr:
    return binary("==", left, lit(value, left.type), t.Bool())


def drop(maker: Maker, block: str = "ig") -> ir.Stmt:
    return extern("mark_to_drop", ir.Arg("inout", maker.standard(block)))


def clone(kind: str, session: int, *index: int) -> ir.Stmt:
    enum = t.Enum("CloneType", ("I2E", "E2E"))
    args = [arg_in(lit(kind, enum)), arg_in(lit(session, bit(32))), *(arg_in(lit(i, bit(8))) for i in index)]
    return extern("clone_preserving_field_list" if index else "clone", *args)


def marked(name: str, *lists: int) -> t.FieldDef:
    return t.FieldDef(name, bit(8), (t.Annotation("field_list", lists),))


def show_in_b(maker: Maker, field: str, block: str = "eg") -> ir.Stmt:
    """``hdr.h.b = (bit<8>) standard_metadata.field``."""
    source = maker.sm(field, block)
    return assign(maker.h("b", block), ir.Cast(bit(8), POS, source))


def test_a_packet_without_any_decision_goes_to_port_0() -> None:
    """egress_spec: "its default initial value is 0, and the packet will be unicast to output port 0"."""
    assert Maker().model().process(5, b"\1\2rest") == [(0, b"\1\2rest")]


def test_mark_to_drop_drops_at_the_end_of_ingress_and_of_egress() -> None:
    for block in ("ig", "eg"):
        maker = Maker()
        (maker.ingress if block == "ig" else maker.egress).append(drop(maker, block))
        trace = Trace()
        assert maker.model().process(1, b"\1\2", trace) == []
        assert trace.of("drop")[0].data["where"] == {"ig": "ingress", "eg": "egress"}[block]


def test_a_later_assignment_undoes_mark_to_drop() -> None:
    maker = Maker()
    maker.ingress += [drop(maker), maker.send(2)]
    assert maker.model().process(1, b"\1\2") == [(2, b"\1\2")]


def test_mark_to_drop_clears_mcast_grp_and_mcast_grp_beats_egress_spec() -> None:
    """ "mcast_grp: … calling mark_to_drop will set the value to 0"; it is looked at before egress_spec."""
    for dropped_first in (True, False):
        maker = Maker()
        group = assign(maker.sm("mcast_grp"), lit(7, bit(16)))
        maker.ingress += [drop(maker), group] if dropped_first else [group, drop(maker)]
        model = maker.model()
        model.set_multicast_group(MulticastGroup(7, (Replica(3, 1), Replica(4, 2))))
        assert model.process(1, b"\1\2") == ([(3, b"\1\2"), (4, b"\1\2")] if dropped_first else [])


def test_multicast_copies_have_their_rid_and_instance_type() -> None:
    maker = Maker()
    maker.ingress.append(assign(maker.sm("mcast_grp"), lit(7, bit(16))))
    both = binary("+", ir.Cast(bit(8), POS, maker.sm("egress_rid", "eg")), lit(0, bit(8)))
    shifted = binary("<<", ir.Cast(bit(8), POS, maker.sm("instance_type", "eg")), lit(4, bit(8)))
    maker.egress.append(assign(maker.h("b", "eg"), binary("|", both, shifted)))
    model = maker.model()
    model.set_multicast_group(MulticastGroup(7, (Replica(3, 1), Replica(3, 2))))
    assert model.process(1, b"\1\0") == [(3, b"\1\x51"), (3, b"\1\x52")]


def test_an_unknown_multicast_group_makes_no_copies() -> None:
    maker = Maker()
    maker.ingress.append(assign(maker.sm("mcast_grp"), lit(7, bit(16))))
    assert maker.model().process(1, b"\1\2") == []


def test_ingress_clone_has_the_original_packet_and_the_field_list() -> None:
    """ "The contents of the cloned packet(s) will be the same as the packet when it most recently began ingress
    processing"; "preserve the final ingress values of the metadata fields specified in the field list"."""
    maker = Maker(metadata=(marked("kept", 1, 2), marked("lost", 2)))
    maker.ingress += [
        clone("I2E", 5, 1),
        assign(maker.h("a"), lit(0xEE, bit(8))),
        assign(maker.m("kept"), lit(0x40, bit(8))),
        assign(maker.m("lost"), lit(0x80, bit(8))),
        maker.send(2),
    ]
    told = binary("|", maker.m("kept", "eg"), maker.m("lost", "eg"))
    maker.egress.append(
        assign(maker.h("b", "eg"), binary("|", told, ir.Cast(bit(8), POS, maker.sm("instance_type", "eg"))))
    )
    model = maker.model()
    assert model.process(1, b"\1\0") == [(2, b"\xee\xc0")], "an unconfigured session makes no clone"
    model.set_clone_session(CloneSession(5, (Replica(3), Replica(4))))
    assert model.process(1, b"\1\0x") == [(3, b"\1\x41x"), (4, b"\1\x41x"), (2, b"\xee\xc0x")]


def test_a_clone_session_may_shorten_its_clones() -> None:
    maker = Maker()
    maker.ingress += [clone("I2E", 5), maker.send(2)]
    model = maker.model()
    model.set_clone_session(CloneSession(5, (Replica(3),), packet_length=4))
    assert model.process(1, b"\1\0abcdef") == [(3, b"\1\0ab"), (2, b"\1\0abcdef")]


def test_egress_clone_has_the_headers_as_egress_left_them_and_runs_egress_again() -> None:
    maker = Maker()
    first = same(ir.Cast(bit(8), POS, maker.sm("instance_type", "eg")), 0)
    maker.ingress.append(maker.send(2))
    maker.egress += [
        assign(maker.h("b", "eg"), binary("+", maker.h("b", "eg"), lit(1, bit(8)))),
        when(first, clone("E2E", 5), drop(maker, "eg")),
    ]
    model = maker.model()
    model.set_clone_session(CloneSession(5, (Replica(3),)))
    # Dropping the original does not touch the clone.
    assert model.process(1, b"\1\0") == [(3, b"\1\2")]


def test_resubmit_starts_over_with_the_original_packet() -> None:
    """ "Start ingress over again for this packet, with its original unmodified packet contents"."""
    maker = Maker(metadata=(marked("round", 3),))
    again = extern("resubmit_preserving_field_list", ir.Arg("none", lit(3, bit(8))))
    first = binary("<", maker.m("round"), lit(2, bit(8)), t.Bool())
    step = assign(maker.m("round"), binary("+", maker.m("round"), lit(1, bit(8))))
    maker.ingress += [
        assign(maker.h("b"), binary("+", maker.h("b"), lit(1, bit(8)))),
        assign(maker.h("a"), ir.Cast(bit(8), POS, maker.sm("instance_type"))),
        when(first, step, again),
        maker.send(2),
    ]
    assert maker.model().process(1, b"\0\0") == [(2, b"\x06\1")]


def test_recirculate_starts_over_with_the_deparsed_packet() -> None:
    maker = Maker(metadata=(marked("round", 3),))
    again = extern("recirculate_preserving_field_list", ir.Arg("none", lit(3, bit(8))))
    maker.ingress += [
        maker.send(2),
        assign(maker.h("b"), ir.Cast(bit(8), POS, maker.sm("instance_type"))),
    ]
    step = assign(maker.m("round", "eg"), binary("+", maker.m("round", "eg"), lit(1, bit(8))))
    maker.egress += [
        assign(maker.h("a", "eg"), binary("+", maker.h("a", "eg"), lit(1, bit(8)))),
        when(binary("<", maker.m("round", "eg"), lit(2, bit(8)), t.Bool()), step, again),
    ]
    assert maker.model().process(1, b"\0\0") == [(2, b"\3\4")]


def test_endless_recirculation_is_trapped() -> None:
    maker = Maker()
    maker.egress.append(extern("recirculate_preserving_field_list", ir.Arg("none", lit(3, bit(8)))))
    model = maker.model()
    assert model.process(1, b"\0\0") == []
    assert "more than 1000 passes" in str(model.traps()[0])


def test_a_parser_reject_does_not_drop() -> None:
    """FACTS: "Parser reject does not drop: ingress runs with parser_error set"."""
    maker = Maker()
    wrong = binary("==", maker.sm("parser_error"), lit("PacketTooShort", t.Error()), t.Bool())
    maker.ingress.append(when(wrong, maker.send(9)))
    assert maker.model().process(1, b"\1") == [(9, b"\1")]


def test_a_bad_checksum_sets_checksum_error_only() -> None:
    maker = Maker(fields=(("a", bit(8)), ("b", bit(8)), ("sum", bit(16))))
    algorithm = arg_in(lit("csum16", t.Enum("HashAlgorithm", ("csum16",))))
    for calls, block, method in ((maker.verify, "vr", "verify_checksum"), (maker.checksum, "ck", "update_checksum")):
        data = ir.Aggregate(t.Tuple((bit(8), bit(8))), POS, (maker.h("a", block), maker.h("b", block)))
        calls.append(
            extern(method, arg_in(lit(True, t.Bool())), arg_in(data), ir.Arg("inout", maker.h("sum", block)), algorithm)
        )
    maker.ingress.append(assign(maker.sm("egress_spec"), ir.Cast(bit(9), POS, maker.sm("checksum_error"))))
    model = maker.model()
    assert model.process(1, b"\1\2\xfe\xfd") == [(0, b"\1\2\xfe\xfd")]
    assert model.process(1, b"\1\2\0\0") == [(1, b"\1\2\xfe\xfd")]


def test_exit_in_ingress_ends_ingress_only() -> None:
    maker = Maker()
    maker.ingress += [maker.send(4), ir.Exit(POS), maker.send(5)]
    maker.egress += [
        assign(maker.h("b", "eg"), lit(9, bit(8))),
        ir.Exit(POS),
        assign(maker.h("b", "eg"), lit(1, bit(8))),
    ]
    assert maker.model().process(1, b"\1\2") == [(4, b"\1\x09")]


def test_truncate_keeps_the_first_bytes() -> None:
    maker = Maker()
    maker.egress.append(extern("truncate", arg_in(lit(3, bit(32)))))
    assert maker.model().process(1, b"\1\2rest") == [(0, b"\1\2r")]


@pytest.mark.parametrize(
    ("field", "expected"), [("ingress_port", 5), ("packet_length", 6), ("egress_port", 2), ("instance_type", 0)]
)
def test_standard_metadata_in_egress(field: str, expected: int) -> None:
    maker = Maker()
    maker.ingress.append(maker.send(2))
    maker.egress.append(show_in_b(maker, field))
    assert maker.model().process(5, b"\1\0rest")[0][1][1] == expected


def test_time_stamps_come_from_the_clock_that_was_given() -> None:
    maker = Maker()
    maker.egress.append(show_in_b(maker, "ingress_global_timestamp"))
    assert maker.model(clock=lambda: 77).process(1, b"\0\0") == [(0, b"\0\x4d")]


def test_counters_count_packets_and_bytes_and_trap_outside() -> None:
    maker = Maker()
    maker.externs.append(ir.ExternInstance("ig.c", "counter", (), (2, "packets_and_bytes"), (), POS))
    maker.ingress.append(extern("count", arg_in(ir.Cast(bit(32), POS, maker.h("a"))), instance=maker.externs[0]))
    model = maker.model()
    for packet in (b"\0\0xx", b"\1\0", b"\1\0", b"\7\0"):
        model.process(1, packet)
    assert model.counters("c") == [CounterValue(1, 4), CounterValue(2, 4)]
    assert "counter ig.c: index 7, it has 2 elements" in str(model.traps()[0])


def test_registers_trap_outside_and_leave_everything_alone() -> None:
    """FACTS: "Register index out of range: destination unchanged in a debug build … the model traps it"."""
    maker = Maker()
    r = register("ig.r", 2, bit(8))
    maker.externs.append(r)
    index = arg_in(ir.Cast(bit(32), POS, maker.h("a")))
    maker.ingress += [extern("read", arg_out(maker.h("b")), index, instance=r)]
    maker.ingress += [extern("write", index, arg_in(lit(0xAA, bit(8))), instance=r)]
    model = maker.model()
    assert model.process(1, b"\1\x33") == [(0, b"\1\0")]
    assert model.process(1, b"\1\x33") == [(0, b"\1\xaa")]
    assert model.process(1, b"\2\x33") == [(0, b"\2\x33")]
    assert [trap.count for trap in model.traps()] == [1, 1]
    assert model.registers("r") == [0, 0xAA]


def test_set_valid_and_set_invalid_change_the_length_that_egress_sees() -> None:
    """simple_switch.cpp: "this register will be updated for each add_header / remove_header primitive call"."""
    maker = Maker()
    header = ir.FieldOf(maker.header, POS, maker.hdr(), "h")
    maker.ingress.append(ir.SetValidity(POS, header, False))
    maker.egress += [
        ir.SetValidity(POS, ir.FieldOf(maker.header, POS, maker.hdr("eg"), "h"), True),
        show_in_b(maker, "packet_length"),
    ]
    assert maker.model().process(1, b"\1\2rest") == [(0, b"\0\x04rest")]


def test_digests_have_the_values_at_the_time_of_the_call() -> None:
    maker = Maker()
    data = ir.Aggregate(t.Struct("seen_t", (t.FieldDef("x", bit(8)),)), POS, (maker.h("a"),))
    maker.ingress += [extern("digest", arg_in(lit(1, bit(32))), arg_in(data)), assign(maker.h("a"), lit(0, bit(8)))]
    model = maker.model()
    model.process(1, b"\x07\0")
    (digest,) = model.digests()
    assert (digest.name, digest.fields) == ("seen_t", (("x", 7),))
    assert model.digests() == []


def test_what_is_not_supported_is_refused_by_name_and_position() -> None:
    maker = Maker()
    maker.ingress.append(extern("teleport"))
    with pytest.raises(InputError, match=r"test\.p4:1:1: error: extern teleport is not supported"):
        maker.model()
    maker = Maker()
    maker.externs.append(ir.ExternInstance("ig.s", "teleporter", (), (8,), (), POS))
    with pytest.raises(InputError, match=r"test\.p4:1:1: error: extern teleporter \(ig\.s\)"):
        maker.model()


def test_the_trace_tells_the_whole_way() -> None:
    maker = Maker()
    r = register("ig.r", 4, bit(8))
    x = ir.Variable("x", bit(8), POS)
    index = arg_in(lit(1, bit(32)))
    maker.externs.append(r)
    maker.ingress += [
        ir.Declare(POS, x, None),
        extern("read", arg_out(var(x)), index, instance=r),
        extern("write", index, arg_in(maker.h("a")), instance=r),
        maker.send(3),
    ]
    model, trace = maker.model(), Trace()
    model.process(1, b"\5\0", trace)
    kinds = [e.kind for e in trace.events if e.kind != "block"]
    assert kinds == ["packet", "state", "extract", "read", "write", "assign", "decision", "emit", "output"]
    assert trace.of("write")[0].data == {"register": "ig.r", "index": 1, "value": 5, "old": 0}
    assert "test.p4:1    ig.r[1] becomes 5 (was 0)" in str(trace)


def test_traced_and_untraced_runs_share_their_state() -> None:
    maker = Maker()
    r = register("ig.r", 1, bit(8))
    maker.externs.append(r)
    index = arg_in(lit(0, bit(32)))
    maker.ingress += [
        extern("read", arg_out(maker.h("b")), index, instance=r),
        extern("write", index, arg_in(maker.h("a")), instance=r),
    ]
    model: Model = maker.model()
    model.process(1, b"\5\0")
    assert model.process(1, b"\6\0", Trace()) == [(0, b"\6\5")]
    assert model.process(1, b"\7\0") == [(0, b"\7\6")]
