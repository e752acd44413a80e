"""What a switch remembers, as data: it moves from switch to switch, on either engine, and nothing is left behind."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.model import EngineName, Model, Trace
from p4gen.p4 import ir
from p4gen.p4.compile import compile_file, compile_text
from p4gen.stf.parser import parse_file
from p4gen.stf.runner import run
from p4gen.stf.suite import find_tests

from ..handmade import Maker
from .agree import Pair, everything
from .programs import Program

FUZZ = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
CORPUS = Path(__file__).parents[2] / "stf"
TELLING = (
    "again", "clone", "count", "digest", "entries", "externs", "meter", "multicast", "parse.value_set", "profile",
    "register", "tables",
)  # fmt: skip
"""Tests of what outlives a packet, by the beginnings of their names."""


@FUZZ
@given(st.integers(0, 1 << 32))
@pytest.mark.long
def test_a_restored_switch_goes_on_as_the_frozen_one(seed: int) -> None:
    """Random programs, entries and packets; the entries change while frozen states wait."""
    rng = Random(seed)
    made = Program(rng)
    try:
        program = compile_text(made.text(), "random.p4").program
    except InputError:
        return  # the front end finds fault with a few
    pair = Pair(program, seed)
    pair.configure(rng)
    for _ in range(8):
        pair.send(rng.randrange(6), made.packet())
    now, frozen = pair.now, [model.freeze() for model in pair.both]
    assert frozen == [pickle.loads(pickle.dumps(each)) for each in frozen]
    packets = [(rng.randrange(6), made.packet()) for _ in range(8)]
    sent = [pair.send(*packet) for packet in packets]
    after, left = [everything(model) for model in pair.both], [model.freeze() for model in pair.both]
    if program.tables:
        for _ in range(4):
            pair.change(rng)
    for other in (pair, Pair(program, seed + 1)):
        other.now = now
        for model, state in zip(other.both, frozen, strict=True):
            model.restore(state)
            assert model.freeze() == state
        assert [other.send(*packet) for packet in packets] == sent
        for model, wanted in zip(other.both, after, strict=True):
            found = everything(model)
            assert [(name, value, wanted[name]) for name, value in found.items() if value != wanted[name]] == []
        for model, state in zip(other.both, left, strict=True):
            model.restore(state)
            assert model.freeze() == state


class Mover:
    """Before each packet, all that the switch remembers moves to its twin, which has not seen anything of it."""

    moves = 0

    def __init__(self, engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
        self._engine = engine
        process = Model.process
        twins: dict[int, tuple[Model, Model]] = {}

        def moved(model: Model, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
            if id(model) not in twins:
                twins[id(model)] = model, self.make(model.program, model._state.clock)
            _, twin = twins[id(model)]
            frozen = model.freeze()
            model._state.reset()
            twin.restore(frozen)
            assert twin.freeze() == frozen
            assert hash(twin.freeze()) == hash(frozen)
            model.__dict__, twin.__dict__ = twin.__dict__, model.__dict__
            self.moves += 1
            return process(model, port, packet, trace)

        monkeypatch.setattr(Model, "process", moved)

    def make(self, program: ir.Program, clock: Callable[[], int]) -> Model:
        """A switch."""
        return Model(program, clock=clock, engine=self._engine)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.long
def test_a_switch_that_moves_before_each_packet_passes_the_language_tests(
    engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    mover = Mover(engine, monkeypatch)
    for test in find_tests(CORPUS):
        if test.program is None or not test.name.startswith(TELLING):
            continue
        outcome = run(compile_file(test.program).program, parse_file(test.script), engine=mover.make)
        assert outcome.passed, (test.name, outcome.failures)
    assert mover.moves > 150


def test_states_go_over_between_switches_of_one_program_and_engine_only() -> None:
    one, other = Maker(ingress=[]).model(engine="jit", cache=""), Maker(ingress=[]).model()
    with pytest.raises(ValueError, match="engine jit, this switch's is interp"):
        other.restore(one.freeze())
    program = compile_file(CORPUS / "register.p4").program
    for engine, model in (("jit", one), ("interp", other)):
        with pytest.raises(ValueError, match="another program"):
            model.restore(Model(program, engine=engine).freeze())  # type: ignore[arg-type]
