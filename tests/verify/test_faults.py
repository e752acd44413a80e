"""Listed faults: a search finds them, or a reason says why none can."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import FailedError, InputError
from p4gen.families import load_collective, load_spec
from p4gen.program import compose, render
from p4gen.ptf.mutations import Mutation
from p4gen.verification.findings.results import Problem
from p4gen.verification.search.search import Search
from p4gen.verification.seeding.hunt import Found, Hunt, beyond, doubt, placed, program_of, seeding_of
from p4gen.verification.seeding.ladder import WRAP, ladder
from p4gen.verification.seeding.verdicts import Verdict, VerdictFile
from p4gen.verification.system import System

STATES = 400_000
"""The most of a scope; the command's default."""
SAMPLE = 2
"""Faults of each mode that a run without --full searches for, in these scopes of the ladder."""
MODES = ("I", "II", "III", "themis")
SCOPES = ("no faults", "a loss", "five packets, window 4, a loss")
SEEN_AT_ONCE = {
    "II": ("half-the-buffer", "complete-at-once", "icrc-stale", "no-duplicate-check", "psn-not-kept", "qp-kept"),
    "III": ("half-the-buffer", "complete-at-once", "icrc-stale", "old-ack-wins", "naks-ignored", "no-nak"),
}
"""Some of the faults that these scopes show."""
SHOWN_BY = {
    "I": {
        "fold-skips-last-edge": "star-4, no faults",
        "no-cursor-starts": "no faults",
        "ready-not-advanced": "messages of three packets",
    },
    "II": {
        "slot-off-by-one": "two groups of two",
        "stale-starts-afresh": "a duplicate",
        "ack-takes-back": "broadcast on star-3, a duplicate",
        "zero-is-announced": "an earlier group whose broadcast was cut short, window 4, a loss",
        "wrong-pipeline": "no faults",
    },
    "III": {
        "root-forgotten": "reduce on star-3, rank 1 is the root",
        "epoch-ignored": "an earlier group that was cut short, window 4",
        "one-bank": "no faults",
        "last-contribution-not-folded": "star-4, no faults",
    },
    "themis": {
        "answers-sprayed": "four packets",
        "never-armed": "a loss",
        "blocked-epoch-ignored": "earlier connections",
    },
}
"""By mode: faults that a scope is there for; one is drawn."""


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.long
def test_faults_are_found(mode: str, seed: int, pytestconfig: pytest.Config) -> None:
    seeding = seeding_of(load_collective(None, {"mode": mode}))
    spec = load_collective(None, seeding.programs["plain"])
    if pytestconfig.getoption("--full"):
        hunt = Hunt(seeding, states=STATES)
        faults: list[Mutation] = list(seeding.mutations)
    else:
        hunt = Hunt(seeding, states=STATES, scopes=SCOPES)
        assert set(SCOPES) <= {name for name, _ in ladder(spec)}
        chosen = random.Random(seed).sample(SEEN_AT_ONCE[mode], SAMPLE)
        faults = [fault for fault in seeding.mutations if fault.name in chosen]
        assert len(faults) == SAMPLE
    found = [hunt.find(fault) for fault in faults]
    assert [each.fault.name for each in found if each.missing] == []


@pytest.mark.parametrize("mode", sorted(SHOWN_BY))
@pytest.mark.long
def test_a_scope_shows_the_fault_that_it_is_there_for(mode: str, seed: int) -> None:
    """And the scenario made of it fails with the fault, and passes without: with registers of an earlier group, too."""
    name, scope = random.Random(seed).choice(sorted(SHOWN_BY[mode].items()))
    seeding = seeding_of(load_spec(None, {"mode": mode}))
    (fault,) = [each for each in seeding.mutations if each.name == name]
    found = Hunt(seeding, states=STATES, scopes=(scope,)).find(fault)
    assert (found.name, found.doubt, found.missing) == (scope, "", False)


def test_a_scenario_that_does_not_show_the_fault_is_a_doubt() -> None:
    seeding = seeding_of(load_collective(None, {"mode": "II"}))
    (fault,) = [each for each in seeding.mutations if each.name == "half-the-buffer"]
    scope = dict(ladder(program_of(seeding, fault)))["no faults"]
    harmless = System(scope.with_fault(replace(fault, replace=fault.find + " ")).with_engine("interp"))
    assert doubt(harmless, Problem("results", "nothing", ())).startswith("no switch does anything else")
    found = Found(fault, doubt="the scenario passes with the fault")
    assert found.missing


