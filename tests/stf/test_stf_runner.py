"""The runner: what passes, what fails and how it says so, names and values that do not fit."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.errors import Pos
from p4gen.model.entries import Exact
from p4gen.model.tables import KeySpec
from p4gen.p4 import ir
from p4gen.p4.compile import compile_file
from p4gen.stf import StfError, StfResult, parse_text, run
from p4gen.stf.matches import match_fields
from p4gen.stf.statements import KeyMatch, Value

FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def tables() -> ir.Program:
    return compile_file(FOLDER / "tables.p4").program


@pytest.fixture(scope="module")
def count() -> ir.Program:
    return compile_file(FOLDER / "count.p4").program


def outcome(program: ir.Program, text: str) -> StfResult:
    return run(program, parse_text(text, "t.stf"))


def failures(program: ir.Program, text: str) -> list[str]:
    found = outcome(program, text)
    assert found.passed is not bool(found.failures)
    return [f"{d.where}: {d.message.splitlines()[0]}" for d in found.failures]


def refusal(program: ir.Program, text: str) -> str:
    with pytest.raises(StfError) as caught:
        outcome(program, text)
    (diagnostic,) = caught.value.diagnostics
    return f"{diagnostic.where}: {diagnostic.message}"


MISS = "packet 0 00 00000000 0000 00\n"


@pytest.mark.parametrize(
    "expectation",
    [
        "expect 1 00 00000000 0000 ee $",
        "expect 1 00 00000000 0000 ee",
        "expect 1 00 0000",
        "expect 1 0* 00000000 0000 **",
        "expect 1",
    ],
)
def test_what_passes(tables: ir.Program, expectation: str) -> None:
    assert failures(tables, MISS + expectation) == []
    assert failures(tables, expectation + "\n" + MISS) == []


@pytest.mark.parametrize(
    ("expectation", "problem"),
    [
        ("expect 1 00 00000000 0000 ef", "t.stf:2:1: port 1, packet 1: byte 7 is EE, not EF"),
        (
            "expect 1 00 00000000 0000 $",
            "t.stf:2:1: port 1, packet 1: it has 8 bytes, and exactly 7 are expected",
        ),
        (
            "expect 1 00 00000000 0000 ee 00",
            "t.stf:2:1: port 1, packet 1: it has 8 bytes, and 9 are expected",
        ),
        ("no_packet", "t.stf:2:1: port 1: a packet came out that is not expected"),
        ("wait", "t.stf:1:1: port 1: a packet came out that is not expected"),
    ],
)
def test_what_fails(tables: ir.Program, expectation: str, problem: str) -> None:
    assert failures(tables, MISS + expectation) == [problem]


def test_packets_of_a_port_come_in_order_and_all_of_them(tables: ir.Program) -> None:
    two = "packet 0 00 00000000 0001 00\npacket 0 00 00000000 0002 00\n"
    assert failures(tables, two + "expect 1 00 00000000 0001\nexpect 1 00 00000000 0002\n") == []
    swapped = failures(tables, two + "expect 1 00 00000000 0002\nexpect 1 00 00000000 0001\n")
    assert [line.split(": ")[0] for line in swapped] == ["t.stf:3:1", "t.stf:4:1"]
    assert failures(tables, two + "expect 1 00 00000000 0001\n") == [
        "t.stf:3:1: port 1: a packet came out that is not expected"
    ]
    missing = two + "expect 1 00\nexpect 1 00\nexpect 1 00\nexpect 7 00\n"
    assert failures(tables, missing) == [
        "t.stf:5:1: port 1: no packet came out (2 packets in all)",
        "t.stf:6:1: port 7: no packet came out (0 packets in all)",
    ]


def test_a_failure_names_the_packet_that_caused_it(tables: ir.Program) -> None:
    (failure,) = outcome(tables, MISS + "expect 1 ff").failures
    assert "expected FF" in failure.message
    assert "got      00000000000000EE" in failure.message
    assert str(failure.notes[0][0]) == "t.stf:1:1"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("add nothing k:1 set(value:1)", "t.stf:1:1: table nothing: no table of that name; there are"),
        ("add longest k:1 set(value:1)", "t.stf:1:13: table Pipe.longest: no key k; there is"),
        ("add longest address:1/8 sett(value:1)", "t.stf:1:1: table Pipe.longest: action sett: no action"),
        ("add longest address:1/8 set(valu:1)", "t.stf:1:1: table Pipe.longest: action Pipe.set: no parameter valu"),
        ("add longest address:1/8 set(value:256)", "parameter value: value 256 does not fit bit<8>"),
        ("add longest address:0x1ffffffff/8 set(value:1)", "does not fit bit<32>"),
        ("add longest address:1&&&1 set(value:1)", "key hdr.request.address is lpm, and Masked does not fit it"),
        ("add exactly address:0x1* port:1 set(value:1)", "0x1* cannot have wildcards"),
        ("add masked address:1 set(value:1)", "t.stf:1:1: table Pipe.masked: the entry needs a priority"),
        ("add masked 1 address:1 address:2 set(value:1)", "key hdr.request.address is given twice"),
        ("remove first", "nothing is called first"),
        ("register_read r 0", "t.stf:1:1: register r: no register of that name; there are none"),
        ("mc_node_associate 1 0", "t.stf:1:1: multicast node 0: it has not been created"),
    ],
)
def test_what_does_not_fit_the_program_is_refused(tables: ir.Program, line: str, problem: str) -> None:
    assert problem in refusal(tables, line)


def test_digits_that_are_not_written_are_not_compared(tables: ir.Program) -> None:
    # As p4c's runner has it: 0x01 cares for eight bits of the 32, a decimal number for all.
    entry, packet = "add masked 1 address:{} set(value:9)\n", "packet 0 03 aabbcc01 0000 00\n"
    assert failures(tables, entry.format("0x01") + packet + "expect 1 03 aabbcc01 0000 09") == []
    assert failures(tables, entry.format("1") + packet + "expect 1 03 aabbcc01 0000 ee") == []


def test_an_exact_key_left_out_is_zero(tables: ir.Program) -> None:
    assert (
        failures(tables, "add exactly port:5 set(value:9)\npacket 0 00 00000000 0005 00\nexpect 1 00 00000000 0005 09")
        == []
    )


def test_the_larger_priority_wins_and_zero_is_one(tables: ir.Program) -> None:
    entries = "add masked 0 address:0x0 set(value:1)\nadd masked 1 address:0x0 port:0x* set(value:2)\n"
    assert failures(tables, entries + "packet 0 03 00000000 0000 00\nexpect 1 03 00000000 0000 02") == []


def test_remove_all(tables: ir.Program) -> None:
    text = "add exactly address:1 port:5 set(value:9)\nremove all\npacket 0 00 00000001 0005 00\n"
    assert failures(tables, text + "expect 1 00 00000001 0005 ee") == []


def test_checks_fail_with_what_was_found(count: ir.Program) -> None:
    text = "packet 0 01 00\nexpect 1 01 00\ncheck_counter both(1) bytes > 2\ncheck_counter both(1) packets != 1"
    assert failures(count, text) == [
        "t.stf:3:1: both(1) bytes is 2, and > 2 is expected",
        "t.stf:4:1: both(1) packets is 1, and != 1 is expected",
    ]


def test_reading_is_noted(count: ir.Program) -> None:
    found = outcome(
        count, "packet 0 01 00\nexpect 1\ncounter_read both 1\nmirroring_get 3\nmirroring_add 3 9\nmirroring_get 3"
    )
    assert found.notes == (
        "both[1]: 1 packets, 2 bytes",
        "mirroring session 3: not configured",
        "mirroring session 3: port 9",
    )


def test_digests_are_compared_where_one_is_named() -> None:
    program = compile_file(FOLDER / "digest.p4").program
    packet = "packet 3 02 000000000001 0000\n"
    assert failures(program, packet) == []
    assert failures(program, packet + "expect_digest learn_t port:4") == ["t.stf:2:23: digest 1: port is 3, not 4"]
    assert failures(program, packet + "expect_digest other port:3") == ["t.stf:2:1: digest 1 is a learn_t, not a other"]
    assert failures(program, packet * 2 + "expect_digest _ port:3") == ["t.stf:3:1: 1 more digest came after this one"]
    assert failures(program, packet + "expect_digest _\nexpect_digest _") == ["t.stf:3:1: no such digest was sent"]


def test_keys_of_p4testgens_tests_are_found_without_their_bounds_and_as_valid_bits() -> None:
    word, wide = Value(5, None, 0, "5", Pos("t.stf", 1, 1)), Value(6, None, 0, "6", Pos("t.stf", 1, 1))
    specs = [KeySpec("h.x[95:64]", "exact", 32), KeySpec("h.v[0].$valid$", "exact", 1)]
    keys = tuple(KeyMatch(name, value, value.pos) for name, value in (("h.x", wide), ("h.v$0.$valid", word)))
    assert match_fields("t", specs, keys) == {"h.x[95:64]": Exact(6), "h.v[0].$valid$": Exact(5)}
    with pytest.raises(StfError, match=r"table t: no key h\.x; there are h\.x\[31:0\], h\.x\[95:64\]"):
        match_fields("t", [specs[0], KeySpec("h.x[31:0]", "exact", 32)], keys[:1])
