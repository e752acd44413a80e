"""Confirmation: another engine repeats every step of the switches in a search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from p4gen.model import EngineName
from p4gen.verification.search.knowledge import Knowledge
from p4gen.verification.system import System


@dataclass(frozen=True)
class Confirmation:
    """The number of steps of switches that were repeated, and the first one that differs; "" if none does."""

    steps: int
    difference: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of steps that were not repeated, by the reason."""

    def sentence(self) -> str:
        """The numbers of steps repeated, of steps that differ, and of steps left out, with reasons."""
        left_out = "".join(f"; {count:,} left out: {reason}" for reason, count in self.left_out.items())
        if not self.steps:
            return f"no step of switches repeated{left_out}"
        return f"{self.steps:,} steps of switches repeated: {self.difference or 'all as before'}{left_out}"


@dataclass(frozen=True)
class LocalStep:
    """A step of a switch: its state, and the frames that arrive at a port."""

    switch: int
    state: int
    """The switch's own state (``SwitchPart``), without the monitors' records."""
    port: int
    frames: tuple[bytes, ...]
    after: int
    sent: tuple[tuple[int, tuple[bytes, ...]], ...]
    """The frames that it sends, by link."""
    wrong: bool
    """Whether it met undefined behaviour, or sent to a port without a link."""


def local_steps(knowledge: Knowledge) -> list[LocalStep]:
    """All steps of switches, each once."""
    system = knowledge.system
    found: dict[LocalStep, None] = {}
    for switch, state, port, frames, effect in knowledge.switch_steps():
        watch = system.switch_watches[switch]
        sent = tuple((link, tuple(system.frames[number] for number in numbers)) for link, numbers in effect.sent)
        before, after = watch.inner(state), watch.inner(effect.state)
        wrong = bool(effect.problem) and effect.violated == "switches"
        found[LocalStep(switch, before, port, frames, after, sent, wrong)] = None
    return list(found)


@dataclass(frozen=True)
class Repeated:
    """A step that a switch of another system has repeated, and what differs."""

    switch: str
    port: int
    sent: bool
    """Whether it sent other frames."""
    left: bool
    """Whether it left other registers."""
    lost: bool
    """Whether it lost other packets."""

    @property
    def same(self) -> bool:
        """Whether nothing differs: frames, registers, losses."""
        return not (self.sent or self.left or self.lost)


def repeat_steps(knowledge: Knowledge, other: System) -> Iterator[Repeated]:
    """Repeat every step of the switches of a search with the switches of another system, from the same registers and
    frames."""
    system = knowledge.system
    for switch, state, port, frames, effect in knowledge.switch_steps():
        part, watch, theirs = system.switches[switch], system.switch_watches[switch], other.switches[switch]
        step = theirs.process(theirs.number(part.words(watch.inner(state))), port, frames)
        sent = {link: tuple(system.frames[number] for number in numbers) for link, numbers in effect.sent}
        left = theirs.words(step.state) != part.words(watch.inner(effect.state))
        yield Repeated(part.name, port, dict(step.sent) != sent, left, step.lost != effect.lost or bool(step.problem))


def confirm(knowledge: Knowledge, engine: EngineName) -> Confirmation:
    """Repeat every step of the switches on an engine. From the same registers and frames the same must follow."""
    other = System(knowledge.system.scope.with_engine(engine))
    count = 0
    for count, step in enumerate(repeat_steps(knowledge, other), 1):
        if step.sent:
            return Confirmation(count, f"{step.switch}: {engine} sends other frames for a frame at port {step.port}")
        if step.left:
            return Confirmation(count, f"{step.switch}: on {engine} registers differ after a frame at port {step.port}")
    return Confirmation(count)