@pytest.mark.parametrize("mode", MODES)
def test_every_scope_that_shows_a_fault_is_one_of_the_ladder(mode: str) -> None:
    """And the fault is listed, fits there, and has no reason not to be found."""
    spec = load_spec(None, {"mode": mode})
    seeding = seeding_of(spec)
    ladders: dict[str, dict[str, Any]] = {}
    for fault in seeding.mutations:
        if fault.scope:
            program = program_of(seeding, fault)
            scopes = ladders.setdefault(repr(program), dict(ladder(program)))
            assert placed(scopes[fault.scope].program, fault) is not None, fault.name
            assert beyond(program, fault) == "", fault.name


@pytest.mark.parametrize("mode", ["I", "III", "themis"])
@pytest.mark.long
def test_a_scope_that_shows_a_fault_does_so_after_few_states(mode: str, seed: int, pytestconfig: pytest.Config) -> None:
    spec = load_spec(None, {"mode": mode})
    seeding = seeding_of(spec)
    shown = [fault for fault in seeding.mutations if fault.scope]
    for fault in shown if pytestconfig.getoption("--full") else random.Random(seed).sample(shown, 1):
        found = Hunt(seeding, states=STATES, scopes=(fault.scope,)).find(fault)
        assert (found.name, found.doubt, found.missing) == (fault.scope, "", False), fault.name


@pytest.mark.parametrize(
    ("mode", "reason"), [("I", "in Mode I no slot idles"), ("II", "in Mode II no slot idles"), ("III", "left over")]
)
def test_a_fault_that_modes_share_has_each_modes_own_reason(mode: str, reason: str) -> None:
    (fault,) = [
        each for each in seeding_of(load_spec(None, {"mode": mode})).mutations if each.name == "idle-slot-is-newer"
    ]
    assert reason in fault.excuse


def test_a_fault_that_no_search_can_find_has_a_reason() -> None:
    seeding = seeding_of(load_collective(None, {"mode": "III"}))
    (fault,) = [each for each in seeding.mutations if each.name == "no-back-off"]
    found = Hunt(seeding, states=STATES).find(fault)
    assert (found.missing, found.problem) == (False, None)
    assert found.why == beyond(program_of(seeding, fault), fault) != ""


@pytest.mark.parametrize(
    ("mode", "name", "calls"),
    [
        ("II", "broadcast-takes-no-slot", "broadcast and allreduce, slots"),
        ("III", "cursor-sends-the-unsent", "broadcast on star-3, window 4,"),
        ("III", "sent-before-the-wrap-counts", "broadcast on star-3, window 4,"),
        ("III", "cursor-fills-a-gap", "broadcast on star-3, window 4,"),
    ],
)
@pytest.mark.long
def test_slots_that_idle_for_a_whole_wrap_show_what_would_take_them_for_new(mode: str, name: str, calls: str) -> None:
    seeding = seeding_of(load_collective(None, {"mode": mode}))
    (fault,) = [each for each in seeding.mutations if each.name == name]
    scope = dict(ladder(program_of(seeding, fault)))[f"{calls} idle since {WRAP:#x}"].with_engine("interp")
    assert Search(System(scope), workers=1, liveness=False).run().complete
    seeded = System(scope.with_fault(fault))
    problem = Search(seeded, workers=1).run().problem
    assert problem is not None
    assert doubt(seeded, problem) == ""


FRESH = " { slot_use = slot_use_t.FRESH; }"
HANGS = {
    "an old ACK moves psnStart into a later collective": (
        "old-ack-moves-the-range-too-far",
        "refined, flow acks, a loss and a duplicate",
        None,
    ),
    "slots that have idled for 2^23 PSNs count as newer": (
        "idle-slot-is-newer",
        "idle slots, window 4, five packets, a loss",
        (
            f"else if (psn != held_psn){FRESH}\n        else if (left_over == 1){FRESH}\n",
            f"else if (precedes(held_psn, psn) == 1){FRESH}\n",
        ),
    ),
}
"""Of Mode III: a fault, a scope, and what the fault replaces, if a later fix does it, too: the program as it was before
both."""


