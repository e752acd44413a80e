"""Flows: how steps read in P4, and compositions that are refused because of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p4gen.errors import InputError
from p4gen.families import family_of
from p4gen.papers.epic import modules as m
from p4gen.papers.epic import program as epic
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.program import compose
from p4gen.program.compose import Flows, ProgramParts
from p4gen.program.flow import Apply, Do, Flow, Step, When, when


def text(*steps: Step) -> list[str]:
    return list(Flow(steps).lines(indent=0))


def test_steps_read_as_p4() -> None:
    forward = Apply(m.FORWARD, "hdr, meta")
    assert text(forward) == ["forward.apply(hdr, meta);"]
    assert text(when("x == 1", forward)) == ["if (x == 1) { forward.apply(hdr, meta); }"]
    assert text(when("x == 1", forward, Do("x = 0;"))) == [
        "if (x == 1) {",
        "    forward.apply(hdr, meta);",
        "    x = 0;",
        "}",
    ]
    assert text(when("a", Do("b;"), otherwise=(when("c", Do("d;"), otherwise=(Do("e;"),)),))) == [
        "if (a) {",
        "    b;",
        "} else if (c) {",
        "    d;",
        "} else {",
        "    e;",
        "}",
    ]


def test_notes_stand_in_one_column_and_after_what_is_longer() -> None:
    noted = text(Do("a;", "why"), when("c", Do("d;"), note="when"), Do("long" * 20, "after"))
    assert [line.index("//") for line in noted] == [70, 70, 82]
    assert text(when("c", Do("d;", "inside"))) == ["if (c) {", f"{'    d;':<70}// inside", "}"]


def test_what_a_step_assigns_is_known() -> None:
    assert Do("meta.order.accepted = 0;").assigned == "order.accepted"
    assert Do("bit<1> cursor = 0;").assigned is None


def refused(monkeypatch: pytest.MonkeyPatch, flows: Flows) -> str:
    """Why a program of these flows is refused."""
    spec = EpicSpec(mode=Mode.III)
    monkeypatch.setattr(epic, "FACET", replace(epic.FACET, flows=lambda _: flows))
    with pytest.raises(InputError) as caught:
        compose(spec)
    return caught.value.reason


def test_a_flow_that_leaves_a_module_out_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = compose(EpicSpec(mode=Mode.III)).flows
    egress = Flow((Do("meta.drop = drop_t.NONE;"), Apply(m.TRANSLATE_HEADER, "hdr, meta, std_meta")))
    said = refused(monkeypatch, Flows(flows.ingress, egress))
    assert said == "modeiii_sum_int32_x64: in egress, AdvanceCursor is never applied"


def test_a_flow_with_a_module_of_the_other_mode_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = compose(EpicSpec(mode=Mode.III)).flows
    more = Flow((*flows.ingress.steps, Apply(m.COMBINE_ACKS, "hdr, meta")))
    said = refused(monkeypatch, Flows(more, flows.egress))
    assert said.endswith("in ingress, CombineAcks is applied, but is not one of its modules")


def test_a_module_before_what_it_needs_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = compose(EpicSpec(mode=Mode.III)).flows
    early = Flow((Apply(m.RECEIVE_ACK, "hdr, meta"), *flows.ingress.steps))
    said = refused(monkeypatch, Flows(early, flows.egress))
    assert "ReceiveAck needs kind, context_index" in said


def test_steps_of_both_branches_count() -> None:
    flow = Flow((When("a", (Apply(m.FORWARD, ""),), (Apply(m.ANSWER_ARP, ""),)),))
    assert flow.modules == (m.FORWARD, m.ANSWER_ARP)
    assert family_of(EpicSpec()).facet(ProgramParts) is epic.FACET
