"""Counterexamples as PTF scenarios: the packets that reach the switch that misbehaves, and the sound program's output.

``write`` generates the scenario; it is a module for PTF, beside the schedule of the counterexample, and its class is a
``Replayed``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from p4gen.difftest.sides import checked
from p4gen.errors import Diagnostic, FailedError, InputError
from p4gen.p4.compile import program_from
from p4gen.ptf.memory import TestedSwitch, run_in_memory
from p4gen.ptf.report import Outcome, TestResult
from p4gen.ptf.runner import run_suite
from p4gen.ptf.scenario import Output, SwitchTest
from p4gen.switch import targets
from p4gen.verification.findings.counterexample import SCHEDULE, read_schedule
from p4gen.verification.findings.story import Event, Moment, Story
from p4gen.verification.system import System
from p4gen.verification.world import Scope

MODULE = "test_counterexample"
NAME = f"{MODULE}.Counterexample"
MOST_FURTHER = 400
"""The most events after those of a counterexample, in which nothing is lost and every timer expires."""


class Replayed(SwitchTest):
    """Replays a counterexample at one switch: each step's frames arrive at a port, and exactly the given frames must
    leave."""

    schedule: ClassVar[Path]
    switch: ClassVar[str]
    registers: ClassVar[Mapping[str, Mapping[int, int]]] = {}
    """The cells that an earlier group has left in registers, those that are not 0."""
    clocks: ClassVar[tuple[str, ...]] = ()
    """Registers that only measure time. When ticks arrive they are as in a new switch."""
    steps: ClassVar[tuple[tuple[int, tuple[str, ...], tuple[tuple[int, str], ...]], ...]]
    """By step: a port, the frames that arrive there, and a (port, frame) for each frame that leaves; frames are in
    hexadecimal digits."""

    def replay(self) -> None:
        """Set the registers, send the frames of each step, and compare the output."""
        scope, _, _ = read_schedule(self.schedule)
        self.install(scope.with_engine("interp").world().configs[self.switch])
        for name, cells in self.registers.items():
            for index, value in cells.items():
                self.control.write_register(name, index, value)
        for port, frames, leaves in self.steps:
            for name in self.clocks if port == self.program.architecture.cpu_port else ():
                for index, value in enumerate(self.control.registers(name)):
                    if value:
                        self.control.write_register(name, index, 0)
            self.send(port, *map(bytes.fromhex, frames))
            self.expect(Output(out, bytes.fromhex(frame)) for out, frame in leaves)


@dataclass(frozen=True)
class Step:
    """The frames that arrive at a port of a switch at an event, and (port, frame) of those that leave."""

    text: str
    port: int
    frames: tuple[bytes, ...]
    leaves: tuple[tuple[int, bytes], ...]


def first_misbehaviour(story: Story) -> tuple[str, tuple[Step, ...]] | None:
    """The first switch of a run whose output differs from that of the sound program, and all steps up to then, with the
    sound program's output. None if there is no such switch, or no program is known to be sound."""
    right = story.system.scope.sound()
    if right is None:
        return None
    other = System(right)
    other.begin()
    # Both begin with the same registers: those that an earlier group has left in this run.
    states = [
        watch.begin(part.number(wrong.words(wrong.first)))
        for part, watch, wrong in zip(other.switches, other.switch_watches, story.system.switches, strict=True)
    ]
    steps: dict[str, list[Step]] = {switch.name: [] for switch in other.switches}
    numbers = {switch.name: i for i, switch in enumerate(other.switches)}
    for moment in _moments(story):
        if moment.part not in numbers or moment.effect is None:
            continue
        switch = numbers[moment.part]
        port, frames = _arrivals(story.system, moment)
        step = other.switches[switch].process(other.switch_watches[switch].inner(states[switch]), port, frames)
        states[switch] = other.switch_watches[switch].step(states[switch], step.state, port, (), step.sent).state
        ports = {link: at for at, link in other.ports[switch].items()}
        leaves = tuple((ports[link], frame) for link, sent in step.sent for frame in sent)
        steps[moment.part].append(Step(moment.text, port, frames, leaves))
        wrong = {link: [story.system.frames[number] for number in sent] for link, sent in moment.effect.sent}
        if wrong != {link: list(sent) for link, sent in step.sent}:
            return moment.part, tuple(steps[moment.part])
    return None


def _moments(story: Story) -> Iterator[Moment]:
    """The events of a run, then further ones in which everything arrives and every timer expires."""
    yield from list(story.moments)
    system = story.system
    for number in range(MOST_FURTHER):
        waiting = [
            link
            for link, content in zip(system.links, story.contents, strict=True)
            if system.contents[content].in_order
        ]
        if waiting:
            yield story.play(Event("deliver", waiting[0].name))
            continue
        timers = [
            Event("timeout", host.name)
            for host, watch, state in zip(system.hosts, system.host_watches, story.hosts, strict=True)
            if host.timers(watch.inner(state))
        ] + [Event("tick", tick.name) for tick in system.ticks]
        if not timers:
            return
        yield story.play(timers[number % len(timers)])


