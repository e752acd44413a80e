"""Flows: how steps read in P4, and compositions that are refused because of them."""

from __future__ import annotations

from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, When, when


def text(*steps: Step) -> list[str]:
    return list(Flow(steps).lines(indent=0))


def test_steps_read_as_p4() -> None:
    forward = Apply("Forward", "hdr, meta")
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


def test_modules_are_applied_in_order_and_routing_comes_last() -> None:
    flow = Flow(
        (
            Ordinary((Apply("Forward", ""),)),
            When("a", (Apply("Check", "1"),), (Apply("AnswerArp", ""),)),
            Apply("Check", "2"),
        )
    )
    assert [step.module for step in flow.applied] == ["Forward", "Check", "AnswerArp"]
    assert [(step.module, step.arguments) for step in flow.settled().applied] == [
        ("Check", "1"), ("AnswerArp", ""), ("Forward", ""),
    ]  # fmt: skip
    assert flow.applies("AnswerArp")
    assert not flow.applies("SendAck")


def test_a_step_is_added_after_each_place_of_another() -> None:
    flow = Flow((when("a", Apply("Check", "")), Ordinary((Apply("Check", ""),)))).with_after("Check", Do("b;"))
    assert list(flow.lines(0)) == ["if (a) {", "    check.apply();", "    b;", "}", "check.apply();", "b;"]
