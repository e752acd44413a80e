"""Parts as automata: what they do depends on their state and the event alone, and is what they do without freezing."""

from __future__ import annotations

import random

import pytest

from p4gen.net.collectives.simulation import Simulation
from p4gen.verification.findings.story import Event, Story
from p4gen.verification.system import System, corrupted
from p4gen.verification.world import Budget
from verify.scopes import scope

FAULTS = Budget(losses=3, duplicates=3, delays=3, corruptions=3, timeouts=3)


def walk(story: Story, chance: random.Random, steps: int) -> None:
    """Random events, faults among them."""
    system = story.system
    for _ in range(steps):
        full = [i for i, content in enumerate(story.contents) if content]
        events = []
        for link in full:
            name = system.links[link].name
            content = system.contents[story.contents[link]]
            if content.in_order:
                events += [Event(what, name) for what in ("deliver",) * 6 + ("lose", "duplicate", "delay", "corrupt")]
            events += [Event("late", name, place) for place in range(len(content.held))]
        for host, watch, state in zip(system.hosts, system.host_watches, story.hosts, strict=True):
            if host.timers(watch.inner(state)):
                events.append(Event("timeout", host.name))
        events += [Event("tick", tick.name) for tick in system.ticks]
        if not events:
            return
        story.play(chance.choice(events))


@pytest.mark.parametrize("mode", ["II", "III"])
def test_switches_do_what_they_do_without_freezing(mode: str, seed: int) -> None:
    """A switch that only ever processes packets sends the same as one whose registers are set before each of them."""
    one = scope(mode, packets=4, budget=FAULTS)
    story = Story(System(one))
    walk(story, random.Random(seed), 300)
    (plain,) = Simulation(one.config).network.switches.values()
    system = story.system
    ports = {link: port for port, link in system.ports[0].items()}
    for moment in story.moments:
        if moment.part != "s0" or moment.effect is None:
            continue
        if moment.event.what == "tick":
            break  # in the search, timers are as in a new switch before each event
        (link,) = [link for link in system.links if link.name == moment.event.where]
        assert moment.frame is not None
        frame = moment.frame
        if moment.event.what == "corrupt":
            frame = corrupted(frame)
        sent = sorted((ports[at], system.frames[n]) for at, frames in moment.effect.sent for n in frames)
        assert sorted(plain.process(link.port, frame)) == sent


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.parametrize("reliability", ["gbn", "sr"])
@pytest.mark.long
def test_the_same_event_has_the_same_effect(mode: str, reliability: str, seed: int) -> None:
    one = scope(mode, packets=3, reliability=reliability, budget=FAULTS)
    first, second = Story(System(one)), Story(System(one))
    walk(first, random.Random(seed), 200)
    # Visiting other states in between must not matter.
    walk(Story(second.system), random.Random(seed + 1), 100)
    for moment in first.moments:
        other = second.play(moment.event)
        assert other.text == moment.text
    assert first.ended == second.ended