def _arrivals(system: System, moment: Moment) -> tuple[int, tuple[bytes, ...]]:
    """The port and the frames of an event at a switch."""
    if moment.event.what == "tick":
        (number,) = [number for number, tick in enumerate(system.ticks) if tick.name == moment.event.where]
        return system.tick_frames(number)
    assert moment.frame is not None
    (number,) = [number for number, link in enumerate(system.links) if link.name == moment.event.where]
    arrived = system.frames_of(number, system.frames.number(moment.frame), corrupt=moment.event.what == "corrupt")
    return system.links[number].port, arrived


def switch_in(file: Path) -> str:
    """The switch of a scenario."""
    found = re.search(r'^    switch = "(.+)"$', file.read_text(encoding="utf-8"), re.MULTILINE)
    if found is None:
        raise InputError(Diagnostic(str(file), "is not a scenario of `p4gen verify`"))
    return found[1]


def write(story: Story, about: str, folder: Path) -> Path | None:
    """Write the scenario of a counterexample beside its schedule. Returns its path; None if no switch misbehaves alone,
    or no program is known to be sound."""
    found = first_misbehaviour(story)
    if found is None:
        return None
    switch, steps = found
    (part,) = [part for part in story.system.switches if part.name == switch]
    registers = {
        name: left
        for name, words in zip(part.registers, part.words(part.first), strict=True)
        if (left := {index: word for index, word in enumerate(words) if word})
    }
    lines = [
        f'"""{story.system.scope.sentence()}.',
        "",
        about,
        "",
        "Written by `p4gen verify`. It fails on this program, and passes on the sound one.",
        '"""',
        "",
        "from pathlib import Path",
        "",
        "from p4gen.verification.findings.scenario import Replayed",
        "",
        "",
        "class Counterexample(Replayed):",
        f'    """What reaches {switch}, and what the sound program sends then."""',
        "",
        f'    schedule = Path(__file__).resolve().with_name("{SCHEDULE}")',
        f'    switch = "{switch}"',
        f"    registers = {registers}",
        f"    clocks = {part.clocks}",
        "    steps = (",
    ]
    for step in steps:
        lines.append(f"        # {step.text}")
        frames = "".join(f'"{frame.hex()}",' for frame in step.frames)
        leaves = "".join(f'({port}, "{frame.hex()}"),' for port, frame in step.leaves)
        lines.append(f"        ({step.port}, ({frames}), ({leaves})),")
    lines += ["    )", "", "    def runTest(self):", "        self.replay()", ""]
    path = folder / f"{MODULE}.py"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def trial_in_process(scope: Scope, switch: str, folder: Path) -> tuple[bool, bool]:
    """As ``trial``, with switches in the memory of this process."""
    found = importlib.util.spec_from_file_location(MODULE, folder / f"{MODULE}.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    passed: list[bool] = []

    def report(result: TestResult) -> bool:
        passed.append(result.outcome is Outcome.PASSED)
        return True

    for one in (scope, scope.sound()):
        assert one is not None
        world = one.with_engine("interp").world()
        spec = world.specs[switch]
        program = program_from(world.texts[switch], f"{spec.program}.p4")
        with contextlib.redirect_stdout(io.StringIO()):  # a scenario prints its seed, for PTF to show
            run_in_memory([module.Counterexample], TestedSwitch(program), spec, 0, report)
    wrong, right = passed
    return wrong, right


def trial(scope: Scope, switch: str, folder: Path, target: str, place: Path) -> tuple[bool, bool]:
    """Whether the scenario in ``folder`` passes on a target with a switch's program, and with the sound one.

    ``place`` is an empty folder with a short path. Raises the errors of compilers and switches, and ``FailedError`` if
    a run did not end regularly.
    """
    found = []
    for name, one in (("wrong", scope), ("right", scope.sound())):
        assert one is not None
        here = place / name
        here.mkdir()
        world = one.world()
        spec = world.specs[switch]
        text = world.texts[switch]
        program = checked(text, spec.program, here, for_bmv2=target == targets.BMV2, faulty=name == "wrong")
        run = here / "run"
        run.mkdir()
        result = run_suite(
            program,
            run,
            ports=spec.architecture.front_ports(spec.ports)[-1] + 1,
            params={"spec": spec.model_dump(mode="json"), "seed": 0},
            suite=(folder,),
            tests=(NAME,),
            switch=targets.starter(target),
        )
        if result.problem is not None or not result.tests:
            raise FailedError(f"the scenario did not run with the {name} program: {result.problem}")
        found.append(result.passed)
    wrong, right = found
    return wrong, right
