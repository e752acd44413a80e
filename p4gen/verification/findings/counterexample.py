"""Counterexamples: the shortest run that violates a property, as files for people and for tools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from p4gen.errors import Diagnostic, InputError
from p4gen.families import families
from p4gen.inputs import quote
from p4gen.net.views.capture import Capture
from p4gen.net.views.ladder import Ladder
from p4gen.verification.family import Verification
from p4gen.verification.findings.results import Problem
from p4gen.verification.findings.story import Event, Story, events_of
from p4gen.verification.parts.flows import FlowScope
from p4gen.verification.scope import GroupScope
from p4gen.verification.system import System
from p4gen.verification.world import Scope
from p4gen.vocabulary.positions import read_yaml

FORMAT = "p4gen schedule 1"
SCHEDULE = "schedule.yaml"
"""The file of a schedule."""


def story_of(system: System, numbers: Sequence[int]) -> Story:
    """The run of a violation, played on a system of its scope."""
    story = Story(system)
    # The numbers of links, hosts and ticks are the same in every system of a scope.
    for event in events_of(story.system, numbers):
        story.play(event)
    return story


def save(story: Story, problem: Problem, folder: Path) -> Iterator[Path]:
    """Write a counterexample into a folder: text, a capture, a drawing, and a schedule to replay. Yields the paths of
    the files."""
    folder.mkdir(parents=True, exist_ok=True)
    scope = story.system.scope
    path = folder / "trace.txt"
    path.write_text(
        f"{scope.sentence()}\nviolated: {problem.property}: {problem.text}\n\n{story.text()}", encoding="utf-8"
    )
    yield path
    path = folder / "trace.pcapng"
    write_capture(story, path)
    yield path
    path = folder / "ladder.svg"
    path.write_text(draw(story), encoding="utf-8")
    yield path
    path = folder / SCHEDULE
    path.write_text(schedule(story, problem), encoding="utf-8")
    yield path


def write_capture(story: Story, path: Path) -> None:
    """Write the packets of a run as pcapng."""
    with path.open("wb") as file:
        capture = Capture(file, [link.name for link in story.system.links])
        for passage in sorted(story.passages, key=lambda passage: passage.sent):
            capture(passage)


def draw(story: Story) -> str:
    """The packets of a run as SVG."""
    topology = story.system.scope.topology
    ladder = Ladder([*topology.hosts, *topology.switches], story.system.kinds)
    for passage in story.passages:
        ladder(passage)
    return ladder.svg()


def schedule(story: Story, problem: Problem) -> str:
    """A run as YAML: the scope, what is violated, and the events."""
    events = [f"{m.event.what} {m.event.where} {m.event.position}" for m in story.moments]
    return yaml.safe_dump(
        {
            "format": FORMAT,
            "scope": story.system.scope.as_data(),
            "violates": {"property": problem.property, "text": problem.text},
            "events": events,
        },
        sort_keys=False,
        width=120,
    )


def play(path: Path) -> tuple[Story, str]:
    """The run of a schedule, played on a new system, and the property that it violates. Raises ``InputError``."""
    scope, violated, events = read_schedule(path)
    story = Story(System(scope))
    for event in events:
        try:
            story.play(event)
        except ValueError as error:
            raise InputError(Diagnostic(str(path), str(error))) from None
    return story, violated


def read_schedule(path: Path) -> tuple[Scope, str, tuple[Event, ...]]:
    """The scope of a schedule, the property that it violates, and its events. Raises ``InputError``."""
    value, _, _ = read_yaml(path)
    try:
        if value["format"] != FORMAT:
            raise ValueError(f"the format is {quote(value['format'])}, not {FORMAT}")
        events = []
        for line in value["events"]:
            what, where = line.split(" ", 1)
            where, position = where.rsplit(" ", 1)
            events.append(Event(what, where, int(position)))
        data = value["scope"]
        return _scope(data), str(value["violates"]["property"]), tuple(events)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(Diagnostic(str(path), f"is not a schedule of `p4gen verify`: {error}")) from None


def _scope(data: Mapping[str, Any]) -> Scope:
    kind = data["kind"]
    if kind in families():
        own = families()[kind].facet(Verification).scopes
        if own is None:
            raise ValueError(f"the family {kind} has no scopes of its own")
        return own.read(data)
    return FlowScope.from_data(data) if kind == "flows" else GroupScope.from_data(data)
