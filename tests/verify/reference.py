"""The search once more, without arrays, reductions and machine code: what the kernel is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from p4gen.verification.search.events import HELD
from p4gen.verification.system import Effect, System

State = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, int, int, int, int]]
"""States of switches, of hosts, contents of links, and what is left of the budget."""


@dataclass(frozen=True)
class Counted:
    """What a search has counted."""

    distinct: int
    transitions: int
    ends: int
    wrong: int


def search(system: System) -> Counted:
    """Explore every state."""
    budget = system.scope.budget
    switches, hosts, contents = system.begin()
    left = budget.losses, budget.duplicates, budget.delays, budget.corruptions, budget.timeouts
    first: State = tuple(switches), tuple(hosts), tuple(contents), left
    seen, frontier = {first}, [first]
    transitions = ends = wrong = 0
    while frontier:
        following = []
        for state in frontier:
            found = list(_successors(system, state))
            done = all(
                host.done(watch.inner(number))
                for host, watch, number in zip(system.hosts, system.host_watches, state[1], strict=True)
            )
            if not found:
                ends += done
                wrong += not done
                transitions += done  # the kernel counts the end's transition to itself
            for after, effect in found:
                transitions += 1
                wrong += bool(effect is not None and effect.problem)
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        frontier = following
    return Counted(len(seen), transitions, ends, wrong)


def _successors(system: System, state: State) -> Iterator[tuple[State, Effect | None]]:
    switches, hosts, contents, left = state
    losses, duplicates, delays, corruptions, timeouts = left
    for number, content in enumerate(contents):
        link = system.links[number]
        inner = (hosts if link.to_host else switches)[link.part]
        for place in range(len(system.contents[content].held)):
            frame, rest = system.take(content, HELD + place)
            effect = system.arrive(number, inner, frame)
            after = (switches, hosts, _with(contents, number, rest), left)
            yield _after(system, after, link.to_host, link.part, effect), effect
        if not system.contents[content].in_order:
            continue
        frame, rest = system.take(content, 0)
        taken, kept = _with(contents, number, rest), _with(contents, number, system.put_by(rest, frame))
        effect = system.arrive(number, inner, frame)
        yield _after(system, (switches, hosts, taken, left), link.to_host, link.part, effect), effect
        if losses:
            yield (switches, hosts, taken, (losses - 1, duplicates, delays, corruptions, timeouts)), None
        if duplicates:
            spent = (losses, duplicates - 1, delays, corruptions, timeouts)
            yield _after(system, (switches, hosts, kept, spent), link.to_host, link.part, effect), effect
        if delays:
            yield (switches, hosts, kept, (losses, duplicates, delays - 1, corruptions, timeouts)), None
        if corruptions:
            effect = system.arrive(number, inner, frame, corrupt=True)
            spent = (losses, duplicates, delays, corruptions - 1, timeouts)
            yield _after(system, (switches, hosts, taken, spent), link.to_host, link.part, effect), effect
    quiet = not any(system.contents[content].in_order for content in contents)
    if not quiet and not timeouts:
        return
    spent = (losses, duplicates, delays, corruptions, timeouts - (not quiet))
    for number, (host, watch) in enumerate(zip(system.hosts, system.host_watches, strict=True)):
        for timer in range(len(host.timers(watch.inner(hosts[number])))):
            effect = system.expire(number, hosts[number], timer)
            yield _after(system, (switches, hosts, contents, spent), True, number, effect), effect
    for number, tick in enumerate(system.ticks):
        effect = system.tick(number, switches[tick.switch])
        if effect.state != switches[tick.switch] or effect.sent:
            yield _after(system, (switches, hosts, contents, spent), False, tick.switch, effect), effect


def _after(system: System, state: State, at_host: bool, part: int, effect: Effect) -> State:
    switches, hosts, contents, left = state
    if at_host:
        hosts = _with(hosts, part, effect.state)
    else:
        switches = _with(switches, part, effect.state)
    for link, frames in effect.sent:
        contents = _with(contents, link, system.append(contents[link], frames))
    return switches, hosts, contents, left


def _with(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    return (*values[:at], value, *values[at + 1 :])
