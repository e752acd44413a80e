"""Faults fit the programs that they are meant for, and a run of them tells survivors from those that were noticed."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from p4gen.errors import FailedError
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.conformance.small import small
from p4gen.papers.epic.spec import EpicSpec, Mode, Variant
from p4gen.program import compose, render
from p4gen.ptf.family import conformance_of, scenario_modules
from p4gen.ptf.judge import Finding
from p4gen.ptf.mutants import Mutant, Subject, listed_mutants, run_mutants
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.ptf.order import Order
from p4gen.ptf.runner import run_suite
from p4gen.switch.process import running_switch
from p4gen.switch.running import Program

STATIC = ("tna", "t2na")
PROGRAMS = [
    *(("v1model", mode) for mode in Mode),
    *((arch, Mode.II) for arch in STATIC),
    ("t2na", Mode.III),
]


def seeding_of(arch: str, mode: Mode) -> Seeding:
    spec = EpicSpec(arch=arch, mode=mode)
    return conformance_of(spec).seeding(spec)


COMPILED = {"v1model": 30, "tna": 10, "t2na": 10}
"""Faults of each program that a run without --full compiles."""


@pytest.mark.sample(2)
@pytest.mark.parametrize(("arch", "mode"), PROGRAMS)
@pytest.mark.long
def test_every_fault_fits_its_program_and_compiles(
    arch: str, mode: Mode, seed: int, pytestconfig: pytest.Config
) -> None:
    seeding = seeding_of(arch, mode)
    specs = {name: EpicSpec.model_validate({**fields, "arch": arch}) for name, fields in seeding.programs.items()}
    assert {spec.mode for spec in specs.values()} <= {mode}
    texts = {name: render(compose(spec)).text for name, spec in specs.items()}
    modules = {module.name for spec in specs.values() for module in compose(spec).modules}
    others = {"PacketParser", "UpdateIpv4Checksum", "IncIngress", "IncEgress"}
    others |= {"add_float32", "min_float32"}
    others |= {f"{what}_{form}" for what in ("pack", "unpack") for form in ("float16", "bfloat16")}
    others |= (
        {"EgressParser", "IngressDeparser", "EgressDeparser", "InvariantCrc", "PayloadCrc"} if arch in STATIC else set()
    )
    compiled = set(seeding.mutations)
    if not pytestconfig.getoption("--full"):
        compiled = set(random.Random(seed).sample(seeding.mutations, COMPILED[arch]))
    for mutation in seeding.mutations:
        text = mutation.apply(texts[mutation.program])
        assert mutation.module in modules | others, mutation.name
        if mutation in compiled:
            compile_text(text, f"{mutation.name}.p4")
    assert [name for name, count in Counter(m.name for m in seeding.mutations).items() if count > 1] == []
    assert {m.program for m in seeding.mutations} == set(seeding.programs)


@pytest.mark.parametrize(
    ("arch", "mode", "of", "least"),
    [
        *((arch, Mode.II, Mode.II, 100) for arch in STATIC),
        ("t2na", Mode.III, Mode.III, 80),
        ("v1model", Mode.I, Mode.III, 200),
    ],
)
def test_faults_of_another_list_have_a_form_or_a_reason(arch: str, mode: Mode, of: Mode, least: int) -> None:
    seeding = seeding_of(arch, mode)
    seeded, listed = ({fault.name for fault in each.mutations} for each in (seeding, seeding_of("v1model", of)))
    assert len(seeded) > least
    assert listed - seeded == seeding.left_out.keys()
    assert len(listed & seeded) >= 40
    assert all(" " in reason for reason in seeding.left_out.values())


@pytest.mark.parametrize("arch", STATIC)
def test_a_program_that_broadcasts_has_the_list_of_its_kind(arch: str) -> None:
    """Most of the kind's programs broadcast nothing, whatever the one that is asked for does."""
    spec = EpicSpec.model_validate({"mode": "II", "arch": arch, "serves": "all"})
    assert conformance_of(spec).seeding(spec) == seeding_of(arch, Mode.II)


@pytest.mark.parametrize(("arch", "mode"), PROGRAMS)
def test_scenarios_that_faults_look_for_are_there(arch: str, mode: Mode) -> None:
    fields: dict[str, Any] = {"arch": arch, "mode": mode, "ip": "both" if arch == "v1model" else "4"}
    locks = int(arch == "v1model" and not mode.stores)  # which other programs have no scenarios of
    modules = {name for each in (0, locks) for name in scenario_modules(EpicSpec(**fields, locks=each))}
    seeding = seeding_of(arch, mode)
    assert {name for names in (*seeding.tests.values(), *seeding.first.values()) for name in names} <= modules


