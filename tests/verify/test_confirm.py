"""Confirmation of a search by the interpreter and BMv2."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from p4gen.cli.app import cli
from p4gen.errors import InputError, MissingToolError
from p4gen.p4 import p4c
from p4gen.switch import bmv2
from p4gen.verification.findings.confirm import confirm, local_steps
from p4gen.verification.findings.confirm_bmv2 import NO_THRIFT, UNWRITABLE, confirm_on_bmv2
from p4gen.verification.parts.walks import walks
from p4gen.verification.search.search import Search
from p4gen.verification.seeding.hunt import program_of, seeding_of
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from p4gen.vocabulary import CollectiveSpec
from verify.scopes import scope

needs_bmv2 = pytest.mark.skipif(
    not (shutil.which("simple_switch_grpc") and p4c.find()),
    reason="simple_switch_grpc and p4c are not on PATH",
)


def searched_with_fault(name: str) -> Search:
    """A search of a program with a fault, whose scope claims to have the sound one."""
    one = scope("III", packets=2)
    seeding = seeding_of(one.program)
    (fault,) = [each for each in seeding.mutations if each.name == name]
    program = program_of(seeding, fault)
    assert isinstance(program, CollectiveSpec)
    sound = replace(one, program=program, budget=Budget(losses=1))
    search = Search(System(replace(sound, fault=fault)))
    search.run(depth=12)
    search.knowledge.system.scope = sound
    return search


@pytest.mark.parametrize("mode", ["II", "III"])
def test_the_interpreter_does_what_machine_code_did(mode: str) -> None:
    search = Search(System(scope(mode, packets=2, budget=Budget(losses=1, corruptions=1))))
    assert search.run().complete
    confirmation = confirm(search.knowledge, "interp")
    assert confirmation.steps > 50
    assert confirmation.difference == ""


def test_a_step_that_differs_is_reported() -> None:
    """The steps of a program with a fault are not those of the sound one."""
    assert confirm(searched_with_fault("nak-too-early").knowledge, "interp").difference.startswith("s0: ")


@needs_bmv2
@pytest.mark.parametrize("mode", ["II", "III"])
def test_bmv2_does_what_machine_code_did(mode: str) -> None:
    search = Search(System(scope(mode, packets=2, budget=Budget(losses=1, corruptions=1))))
    assert search.run().complete
    confirmation = confirm_on_bmv2(search.knowledge)
    assert confirmation.steps == len(local_steps(search.knowledge)) > 50
    assert confirmation.difference == ""
    assert not confirmation.left_out


@needs_bmv2
def test_bmv2_with_a_sound_program_differs_from_a_search_of_a_wrong_one() -> None:
    confirmation = confirm_on_bmv2(searched_with_fault("nak-too-early").knowledge)
    assert confirmation.difference.startswith("s0: bmv2 sends other frames")


@needs_bmv2
def test_bmv2_with_a_fault_differs_from_a_sound_search() -> None:
    one = scope("III", packets=2)
    seeding = seeding_of(one.program)
    (fault,) = [each for each in seeding.mutations if each.name == "nak-too-early"]
    program = program_of(seeding, fault)
    assert isinstance(program, CollectiveSpec)
    sound = replace(one, program=program, budget=Budget(losses=1))
    search = Search(System(sound))
    assert search.run().complete
    search.knowledge.system.scope = replace(sound, fault=fault)
    assert confirm_on_bmv2(search.knowledge).difference.startswith("s0: ")


@needs_bmv2
def test_without_thrift_steps_of_ticks_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bmv2, "_serves_thrift", lambda port: False)
    search = Search(System(scope("III", packets=2)))
    assert search.run().complete
    cpu_port = search.knowledge.system.scope.world().specs["s0"].architecture.cpu_port
    ticks = sum(step.port == cpu_port for step in local_steps(search.knowledge))
    confirmation = confirm_on_bmv2(search.knowledge)
    assert confirmation.difference == ""
    assert confirmation.left_out[NO_THRIFT] == ticks > 0
    assert confirmation.steps + sum(confirmation.left_out.values()) == len(local_steps(search.knowledge))


@needs_bmv2
def test_steps_from_registers_that_cannot_be_written_are_left_out() -> None:
    search = Search(System(scope("III", packets=2, stale=True)))
    assert search.run().complete
    confirmation = confirm_on_bmv2(search.knowledge)
    assert confirmation.left_out == {UNWRITABLE: len(local_steps(search.knowledge))}
    assert confirmation.sentence().startswith("no step of switches repeated; ")


def test_without_tools_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    arguments = ["verify", "star-2", "--mode", "III", "--confirm", "bmv2"]
    with pytest.raises(MissingToolError, match="not on PATH") as caught:
        CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert caught.value.exit_code == 3


def test_programs_for_tofino_are_not_for_bmv2() -> None:
    arguments = ["verify", "star-2", "--mode", "II", "--arch", "t2na", "--confirm", "bmv2"]
    with pytest.raises(InputError, match="--confirm: error: bmv2 does not run programs for t2na"):
        CliRunner().invoke(cli, arguments, catch_exceptions=False)


@given(
    st.dictionaries(st.integers(0, 9), st.lists(st.integers(0, 9), max_size=4), max_size=10).map(
        lambda found: {state: [((state, at, to), to) for at, to in enumerate(tos)] for state, tos in found.items()}
    )
)
def test_walks_take_each_transition_that_can_be_reached(
    automaton: dict[int, list[tuple[tuple[int, int, int], int]]],
) -> None:
    reached, more = {0}, [0]
    while more:
        for _, to in automaton.get(more.pop(), []):
            if to not in reached:
                reached.add(to)
                more.append(to)
    taken = set()
    for walk in walks(automaton, 0):
        here = 0
        for step in walk:
            state, at, to = step
            assert state == here
            assert (step, to) == automaton[state][at]
            taken.add(step)
            here = to
    assert taken == {step for state in reached for step, _ in automaton.get(state, [])}
