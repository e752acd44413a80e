"""The native engine agrees with the interpreter on every output byte and every bit of state."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program.compilation import compile_spec

from .agree import Pair
from .programs import LaneProgram, Program

PACKETS = 25

# Programs are large, and there is no smaller one that is as telling: a seed is what is drawn.
SEEDS = st.integers(0, 1 << 32)
UNHURRIED = [HealthCheck.too_slow, HealthCheck.filter_too_much]
FUZZ = settings(max_examples=25, deadline=None, suppress_health_check=UNHURRIED)


def _agree(kind: type[Program] | type[LaneProgram], seed: int) -> None:
    rng = Random(seed)
    made = kind(rng)
    text = made.text()
    try:
        program = compile_text(text, "random.p4").program
    except InputError:
        # The front end finds fault with a few of them: a constant that is shifted away, say.
        assume(kind is LaneProgram)
        raise
    pair = Pair(program, seed)
    pair.configure(rng)
    for i in range(PACKETS):
        pair.send(rng.randrange(6), made.packet())
        if i % 4 == 3 and program.tables:
            pair.change(rng)
    pair.compare()


@FUZZ
@given(SEEDS)
@pytest.mark.long
def test_random_programs_agree(seed: int) -> None:
    """Expressions, headers, stacks, varbits, control flow, tables, externs, the traffic manager."""
    _agree(Program, seed)


@FUZZ
@given(SEEDS)
@pytest.mark.long
def test_random_rows_of_lanes_agree(seed: int) -> None:
    """What becomes vector code does what the lanes do one by one, traps and their order included."""
    _agree(LaneProgram, seed)


@pytest.mark.parametrize("fields", [{"lanes": 8}, {"lanes": 64}, {"op": "max", "dtype": "uint32"}, {"icrc": "ignore"}])
@pytest.mark.long
def test_generated_programs_agree_on_mutated_traffic(fields: dict[str, object]) -> None:
    """RoCEv2 with bytes changed, cut short, repeated and out of order."""
    from p4gen.bench.workload import bursts  # noqa: PLC0415

    spec = EpicSpec.model_validate(fields | {"window": 2, "message": 2, "groups": 2, "fan_in": 4, "ports": 8})
    rng = Random(5)
    work = bursts(spec, 96, 5)
    pair = Pair(compile_spec(spec).program)
    for model in pair.both:
        work.configure(model)
    for _ in range(300):
        port, packet = rng.choice(work.packets)
        pair.send(port, mutated(rng, packet))
    pair.compare()


def mutated(rng: Random, packet: bytes) -> bytes:
    """The packet as it is, or with a byte changed, or cut short."""
    kind, at = rng.randrange(4), rng.randrange(len(packet))
    if kind == 0:
        return packet[:at] + bytes((rng.getrandbits(8),)) + packet[at + 1 :]
    return packet[:at] if kind == 1 else packet
