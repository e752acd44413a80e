"""A scope in Promela, the language of Spin: an independent tool that explores the same states.

A part is a table of its steps, as a search has found them; links are channels. Spin stores as many states as a search
without reduction finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from p4gen.errors import FailedError
from p4gen.verification.search.kernel import ARRIVE, EXPIRES, TICKS
from p4gen.verification.search.knowledge import Knowledge
from p4gen.verification.system import Effect
from p4gen.verification.world import Budget


def promela(knowledge: Knowledge) -> dict[str, str]:
    """The files of the model, by name. ``knowledge`` is that of a complete search without reduction.

    Raises ``FailedError`` for a scope with other faults than losses.
    """
    system = knowledge.system
    budget = system.scope.budget
    if budget != Budget(losses=budget.losses):
        raise FailedError("Promela is written for scopes whose only faults are losses")
    switches, hosts, contents = system.begin()
    room = max(len(content.in_order) for content in system.contents)
    quiet = " && ".join(f"empty(q{number})" for number in range(len(system.links)))
    lines = [
        f"/* {system.scope.sentence()}.",
        "   Written by p4gen verify --export promela: what a part does is a table; q: links; f: what arrives.",
        "   spin -a model.pml; gcc -O2 -DSAFETY -DNOREDUCE -o pan pan.c; ./pan -m1000000 */",
        f"#define QUIET ({quiet})",
        *(
            f"short s{number} = {state};    /* {system.switches[number].name} */"
            for number, state in enumerate(switches)
        ),
        *(f"short h{number} = {state};    /* {system.hosts[number].name} */" for number, state in enumerate(hosts)),
        *(f"chan q{i} = [{room}] of {{ short }};    /* {link.name} */" for i, link in enumerate(system.links)),
        f"byte losses = {budget.losses};",
        "hidden short f;",
    ]
    for number, link in enumerate(system.links):
        part = f"{'h' if link.to_host else 's'}{link.part}"
        lines += ["", f"inline arrive{number}() {{", "  if"]
        lines += [
            f"  :: {part} == {state} && f == {frame} -> {_action_text(part, effect)}"
            for (kind, who, _, state, frame), effect in knowledge.steps
            if (kind, who) == (ARRIVE, number)
        ]
        lines += ["  fi;", "  f = 0", "}"]
    done = []
    for number, (host, watch) in enumerate(zip(system.hosts, system.host_watches, strict=True)):
        ended = [state for state in range(len(watch)) if host.done(watch.inner(state))]
        done.append("(" + " || ".join(f"h{number} == {state}" for state in ended or [-1]) + ")")
    first = [
        f"q{number}!{frame}" for number, content in enumerate(contents) for frame in system.contents[content].in_order
    ]
    lines += ["", "active proctype system() {", f"  d_step {{ {'; '.join(first)} }};", "  do"]
    for number in range(len(system.links)):
        lines.append(f"  :: d_step {{ nempty(q{number}) -> q{number}?f; arrive{number}() }}")
        lines.append(f"  :: d_step {{ nempty(q{number}) && losses > 0 -> q{number}?f; losses--; f = 0 }}")
    lines += [f"  :: d_step {{ QUIET && {guard} -> {then} }}" for guard, then in _timers(knowledge)]
    lines += [f"  :: d_step {{ QUIET && {' && '.join(done)} -> skip }}", "  od", "}", ""]
    return {"model.pml": "\n".join(lines)}


def _timers(knowledge: Knowledge) -> Iterator[tuple[str, str]]:
    by_guard: dict[str, list[str]] = defaultdict(list)
    for (kind, who, _, state, _), effect in knowledge.steps:
        if kind == EXPIRES:
            by_guard[f"h{who} == {state}"].append(_action_text(f"h{who}", effect))
        elif kind == TICKS and (effect.state != state or effect.sent):
            switch = knowledge.system.ticks[who].switch
            by_guard[f"s{switch} == {state}"].append(_action_text(f"s{switch}", effect))
    for guard, found in by_guard.items():
        for then in found:
            yield guard, then


def _action_text(part: str, effect: Effect) -> str:
    if effect.problem:
        return "assert(false)"
    sends = [f"q{link}!{frame}" for link, frames in effect.sent for frame in frames]
    return "; ".join([f"{part} = {effect.state}", *sends])