@pytest.mark.parametrize("hang", HANGS)
@pytest.mark.long
def test_hangs_that_reviews_have_found(hang: str) -> None:
    """In the programs as they were before the fix."""
    name, scope, before = HANGS[hang]
    seeding = seeding_of(load_collective(None, {"mode": "III"}))
    (fault,) = [each for each in seeding.mutations if each.name == name]
    if before is not None:
        fault = replace(fault, find=before[0], replace=before[1])
    seeded = dict(ladder(program_of(seeding, fault)))[scope].with_fault(fault)
    assert Search(System(seeded), workers=1).run().problem is not None


@pytest.mark.parametrize(
    ("name", "scope", "wrong"),
    [
        ("later-gap-unasked", "five packets, window 4, a loss", "PSN 0xffffff is missing, and no NAK says so"),
        ("gap-unreported", "five packets, window 4, a loss", "1 packets from PSN 0xffffff on are missing"),
        ("all-since-resent", "five packets, window 4, a loss", "the answer does not ask for it"),
        ("resent-without-ackreq", "five packets, window 4, a loss", "does not ask for an ACK"),
        ("second-gap-silent", "five packets, window 4, two losses", "PSN 0xffffff is missing, and no NAK says so"),
        ("gap-after-not-ready", "flow acks, window 2, seven packets", "a second NAK for PSN"),
        (
            "ack-for-all",
            "messages of three packets, one ACK each, a loss",
            "does not ask for an ACK, and is acknowledged",
        ),
    ],
)
@pytest.mark.sample(2)
def test_what_a_timer_would_repair_is_seen(name: str, scope: str, wrong: str) -> None:
    seeding = seeding_of(load_collective(None, {"mode": "III"}))
    (fault,) = [each for each in seeding.mutations if each.name == name]
    seeded = dict(ladder(program_of(seeding, fault)))[scope].with_fault(fault)
    problem = Search(System(seeded), workers=1, liveness=False).run().problem
    assert problem is not None
    assert (problem.property, wrong in problem.text) == ("progress", True)


@pytest.mark.parametrize(
    ("name", "scope", "wrong"),
    [
        ("nack-is-recorded", "a duplicate", "may still come, and the NAK for it passes"),
        ("gap-stays-open", "a loss and a duplicate", "has come after a larger one, and the NAK for it passes"),
        ("any-copy-closes", "a loss and a duplicate", "is lost, and the NAK for it does not pass"),
        ("all-are-late", "a loss", "is lost behind the switch, and the NAK for it does not pass"),
        ("blocked-stays-a-nack", "a loss", "leaves as another one"),
        ("nacks-sprayed", "a loss", "answers of a connection leave over two links"),
        ("bad-icrc-believed", "PSNs wrap, a loss and a corruption", "does not leave as it came"),
    ],
)
def test_naks_that_a_switch_filters_are_judged_one_by_one(name: str, scope: str, wrong: str) -> None:
    seeding = seeding_of(load_spec(None, {"mode": "themis"}))
    (fault,) = [each for each in seeding.mutations if each.name == name]
    seeded = dict(ladder(program_of(seeding, fault)))[scope].with_fault(fault)
    problem = Search(System(seeded), workers=1, liveness=False).run().problem
    assert problem is not None
    assert wrong in problem.text


@pytest.mark.parametrize("program", ["plain", "ack", "classes"])
@pytest.mark.parametrize("scope", ["a loss", "a duplicate", "a corruption"])
@pytest.mark.sample(3)
def test_sound_filters_owe_nothing(program: str, scope: str) -> None:
    spec = load_spec(None, seeding_of(load_spec(None, {"mode": "themis"})).programs[program])
    assert Search(System(dict(ladder(spec))[scope]), workers=1).run().complete


def test_a_fault_is_placed_in_its_module() -> None:
    """Themis's two halves change UDP ports with the same text; hosts see what one does only if there is the other."""
    seeding = seeding_of(load_spec(None, {"mode": "themis"}))
    (fault,) = [each for each in seeding.mutations if each.name == "port-not-restored"]
    spec = program_of(seeding, fault)
    there = placed(spec, fault)
    text = render(compose(spec)).text
    assert there is not None
    assert text.count(fault.find) == 2
    assert text.count(there.find) == 1
    front, back = there.apply(text).split(there.replace)
    assert fault.find in front + back


