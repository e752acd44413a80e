"""What of a packet's trace is printed, and of which packets."""

from __future__ import annotations

from itertools import chain

import pytest

from p4gen.labs.prompt.tracing import KINDS, folded

TICK = """\
              packet of 62 bytes on port 510
program.p4:1    extract hdr.bth: opcode=TICK (192), dest_qp=256"""
CONTROL = """\
              packet of 62 bytes on port 1
program.p4:1    extract hdr.bth: opcode=SEND_ONLY_IMM (5), dest_qp=256"""
DATA = """\
              packet of 314 bytes on port 1
program.p4:1    extract hdr.bth: opcode=SEND_ONLY (4), dest_qp=256
program.p4:2    extract hdr.payload: lane_0=1, lane_1=2"""
PING = """\
              packet of 98 bytes on port 1
program.p4:1    extract hdr.ethernet: ether_type=2048 (0x800)"""


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [("", [CONTROL, DATA, PING]), ("data", [DATA]), ("ticks", [TICK])],
    ids=["default", "data", "ticks"],
)
def test_kinds_of_packets(kind: str, wanted: list[str]) -> None:
    assert [packet for packet in (TICK, CONTROL, DATA, PING) if KINDS[kind](packet)] == wanted


def steps(array: str, number: int, before: int, after: int) -> list[str]:
    register = f"IncIngress.module.{array}_{number}.register[0]"
    return [
        f"program.p4:{number}     control IncIngress.module.{array}_{number}",
        f"program.p4:99      {register} is {before}",
        f"program.p4:99      {register} becomes {after} (was {before})",
    ]


def test_of_lanes_the_first_two_are_printed() -> None:
    lanes = [steps("lane", number, number, number + 1) for number in range(64)]
    trace = ["program.p4:9     ingress", *chain(*lanes), "program.p4:9     egress"]
    expected = [trace[0], *lanes[0], *lanes[1], " " * 17 + "… 62 more lanes", trace[-1]]
    assert list(folded(trace)) == expected


def test_of_edges_the_one_that_changes_is_printed() -> None:
    edges = [steps("edge", number, 5, 6 if number == 7 else 5) for number in range(9)]
    found = list(folded(list(chain(*edges))))
    assert found == [*edges[0], " " * 17 + "… 6 more edges", *edges[7], *edges[8]]


def test_what_is_no_lane_is_printed() -> None:
    trace = DATA.splitlines()
    assert list(folded(trace)) == trace
    assert list(folded([])) == []


def test_assignments_and_conditions_are_left_to_the_file() -> None:
    trace = [
        "program.p4:9     ingress",
        "program.p4:10      if (meta.drop == drop_t.NONE): true",
        "program.p4:11      hdr.stack[i + 1].a = 16 (0x10)",
        "program.p4:12      table IncIngress.forward [hdr.ipv4.dst_addr=0xaff0002]: hit",
        "program.p4:13        action IncIngress.set(value=16 (0x10))",
        "program.p4:14      hdr.aeth.setValid()",
        "program.p4:15      switch (meta.traffic): UP_DATA (1)",
        "program.p4:16      IncIngress.slots[95] becomes 3 (was 2)",
        "program.p4:17      extract hdr.bth: opcode=SEND_ONLY (4), dest_qp=256",
        "                 unicast to port 1",
    ]
    assert list(folded(trace)) == [trace[i] for i in (0, 3, 4, 7, 8, 9)]
