"""What comes between the passes of a NACK that walks through a queue on Tofino: its second pass is sent by hand."""

from __future__ import annotations

import pytest

from p4gen.groups import Endpoint, NextHop, Route, connections
from p4gen.groups.config import routing
from p4gen.groups.connections import ConnectionHere
from p4gen.model import Model
from p4gen.net.collectives.state import connection_state
from p4gen.papers.themis.control import Connection, PathSet, Peer, clone_sessions, filter_entries, path_set_entries
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.papers.themis.state import queued
from p4gen.program.compilation import compile_spec
from p4gen.rocev2.headers import AETH, BTH, UDP, Ethernet, IPv4, ipv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket

SPEC = ThemisSpec.model_validate(
    {"arch": "t2na", "mode": "themis-d", "paths": 4, "path_sets": 4, "connections": 4, "ports": 8, "queue": 16}
    | {"queue_banks": 4}
)
AWAY, HERE = Peer(ipv4("10.1.0.9"), 0x300), Peer(ipv4("10.0.0.1"), 0x400)
HOST, SPINE, AROUND = 0, 1, SPEC.architecture.recirculation_port
ROUTES = routing(
    [Route("10.0.0.1/32", HOST), Route("10.1.0.0/16", SPINE)], [NextHop(p, p, 1, 2) for p in (HOST, SPINE)]
)
LARGER, ARRIVED = 1, 4


def packet(psn: int, *, opcode: int = Opcode.SEND_MIDDLE, syndrome: int | None = None) -> bytes:
    """A request, or an answer with a syndrome."""
    source, target = (AWAY, HERE) if syndrome is None else (HERE, AWAY)
    made = RocePacket(
        Ethernet(1, 2),
        IPv4(source.ip, target.ip),
        UDP(50000),
        BTH(opcode, target.qp, psn),
        aeth=None if syndrome is None else AETH(syndrome, 7),
        payload=b"sprayed!" if syndrome is None else b"",
    )
    return made.sealed().to_bytes()


@pytest.fixture(scope="module")
def loaded() -> Model:
    return Model(compile_spec(SPEC).program)


@pytest.fixture
def model(loaded: Model) -> Model:
    """0, 1 and 3 have passed by two paths; NACK(2) has had its first pass."""
    loaded.reset()
    entries = (
        *ROUTES,
        *path_set_entries(SPEC, PathSet.equal(1, 2)),
        *filter_entries(SPEC, Connection(AWAY, HERE), 1, index=0, epoch=1, port=HOST),
    )
    for entry in entries:
        loaded.insert(entry)
    for session in clone_sessions(SPEC):
        loaded.set_clone_session(session)
    for psn in (0, 1, 3):
        assert [port for port, _ in loaded.process(SPINE, packet(psn))] == [HOST]
    loaded.write_register("blocked", 0, 2 << 40 | 0 << 32 | 1 << 24 | 1 << 16 | 0)
    return loaded


def last_pass(model: Model, seen: int) -> list[tuple[int, bytes]]:
    """What leaves for NACK(2) in its last pass, after rows that have told ``seen``; the last row had nothing."""
    walk = bytes((1, seen, 0, 1)) + SPINE.to_bytes(2) + (2 << 8).to_bytes(4) + bytes(4 + 4 * SPEC.queue_banks)
    return model.process(AROUND, walk + packet(2, opcode=Opcode.ACKNOWLEDGE, syndrome=0x60))


def verdicts(model: Model) -> list[int]:
    """Those that have been counted."""
    return [verdict for verdict in range(16) if model.counter("verdicts", verdict).packets]


def test_a_nack_that_is_blocked_waits(model: Model) -> None:
    """Until a later packet of its path shows the loss."""
    assert last_pass(model, LARGER) == []
    assert verdicts(model) == [5]
    assert sorted(port for port, _ in model.process(SPINE, packet(4))) == [HOST, SPINE]
    assert verdicts(model) == [5, 9]


def test_its_packet_comes_between_passes(model: Model) -> None:
    """The NACK is blocked and waits for nothing."""
    model.process(SPINE, packet(2))
    assert last_pass(model, LARGER) == []
    assert verdicts(model) == [6]
    assert [port for port, _ in model.process(SPINE, packet(4))] == [HOST]


def test_a_later_packet_of_its_path_comes_between_passes(model: Model) -> None:
    """Nothing is made of the packet, as the NACK passes by itself."""
    assert [port for port, _ in model.process(SPINE, packet(4))] == [HOST]
    assert [port for port, _ in last_pass(model, LARGER)] == [SPINE]
    assert verdicts(model) == [7]
    assert [port for port, _ in model.process(SPINE, packet(6))] == [HOST]


def test_an_ack_comes_between_passes(model: Model) -> None:
    model.process(HOST, packet(5, opcode=Opcode.ACKNOWLEDGE, syndrome=0x1F))
    assert last_pass(model, LARGER) == []
    assert 6 in verdicts(model)


def test_a_nack_that_passes_waits_for_nothing(model: Model) -> None:
    assert [port for port, _ in last_pass(model, LARGER | ARRIVED)] == [SPINE]
    assert [port for port, _ in model.process(SPINE, packet(4))] == [HOST]
    assert verdicts(model) == [2]


def test_the_state_of_a_connection_is_read(model: Model) -> None:
    ends = (Endpoint(mac=1, ip=AWAY.ip, qp=AWAY.qp), Endpoint(mac=2, ip=HERE.ip, qp=HERE.qp))
    here = ConnectionHere(connections.Connection(0, *ends, 49152), 2, None, HOST, 1)
    assert queued(SPEC, model, here, 3) == [(3, 1), (1, 1), (0, 0)]
    assert "the NACK of PSN 0x000002 is being judged" in connection_state(SPEC, model, here, 2)
    last_pass(model, LARGER)
    assert any("NACK of PSN 0x000002 is blocked" in line for line in connection_state(SPEC, model, here, 2))
    for psn in range(100, 140):
        model.process(SPINE, packet(psn))
    assert [psn for psn, _ in queued(SPEC, model, here, 139)] == list(range(139, 139 - SPEC.queue, -1))