@pytest.mark.parametrize("reliability", ["gbn", "sr", "sack"])
@pytest.mark.long
def test_sound_programs_owe_nothing(reliability: str) -> None:
    spec = load_collective(None, {"mode": "III", "window": 4, "message": 1, "lanes": 8, "reliability": reliability})
    scope = dict(ladder(spec))["five packets, window 4, a loss"]
    assert Search(System(scope), workers=1).run().complete


def test_a_fault_that_changes_nothing_is_missing() -> None:
    """The program does the same at each step; no search is needed to know that."""
    seeding = seeding_of(load_collective(None, {"mode": "III"}))
    (fault,) = [each for each in seeding.mutations if each.name == "nak-too-early"]
    harmless = replace(fault, name="harmless", module="CheckOrder", replace=fault.find + " ")
    assert Hunt(seeding, states=STATES, scopes=("no faults",)).find(harmless) == Found(harmless)


def test_a_scope_in_which_the_sound_program_fails_is_an_error() -> None:
    """A wrong design in the place of the sound program: what it breaks is not laid to a fault."""
    seeding = seeding_of(load_collective(None, {"mode": "III"}))
    wrong = {name: {**fields, "variant": "nak-storm"} for name, fields in seeding.programs.items()}
    (fault,) = [each for each in seeding.mutations if each.name == "no-becn"]
    named = replace(fault, name="harmless", module="CheckOrder", excuse="")
    with pytest.raises(FailedError, match="without a fault: five packets, window 4, a loss: progress: a second NAK"):
        Hunt(replace(seeding, programs=wrong), states=STATES, scopes=SCOPES[2:]).find(named)


def test_verdicts_are_kept_from_run_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that was stopped in a line goes on with the fault of that line; another bound searches again."""
    file = tmp_path / "kept"
    names = ("half-the-buffer", "no-back-off", "complete-at-once")
    arguments = ["verify", "faults", "--mode", "III", "--keep", str(file), "--json"]
    for name in names:
        arguments += ["--fault", name]
    hunted: list[str] = []

    def find(self: Hunt, fault: Mutation) -> Found:
        hunted.append(fault.name)
        why = beyond(program_of(self._seeding, fault), fault)
        return Found(fault, "a loss", None, None if why else Problem("results", "wrong", (1, 2)), why)

    monkeypatch.setattr(Hunt, "find", find)
    first = CliRunner().invoke(cli, arguments)
    assert (first.exit_code, tuple(hunted)) == (0, names), first.output
    report = json.loads(first.stdout)
    assert [(each["found"], each["missing"], each["events"]) for each in report] == [
        (True, False, 2),
        (False, False, 0),
        (True, False, 2),
    ]
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(lines[:2]) + lines[2][:30], encoding="utf-8")
    assert CliRunner().invoke(cli, arguments).stdout == first.stdout
    assert hunted[3:] == ["complete-at-once"]
    assert file.read_text(encoding="utf-8") == "".join(lines)
    CliRunner().invoke(cli, [*arguments, "--states", "10"])
    assert tuple(hunted[4:]) == names


@pytest.mark.parametrize("text", ["one line", "{}\n", '{"digest": "1", "name": 2}\n'])
def test_a_file_of_anything_else_is_refused(text: str, tmp_path: Path) -> None:
    """And is left as it was."""
    file = tmp_path / "mine"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="of `p4gen verify faults`"):
        VerdictFile(file)
    assert file.read_text(encoding="utf-8") == text
    with pytest.raises(InputError, match="cannot write"):
        VerdictFile(tmp_path)


def test_what_is_not_found_within_so_many_states_is_missing() -> None:
    seeding = seeding_of(load_collective(None, {"mode": "III"}))
    (fault,) = [each for each in seeding.mutations if each.name == "nak-too-early"]
    found = Hunt(seeding, states=1, scopes=("no faults",)).find(fault)
    assert (Verdict.of(found).missing, Verdict.of(found).text) == (True, "not found")
