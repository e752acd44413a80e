"""STF's text: every statement, every notation of a value, and what is said about a wrong line."""

from __future__ import annotations

import pytest

from p4gen.errors import Pos
from p4gen.stf import StfError, parse_text
from p4gen.stf.statements import (
    Add,
    Between,
    BoundAction,
    Check,
    Command,
    CreateMember,
    Expect,
    ExpectDigest,
    Handle,
    Masked,
    NoPacket,
    Packet,
    Prefix,
    Rate,
    Remove,
    SetDefault,
    Value,
    Wait,
)


def one(line: str) -> object:
    (found,) = parse_text(line)
    return found


def problems(text: str) -> list[str]:
    with pytest.raises(StfError) as caught:
        parse_text(text, "t.stf")
    return [f"{d.where}: {d.message}" for d in caught.value.diagnostics]


def test_packets_are_hexadecimal_in_groups_of_any_size() -> None:
    assert one("packet 3 0a 0B0c d e") == Packet(3, bytes.fromhex("0a0b0cde"), Pos("test.stf", 1, 1))


def test_comments_empty_lines_and_case() -> None:
    text = "# nothing\n\n  PACKET 1 aa # a byte\nWait\n"
    found = parse_text(text)
    assert [type(s) for s in found] == [Packet, Wait]
    assert found[0].pos == Pos("test.stf", 3, 3)


@pytest.mark.parametrize(
    ("line", "nibbles", "exact"),
    [
        ("expect 2 aa*b **", "AA*B**", False),
        ("expect 2 aabb$", "AABB", True),
        ("expect 2 aabb $", "AABB", True),
        ("expect 2", None, False),
        ("expect 2 $", "", True),
    ],
)
def test_expectations(line: str, nibbles: str | None, exact: bool) -> None:
    found = one(line)
    assert isinstance(found, Expect)
    assert (found.port, found.nibbles, found.exact) == (2, nibbles, exact)


@pytest.mark.parametrize(
    ("text", "value", "mask", "prefix"),
    [
        ("0x1f", 0x1F, 0xFF, 8),
        ("0X00ff", 0xFF, 0xFFFF, 16),
        ("0x12**", 0x1200, 0xFF00, 8),
        ("0x*2", 0x02, 0x0F, 0),
        ("0b1*0", 0b100, 0b101, 1),
        ("0o17", 0o17, 0o77, 6),
        ("42", 42, None, 0),
        ("10.0.0.1", 0x0A000001, None, 32),
        ("00:11:22:33:44:55", 0x001122334455, None, 48),
    ],
)
def test_values(text: str, value: int, mask: int | None, prefix: int) -> None:
    found = one(f"add t k:{text} a()")
    assert isinstance(found, Add)
    number = found.keys[0].value
    assert isinstance(number, Value)
    assert (number.value, number.mask, number.prefix) == (value, mask, prefix)


def test_an_entry_with_everything() -> None:
    found = one("add pipe.t 7 h.a:0x1&&&0x3 h.s[2].b:10.0.0.0/8 h.c:1..5 h.d:2->3 h.e:9 pipe.act(x:1, y:0xff) = A")
    assert isinstance(found, Add)
    assert (found.table, found.priority, found.handle) == ("pipe.t", 7, "A")
    assert [type(k.value) for k in found.keys] == [Masked, Prefix, Between, Between, Value]
    assert [k.name for k in found.keys] == ["h.a", "h.s[2].b", "h.c", "h.d", "h.e"]
    assert isinstance(found.action, BoundAction)
    assert [(name, value.value) for name, value in found.action.args] == [("x", 1), ("y", 255)]


def test_entries_of_members_and_groups() -> None:
    member, group = parse_text("table_indirect_add t k:1 => 4\ntable_indirect_add_with_group t 2 k:1 => $g = h")
    assert isinstance(member, Add)
    assert isinstance(group, Add)
    assert isinstance(member.action, Value)
    assert not member.to_group
    assert isinstance(group.action, Handle)
    assert (group.to_group, group.action.name, group.handle) == (True, "g", "h")


def test_other_statements() -> None:
    kinds = [
        type(s)
        for s in parse_text(
            "setdefault t a(x:1)\nremove all\nremove A\nwait 0.5\nno_packet\ncheck_counter c(3) packets == 2\n"
            "check_counter c($A)\ncheck_register r(0) >= 0x10\ncheck_idle A < 2\ncheck_traps == 0\n"
            "expect_digest d f:1 g:0x2\nact_prof_create_member p a(x:1) = m\nmc_node_create 5 1 2 3\n"
        )
    ]
    checks = [Check] * 5
    assert kinds == [SetDefault, Remove, Remove, Wait, NoPacket, *checks, ExpectDigest, CreateMember, Command]


def test_meter_rates() -> None:
    found = one("meter_set_rates m 2 0.000005:4 0.5:10")
    assert isinstance(found, Command)
    assert found.args[2:] == (Rate(0.000005, 4), Rate(0.5, 10))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("packet", "t.stf:1:7: packet needs the number of a port"),
        ("packet 1 abc", "t.stf:1:1: the packet has 3 digits: half a byte is left over"),
        ("packet 1 ab*c", "t.stf:1:12: '*' is no hexadecimal digit"),
        ("expect 1 aaxa", "t.stf:1:12: 'x' is no hexadecimal digit"),
        ("frobnicate 1", "t.stf:1:1: there is no statement 'frobnicate'"),
        ("add t k:1", "t.stf:1:10: expected an action, found the end of the line"),
        ("add t k:1 a(x:1", "t.stf:1:16: expected ',' or ')', found the end of the line"),
        ("add t k 1 a()", "t.stf:1:9: expected '(' after the action k, found '1'"),
        ("add t k:1 a() b", "t.stf:1:15: expected the end of the line, found 'b'"),
        ("add t k:1 a(x:0x*)", "t.stf:1:15: argument x must be a number without wildcards, not 0x*"),
        ("add t k:300.1.1.1 a()", "t.stf:1:9: 300.1.1.1 is no IPv4 address"),
        ("check_counter c(1) octets == 2", "t.stf:1:20: expected packets or bytes, found 'octets'"),
        ("check_register r(1)", "t.stf:1:20: expected a comparison, found the end of the line"),
        ("mirroring_add 5", "t.stf:1:16: expected port, found the end of the line"),
        ("meter_set_rates m 0 1 2:3", "t.stf:1:23: expected ':' and a burst, found '2'"),
        ("add t k:{1} a()", "t.stf:1:9: unexpected character '{'"),
    ],
)
def test_wrong_lines_say_where_and_why(line: str, problem: str) -> None:
    assert problems(line) == [problem]


def test_every_wrong_line_is_reported_with_its_text() -> None:
    with pytest.raises(StfError) as caught:
        parse_text("packet 0 aa\npacket x\nexpect 1 zz\n")
    assert [d.where.line for d in caught.value.diagnostics if isinstance(d.where, Pos)] == [2, 3]
    assert caught.value.diagnostics[1].source_line == "expect 1 zz"
