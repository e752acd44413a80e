"""The markers of a switch without a fence: programs forward them as ordinary traffic, and nothing else notices."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from p4gen.families import parse_spec
from p4gen.model import Model
from p4gen.p4.compile import Compiled
from p4gen.program.compilation import compile_spec
from p4gen.ptf import markers
from p4gen.switch.drops import dropped
from p4gen.switch.fence import MarkerFence

PROGRAMS: dict[str, dict[str, Any]] = {
    "t2na": {"mode": "II", "arch": "t2na", "lanes": 8, "ports": 8, "groups": 2, "fan_in": 4},
    "tna": {"mode": "II", "arch": "tna", "lanes": 8, "ports": 8, "groups": 2, "fan_in": 4},
    "v1model": {"mode": "III", "lanes": 8, "ports": 8, "groups": 2, "fan_in": 4},
    "themis": {"family": "themis", "ports": 8},
    "themis-s t2na": {"family": "themis", "mode": "themis-s", "arch": "t2na", "ports": 8},
    "themis-d tna": {"family": "themis", "mode": "themis-d", "arch": "tna", "ports": 8},
}


def compiled(fields: dict[str, Any]) -> Compiled:
    return compile_spec(parse_spec(fields))


@pytest.mark.parametrize("name", PROGRAMS)
def test_markers_pass_a_program_and_are_counted_nowhere(name: str) -> None:
    spec = parse_spec(PROGRAMS[name])
    model = Model(compiled(PROGRAMS[name]).program)
    ports = spec.architecture.front_ports(6)
    model.insert(*markers.routes(ports))
    marked = markers.of_ports(ports)
    arrived: deque[tuple[int, bytes]] = deque()
    sent: list[int] = []

    def send(port: int, frame: bytes) -> None:
        sent.append(port)
        arrived.extend(model.process(port, frame))

    def wait(_until: float) -> None:
        while arrived:
            assert fence.arrived(*arrived.popleft())

    fence = MarkerFence(marked, send, wait)
    fence.settle()
    assert sent == [*ports, *ports]
    assert {marker.leaves for marker in marked.values()} == set(ports)
    assert not dropped(spec, model.counters)


def test_one_port() -> None:
    (marker,) = markers.of_ports([3]).values()
    assert marker.leaves == 3


@pytest.mark.parametrize("name", ["t2na", "tna", "themis-s t2na", "themis-d tna"])
def test_nine_bits_are_a_port(name: str) -> None:
    """The harness for tofino-model takes every field of 9 bits for a port (``p4gen.switch.tofino.bfrt.ports``)."""
    info = compiled(PROGRAMS[name]).p4info
    nine = {p.name for action in info.actions for p in action.params if p.bitwidth == 9}
    nine |= {field.name for table in info.tables for field in table.match_fields if field.bitwidth == 9}
    assert nine == {"port"}