def test_a_fault_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(FailedError, match="occurs 2 times in the program, not once"):
        Mutation("twice", "Module", "a", "b").apply("a cat")


def test_likely_scenarios_come_first_and_none_is_lost() -> None:
    order = Order({"a.One": 0.01, "b.Two": 0.02, "c.Three": 0.5})
    assert order.of("Module") == ["a.One", "b.Two", "c.Three"]
    assert order.of("Module", likely=("c",)) == ["c.Three", "a.One", "b.Two"]
    for _ in range(100):
        order.learn("Module", "b.Two")
    assert order.of("Module") == ["b.Two", "a.One", "c.Three"]
    assert order.of("Other") == ["b.Two", "a.One", "c.Three"]


def test_modes_have_scenarios_of_their_own() -> None:
    one, two, three = (scenario_modules(EpicSpec(mode=mode)) for mode in (Mode.I, Mode.II, Mode.III))
    assert "test_broadcast" in two
    static = set(scenario_modules(EpicSpec(arch="t2na")))
    assert static - set(two) == {"test_static_slots", "test_static_groups", "test_static_pipes", "test_static_fold"}
    assert static > set(two)
    assert not set(two) & (set(one) | set(three))
    # Mode I shares what Mode III's switches do to connections.
    assert {name for name in one if name.startswith("test_i_")} == set(one) - set(three)
    assert len(set(one) & set(three)) > len(set(one)) / 2
    assert all(name.startswith("test_iii_") for name in three)


def sound(**fields: object) -> Subject:
    return Subject.of("plain", small(EpicSpec, lanes=8, groups=2, **fields), ("test_control",))


def mutants(subject: Subject, *faults: Mutation) -> list[Mutant]:
    return listed_mutants(Seeding(faults, {"plain": {}}), {"plain": subject})


def test_survivors_are_told_from_faults_that_were_noticed() -> None:
    faults = (
        Mutation(
            "harmless", "IncIngress", "meta.drop = drop_t.NONE;\n", "meta.drop = drop_t.NONE; meta.flow.slot = 0;\n"
        ),
        Mutation(
            "harmful",
            "TrackInvocation",
            "meta.invocation.begins, chosen);",
            "meta.invocation.begins, chosen); chosen = 0;",
        ),
    )
    harmless, harmful = run_mutants(mutants(sound(), *faults), seed=1, jobs=1)
    assert (harmless.fault.name, harmful.fault.name) == ("harmless", "harmful")
    assert harmless.finding is Finding.SURVIVED
    assert harmless.message.startswith("survived ")
    assert harmful.finding is Finding.CAUGHT
    assert harmful.by.startswith("test_control.")


def test_a_program_that_fails_without_a_fault_proves_nothing() -> None:
    broken = sound()
    broken = replace(broken, text=broken.text.replace("meta.buffer.complete = 1;", "meta.buffer.complete = 0;"))
    fault = Mutation("any", "IncIngress", "meta.invocation.begins = 0;", "meta.invocation.begins = 1;")
    with pytest.raises(FailedError, match="scenarios fail without any fault seeded"):
        list(run_mutants(mutants(broken, fault), seed=1, jobs=1))


_BEGINS = "meta.drop = drop_t.NONE;\n"


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Mutation("gone", "IncIngress", "what is not there", ""), "fault gone: 'what is not there' occurs 0 times"),
        (Mutation("where", "Nowhere", _BEGINS, ""), "fault where: its program has no module Nowhere"),
        (Mutation("what", "IncIngress", _BEGINS, "begin;"), "fault what: does not compile"),
    ],
)
def test_a_listed_fault_that_proves_nothing_is_an_error(fault: Mutation, said: str) -> None:
    with pytest.raises(FailedError, match=re.escape(said)):
        list(run_mutants(mutants(sound(), fault), seed=1, jobs=1))


@pytest.mark.long
def test_arrived_bits_that_outlive_their_psn_are_noticed(tmp_path: Path) -> None:
    """Algorithm 1 does not say who clears them; the variant that does not is a wrong design."""
    wrong = sound(variant=Variant.STALE_ARRIVED)
    result = run_suite(
        Program.of_text(wrong.text, tmp_path),
        tmp_path,
        ports=wrong.spec.ports,
        params={"spec": wrong.spec.model_dump(mode="json"), "seed": 1},
        tests=("test_aggregation.SlotsAreReusedOverManyWindows", "test_aggregation.SumOfTwoRanks"),
        switch=running_switch,
    )
    assert result.problem is None
    assert "test_aggregation.SlotsAreReusedOverManyWindows" in [test.name for test in result.failures]
