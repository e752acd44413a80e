"""What is known about the parts of a system, as arrays for the kernel. Python answers questions that are new."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import Any

import numpy as np

from p4gen.errors import FailedError
from p4gen.verification.search import kernel
from p4gen.verification.search.interning import Interned
from p4gen.verification.search.kernel import APPEND, ARRIVE, ARRIVE_CORRUPT, EXPIRES, PUT_BY, TAKE, TICKS, Known
from p4gen.verification.search.questions import Question
from p4gen.verification.search.symmetry import Symmetry
from p4gen.verification.search.turning import Turns
from p4gen.verification.system import Effect, System

MOST = 1 << 24
"""The most states of a part, contents of links and frames: as many as have numbers in a question."""
NO_TURNS = Turns(
    np.zeros((1, 1), np.int32),
    np.zeros((1, 1, 1), np.int32),
    np.zeros((1, 1, 1), np.uint64),
    np.zeros((1, 1), np.int32),
    np.zeros((1, 1), np.uint64),
    np.zeros(1, np.uint64),
)
"""No symmetry."""


class Knowledge:
    """The answers to questions of the kernel. Running the program, or a host, finds them."""

    def __init__(self, system: System, symmetry: Symmetry | None = None) -> None:
        self.system = system
        self._symmetry = symmetry
        self.executions = 0
        """How often a switch or a host was run."""
        self.effects: list[Effect] = []
        self._lists: Interned[tuple[int, ...]] = Interned()
        self._pairs = 0
        self.steps: list[tuple[Question, Effect]] = []
        """The steps of switches and hosts, each once."""
        self._answers = 0
        hosts, switches = max(1, len(system.hosts)), max(1, len(system.switches))
        most = kernel.MOST_SENT
        self.known = Known(
            np.zeros(1 << 12, np.uint64),
            np.zeros(1 << 12, np.int32),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
            np.zeros((256, most), np.int32),
            np.zeros((256, most), np.int32),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
            np.zeros(256, np.int32),
            np.zeros((hosts, 256), np.uint8),
            np.zeros((hosts, 256), np.uint8),
            np.zeros((hosts, 256), np.uint8),
            np.zeros((switches, 256), np.uint8),
            np.zeros((switches, 256), np.uint8),
            NO_TURNS,
        )
        self._contents_known = 0
        self._hosts_known = [0] * hosts
        self._switches_known = [0] * switches
        self.settle()

    def answer(self, questions: Iterable[int]) -> None:
        """Find the answers to questions, each once, in their order."""
        for number in questions:
            asked = Question.of(number)
            if self._symmetry is None or not asked.step:
                self._learn(number, self._find(asked))
            elif self._known(number) < 0:
                self._symmetry.note(asked, [self._image(image) for image in self._symmetry.images(asked)])
        self.settle()

    def _known(self, number: int) -> int:
        return kernel.ask(self.known.keys, self.known.answers, np.uint64(number))

    def _image(self, asked: Question) -> Effect:
        """The effect that a turn makes of the effect of another question."""
        number = asked.number
        if self._known(number) < 0:
            self._learn(number, self._find(asked))
        return self.effects[self._known(number)]

    def settle(self) -> None:
        """Give the kernel new contents of links and new states of parts. Raises ``FailedError`` for more than there are
        numbers."""
        system, contents = self.system, self.system.contents
        if self._symmetry is not None:
            self._symmetry.settle()
            self.known = self.known._replace(turns=self._symmetry.arrays)
        numbered: list[Sized] = [contents, system.frames, self._lists, *system.switch_watches, *system.host_watches]
        if max(map(len, numbered)) > MOST:
            raise FailedError(f"a part has more than {MOST:,} states: choose a smaller scope")
        self._room("lengths", len(contents))
        self._room("held", len(contents))
        for number in range(self._contents_known, len(contents)):
            content = contents[number]
            self.known.lengths[number], self.known.held[number] = len(content.in_order), len(content.held)
        self._contents_known = len(contents)
        hosts = list(zip(system.hosts, system.host_watches, strict=True))
        self._wide(("done", "timers", "host_waits"), max((len(watch) for _, watch in hosts), default=0))
        for number, (host, watch) in enumerate(hosts):
            for state in range(self._hosts_known[number], len(watch)):
                inner = watch.inner(state)
                self.known.done[number, state] = host.done(inner)
                self.known.timers[number, state] = timers = len(host.timers(inner))
                if timers > kernel.MOST_TIMERS:
                    raise FailedError(f"{host.name} has {timers} timers; {kernel.MOST_TIMERS} are the limit")
                self.known.host_waits[number, state] = watch.waits(state)
            self._hosts_known[number] = len(watch)
        self._wide(("switch_waits", "switch_holds"), max(map(len, system.switch_watches), default=0))
        for number, (switch, watch) in enumerate(zip(system.switches, system.switch_watches, strict=True)):
            for state in range(self._switches_known[number], len(watch)):
                self.known.switch_waits[number, state] = watch.waits(state)
                self.known.switch_holds[number, state] = switch.holds(watch.inner(state))
            self._switches_known[number] = len(watch)

    def _wide(self, names: Iterable[str], size: int) -> None:
        for name in names:
            array = getattr(self.known, name)
            if array.shape[1] < size:
                wider: dict[str, Any] = {name: _wider(array, size)}
                self.known = self.known._replace(**wider)

    def switch_steps(self) -> Iterator[tuple[int, int, int, tuple[bytes, ...], Effect]]:
        """All steps of switches: switch, state, port, frames that arrived, effect."""
        system = self.system
        for asked, effect in self.steps:
            if asked.kind == TICKS:
                port, frames = system.tick_frames(asked.who)
                yield system.ticks[asked.who].switch, asked.state, port, frames, effect
            elif asked.kind != EXPIRES and not system.links[asked.who].to_host:
                to = system.links[asked.who]
                arrived = system.frames_of(asked.who, asked.frame, corrupt=asked.kind == ARRIVE_CORRUPT)
                yield to.part, asked.state, to.port, arrived, effect

    def _find(self, asked: Question) -> int:
        system = self.system
        kind, who, place, state, frame = asked
        if kind == APPEND:
            return system.append(state, self._lists[frame])
        if kind == PUT_BY:
            return system.put_by(state, frame)
        if kind == TAKE:
            found, rest = system.take(state, place)
            self._room("taken_frame", self._pairs + 1)
            self._room("taken_rest", self._pairs + 1)
            self.known.taken_frame[self._pairs], self.known.taken_rest[self._pairs] = found, rest
            self._pairs += 1
            return self._pairs - 1
        self.executions += 1
        if kind in (ARRIVE, ARRIVE_CORRUPT):
            effect = system.arrive(who, state, frame, corrupt=kind == ARRIVE_CORRUPT)
        elif kind == EXPIRES:
            effect = system.expire(who, state, frame)
        else:
            assert kind == TICKS
            effect = system.tick(who, state)
        self.steps.append((asked, effect))
        return self._effect(effect)

    def _effect(self, effect: Effect) -> int:
        number = len(self.effects)
        self.effects.append(effect)
        if len(effect.sent) > kernel.MOST_SENT:
            raise FailedError(f"a switch sends on {len(effect.sent)} links at once; {kernel.MOST_SENT} are the limit")
        for name in ("effect_state", "effect_flags", "effect_count", "effect_link", "effect_list"):
            self._room(name, number + 1)
        known = self.known
        known.effect_state[number] = effect.state
        known.effect_flags[number] = kernel.LOSSY * bool(effect.lost) | kernel.WRONG * bool(effect.problem)
        known.effect_count[number] = len(effect.sent)
        for i, (link, frames) in enumerate(effect.sent):
            known.effect_link[number, i] = link
            known.effect_list[number, i] = self._lists.number(frames)
        return number

    def _learn(self, question: int, answer: int) -> None:
        if 2 * self._answers > len(self.known.keys):
            keys = np.zeros(4 * len(self.known.keys), np.uint64)
            answers = np.zeros(len(keys), np.int32)
            for at in np.flatnonzero(self.known.keys):
                kernel.learn(keys, answers, self.known.keys[at], self.known.answers[at])
            self.known = self.known._replace(keys=keys, answers=answers)
        kernel.learn(self.known.keys, self.known.answers, np.uint64(question), answer)
        self._answers += 1

    def _room(self, name: str, size: int) -> None:
        array = getattr(self.known, name)
        if len(array) < size:
            larger = np.zeros((2 * size, *array.shape[1:]), array.dtype)
            larger[: len(array)] = array
            changed: dict[str, Any] = {name: larger}
            self.known = self.known._replace(**changed)


def _wider(array: np.ndarray, size: int) -> np.ndarray:
    wider = np.zeros((len(array), 2 * size), array.dtype)
    wider[:, : array.shape[1]] = array
    return wider
