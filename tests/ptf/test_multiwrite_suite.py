"""MultiWrite's faults fit their programs, and programs that prune copies send what those without such copies send."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from p4gen.groups.group import Endpoint
from p4gen.model import EngineName, Model
from p4gen.papers.multiwrite.control import Window, WriteContext, WriteEdge, configuration
from p4gen.papers.multiwrite.spec import MultiwriteSpec, Repair, Replicate
from p4gen.program import compose, render
from p4gen.program.compilation import compile_spec
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH, BTH, RETH, UDP, Ethernet, ImmDt, IPv4
from p4gen.rocev2.opcodes import Ack, Nak, Opcode
from p4gen.rocev2.packet import RocePacket

SEEDINGS = tuple(
    conformance_of(spec).seeding(spec)
    for spec in (MultiwriteSpec(), MultiwriteSpec(repair=Repair.HOP, combine="int32"))
)

HERE, SOURCE, FIRST, EDGES = 0x0A000001, 0x0A000101, 0xFFFFF0, 5


@pytest.mark.parametrize(
    ("seeding", "mutation"),
    [pytest.param(seeding, mutation, id=mutation.name) for seeding in SEEDINGS for mutation in seeding.mutations],
)
def test_a_fault_fits_its_program(seeding: Seeding, mutation: Mutation) -> None:
    spec = MultiwriteSpec.model_validate(seeding.programs[mutation.program])
    text = render(compose(spec)).text
    assert mutation.apply(text) != text


def _star() -> WriteContext:
    """Rank 0 behind edge 1 writes to ranks 1 to 3 behind edges 2 to 4, and to three more over the switch behind
    edge 5."""
    edges = []
    for number in range(1, EDGES + 1):
        ends = Endpoint(2, HERE, 0x100 + number), Endpoint(4, SOURCE - 1 + number, 0x200 + number)
        reach = {1: 0, EDGES: 0b1110000}.get(number, 1 << (number - 1))
        window = Window(number << 20, number) if 1 < number < EDGES else None
        edges.append(WriteEdge(number, *ends, reach, window))
    return WriteContext(0, 0, tuple(edges), source=1, rkey=5, window_bytes=1 << 16, first_psn=FIRST)


def _frame(chance: random.Random, spec: MultiwriteSpec) -> tuple[int, bytes]:
    """A write, perhaps out of turn, or an answer, perhaps to nothing, with the port that it comes by."""
    edge = chance.choice((1, 1, 1, 2, 3, 4, 5))
    ip = IPv4(SOURCE - 1 + edge, HERE, identification=chance.getrandbits(16))
    bth = BTH(Opcode.ACKNOWLEDGE, 0x100 + edge, serial.add(FIRST, chance.randrange(24)))
    packet = RocePacket(Ethernet(2, 4), ip, UDP(), bth)
    syndrome = chance.choice((Ack().syndrome, Ack().syndrome, Nak().syndrome))
    if edge > 1:
        return edge - 1, replace(packet, aeth=AETH(syndrome, 0)).sealed().to_bytes()
    write = replace(
        packet,
        bth=replace(bth, opcode=Opcode.WRITE_ONLY_IMM, solicited=chance.random() < 0.1),
        reth=RETH(64 * chance.randrange(8), 5, spec.payload),
        immdt=ImmDt(chance.getrandbits(7) & ~1),
        payload=chance.randbytes(spec.payload),
    )
    return 0, write.sealed().to_bytes()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.long
def test_pruned_copies_are_those_of_sets(engine: EngineName, pytestconfig: pytest.Config) -> None:
    chance = random.Random(pytestconfig.getoption("--seed"))
    switches = []
    for replicate in Replicate:
        spec = MultiwriteSpec(payload=64, contexts=1, edges=EDGES, slots=32, ports=8, replicate=replicate)
        switch = Model(compile_spec(spec).program, engine=engine)
        configuration(spec, [_star()], {edge: edge - 1 for edge in range(1, EDGES + 1)}).install(switch)
        switches.append(switch)
    sent = 0
    for _ in range(2000):
        port, frame = _frame(chance, spec)
        outputs = [sorted(switch.process(port, frame)) for switch in switches]
        assert outputs[0] == outputs[1]
        sent += len(outputs[0])
    assert sent > 50
