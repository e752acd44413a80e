"""A scope in TLA+ (EPIC, section 5.1) for TLC, an independent tool that explores the same states.

Module ``Network`` is the same for every scope: automata, links, faults, properties. Module ``Parts`` is written here:
what each part does in each of its states, as a search has found it, and what a state holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, Union

from p4gen.program import compose
from p4gen.verification.parts.monitors import Watch
from p4gen.verification.parts.switches import SwitchPart
from p4gen.verification.search.interning import Interned
from p4gen.verification.search.kernel import ARRIVE, ARRIVE_CORRUPT, EXPIRES, TICKS
from p4gen.verification.search.knowledge import Knowledge
from p4gen.verification.search.search import prompt
from p4gen.verification.system import Effect, System

Value = Union[str, bool, int, "tuple[Value, ...]", frozenset[int], "Mapping[str, Value]", "Mapping[int, Value]"]
"""A string, truth value, number, tuple, set of numbers, record, or function of numbers."""

_NETWORK: Final = ("Network.tla", "Network.cfg")
"""The files that are the same for every scope."""
_MOST_INT: Final = (1 << 31) - 1
"""The largest number that TLC knows; larger ones are written as strings, in hexadecimal."""
_REPAIR: Final = ("by timers", "prompt", "never needed")
"""What ``Shape.prompt`` asks for, by its number."""


def tla(knowledge: Knowledge) -> dict[str, str]:
    """The files of the model, by name. ``knowledge`` is that of a complete search without reduction."""
    here = Path(__file__).parent
    lines = [
        "-------------------------------- MODULE Parts --------------------------------",
        f"(* {knowledge.system.scope.sentence()}.",
        "   Written by p4gen verify --export tla.  Parts, states and packets are numbered from 1. *)",
        "EXTENDS TLC",
    ]
    for name, about, value in (*_network(knowledge.system), *_states(knowledge.system), *_steps(knowledge)):
        lines += ["", f"(* {about}. *)", f"{name} == {_rows(value)}"]
    lines += ["", "=" * 78, ""]
    return {"Parts.tla": "\n".join(lines)} | {name: (here / name).read_text() for name in _NETWORK}


def _network(system: System) -> Iterator[tuple[str, str, Value]]:
    budget, paced = system.scope.budget, system.rules.no_drops
    switches, hosts, contents = system.begin()
    yield "SwitchName", "The switches", tuple(switch.name for switch in system.switches)
    yield "RankName", "The hosts that are ranks", tuple(host.name for host in system.hosts)
    yield "LinkName", "The links", tuple(link.name for link in system.links)
    ends = tuple((link.to_host, link.part) for link in system.links)
    to: Value = tuple({"part": "rank" if to_host else "switch", "number": part + 1} for to_host, part in ends)
    yield "To", "By link: the part at its end", to
    yield "FirstSwitch", "By switch: its first state", _from_1(switches)
    yield "FirstRank", "By rank: its first state", _from_1(hosts)
    first = tuple(_from_1(system.contents[content].in_order) for content in contents)
    yield "FirstLink", "By link: its first packets", first
    yield "Budget", "How often the network may commit each fault", asdict(budget)
    yield "Strict", "Whether without a fault nothing may be dropped or sent again", paced
    yield "Repair", "How a loss is repaired", _REPAIR[prompt(budget, paced=paced)]
    yield "Forged", "The packets that the last rank may send in another's name", frozenset(_from_1(system.forged))
    yield "ForgingLink", "The link of that rank", system.forging + 1
    yield "TickAt", "By timer of a switch: the switch", tuple(tick.switch + 1 for tick in system.ticks)


def _states(system: System) -> Iterator[tuple[str, str, Value]]:
    described = tuple(system.kinds.describe(frame) or ("", f"{len(frame)} bytes") for frame in system.frames)
    yield "Packet", "The packets", tuple({"kind": kind, "text": text} for kind, text in described)
    switches = list(zip(system.switches, system.switch_watches, strict=True))
    ranks = list(zip(system.hosts, system.host_watches, strict=True))
    yield (
        "Registers",
        "By switch and state: its registers, but for those that never change",
        tuple(_registers(switch, [watch.inner(state) for state in range(len(watch))]) for switch, watch in switches),
    )
    timers = tuple(tuple(host.timers(watch.inner(state)) for state in range(len(watch))) for host, watch in ranks)
    yield "Timers", "By rank and state: the timers that may expire", timers
    done = tuple(
        frozenset(state + 1 for state in range(len(watch)) if host.done(watch.inner(state))) for host, watch in ranks
    )
    locked = tuple(
        frozenset(state + 1 for state in range(len(watch)) if switch.holds(watch.inner(state)))
        for switch, watch in switches
    )
    yield "Locked", "By switch: the states in which it is locked", locked
    yield "Done", "By rank: the states in which all calls have ended", done
    for name, watches in (("SwitchWaits", system.switch_watches), ("RankWaits", system.host_watches)):
        waits = tuple(frozenset(state + 1 for state in range(len(watch)) if watch.waits(state)) for watch in watches)
        yield name, "The states in which a part needs what only a retransmission brings, and can know it", waits


def _registers(switch: SwitchPart, states: Sequence[int]) -> Value:
    """By state: the words of registers, by their names in the control; records, where their layout is declared."""
    layouts = compose(switch.spec).words
    rows: list[dict[str, Value]] = [{} for _ in states]
    held = [switch.words(state) for state in states]
    for name, cells in zip(switch.registers, zip(*held, strict=True), strict=True):
        if len(set(cells)) > 1:
            field = name.partition(".")[2].replace(".", "_")
            layout = layouts.get(name.rpartition(".")[2])
            for row, words in zip(rows, cells, strict=True):
                row[field] = words if layout is None else tuple(map(layout.unpack, words))
    return tuple(rows)


def _steps(knowledge: Knowledge) -> Iterator[tuple[str, str, Value]]:
    system = knowledge.system
    effects: Interned[Effect] = Interned()
    ends = [(system.host_watches if link.to_host else system.switch_watches)[link.part] for link in system.links]
    arrive, corrupt = _tables(ends), _tables(ends)
    expire = _tables(system.host_watches)
    tick = [[0] * len(system.switch_watches[each.switch]) for each in system.ticks]
    for (kind, who, _, state, frame), effect in knowledge.steps:
        if kind == TICKS:
            if effect.state != state or effect.sent:
                tick[who][state] = effects.number(effect) + 1
        else:
            table = {ARRIVE: arrive, ARRIVE_CORRUPT: corrupt, EXPIRES: expire}[kind]
            table[who][state][frame + 1] = effects.number(effect) + 1
    yield "Effect", "What a step does", tuple(map(_effect, effects))
    yield "Arrive", "By link, state of the part at its end, and packet that arrives: the effect", arrive
    yield "ArriveCorrupt", "The same with a wrong bit in the packet", corrupt
    yield "Expire", "By rank, state and timer that expires: the effect", expire
    yield "Tick", "By timer of a switch and state: the effect; 0 if there is none", tuple(map(tuple, tick))


def _effect(effect: Effect) -> Value:
    wastes = "" if not effect.lost else "repeats" if effect.violated == "repeats" else "drops"
    sends: Value = {link + 1: _from_1(frames) for link, frames in effect.sent}
    return {
        "goes": effect.state + 1,
        "sends": sends,
        "wastes": wastes,
        "violates": effect.violated if effect.problem else "",
    }


def _from_1(numbers: Iterable[int]) -> tuple[int, ...]:
    return tuple(number + 1 for number in numbers)


def _tables(watches: Iterable[Watch]) -> tuple[tuple[dict[int, int], ...], ...]:
    """For each part and each of its states a row, to be filled."""
    return tuple(tuple({} for _ in range(len(watch))) for watch in watches)


def _rows(value: Value, indent: str = "  ") -> str:
    """A value with each row of a table on a line of its own."""
    if isinstance(value, tuple) and any(isinstance(each, tuple | Mapping) for each in value):
        inner = f",\n{indent}".join(_rows(each, indent + "  ") for each in value)
        return f"<<\n{indent}{inner}\n{indent[2:]}>>"
    return _notation(value)


def _notation(value: Value) -> str:
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value) if value <= _MOST_INT else f'"{value:#x}"'
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case frozenset():
            return "{" + ", ".join(map(str, sorted(value))) + "}"
        case tuple():
            return "<<" + ", ".join(map(_notation, value)) + ">>"
    if not value:
        return "<<>>"
    if all(isinstance(key, str) for key in value):
        return "[" + ", ".join(f"{key} |-> {_notation(each)}" for key, each in value.items()) + "]"
    return "(" + " @@ ".join(f"{key} :> {_notation(each)}" for key, each in value.items()) + ")"
