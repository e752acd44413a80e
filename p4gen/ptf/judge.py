"""Runs scenarios on programs with faults until one catches the fault, in a child process for each program.

A fault is caught by an assertion about packets, registers or counters, or by the model, which traps undefined
behaviour. A scenario that crashes, or takes more processor time than it can need, says nothing about the program: it is
run again after all others, and if the result is the same, the verdict is "unclear".
"""

from __future__ import annotations

import contextlib
import enum
import json
import os
import resource
import selectors
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Generic, NoReturn, TypeVar

from p4gen.errors import FailedError, P4genError
from p4gen.model import EngineName, engines
from p4gen.p4 import ir
from p4gen.p4.mutate.mutants import Ignored
from p4gen.ptf import report
from p4gen.ptf.memory import Scenarios, TestedSwitch, run_in_memory
from p4gen.ptf.report import Outcome, TestResult
from p4gen.vocabulary import ProgramSpec

MIN_PROCESSOR_S = 30
"""Processor time that every child may use, far more than all scenarios take on a small program."""

_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_AT_ONCE = 12
"""Number of scenarios that are run before the program is compiled to machine code: most faults are caught by one of
them."""


class Finding(enum.StrEnum):
    """The verdict on a program with a fault."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    UNCLEAR = "unclear"
    """No assertion failed, but some scenarios could not be run."""
    INVALID = "invalid"
    """The program cannot be loaded."""


T = TypeVar("T")


@dataclass(eq=False)
class Trial(Generic[T]):
    """A program with a fault. ``build`` makes it in the child; ``order`` are the scenarios, the most promising
    first."""

    fault: T
    spec: ProgramSpec
    build: Callable[[], ir.Program]
    order: Sequence[str]
    ignored: tuple[Ignored, ...] = ()
    processor_s: int = MIN_PROCESSOR_S
    finding: Finding | None = None
    by: str = ""
    """The scenario that caught the fault, or whose result is unclear."""
    message: str = ""
    results: dict[str, TestResult] = field(default_factory=dict)
    """The last result of each scenario that has run."""
    todo: list[str] = field(default_factory=list)
    """The scenarios that the next child runs."""
    _again: bool = False

    def __post_init__(self) -> None:
        self.todo = list(self.order)

    def take(self, line: bytes) -> None:
        """Process a message from the child."""
        if (problem := json.loads(line).get("invalid")) is not None:
            self.finding, self.message = Finding.INVALID, problem
            return
        result = report.read(line)
        self.results[result.name] = result
        self.todo.remove(result.name)
        if result.outcome is Outcome.FAILED:
            self.finding, self.by, self.message = Finding.CAUGHT, result.name, result.message

    def ended(self, status: int) -> None:
        """Process the end of the child, with its status as from ``os.waitpid``, after all its messages."""
        if self.finding is not None:
            return
        if self.todo and status:
            limit = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
            why = f"took more than {self.processor_s} s of processor time" if limit else f"its process ended: {status}"
            name = self.todo.pop(0)
            self.results[name] = TestResult(name, Outcome.ERROR, 0.0, why)
        if self.todo:
            return
        silent = [result for result in self.results.values() if result.outcome is Outcome.ERROR]
        if not silent:
            self.finding, self.message = Finding.SURVIVED, f"survived {len(self.results)} scenarios"
        elif self._again:
            self.finding, self.by, self.message = Finding.UNCLEAR, silent[0].name, silent[0].message
        else:
            self._again, self.todo = True, [result.name for result in silent]


def judge(
    trials: Iterable[Trial[T]],
    scenarios: Scenarios,
    *,
    seed: int,
    engine: EngineName = "interp",
    jobs: int | None = None,
) -> Iterator[Trial[T]]:
    """Judge each trial, ``jobs`` at a time (by default one for each processor). Yields trials as they end.

    The next trial is requested only when it can start, so that the results of earlier ones can determine its order.
    """
    waiting = iter(trials)
    under_way: dict[int, _Child[T]] = {}
    with selectors.DefaultSelector() as selector:

        def start(trial: Trial[T]) -> None:
            with _ends_held():
                child = _Child.start(trial, scenarios, seed, engine)
                under_way[child.reader] = child
                selector.register(child.reader, selectors.EVENT_READ)

        try:
            while True:
                while len(under_way) < (jobs or os.cpu_count() or 1) and (new := next(waiting, None)) is not None:
                    start(new)
                if not under_way:
                    return
                for key, _ in selector.select():
                    child = under_way[key.fd]
                    if child.read():
                        continue
                    selector.unregister(key.fd)
                    del under_way[key.fd]
                    child.trial.ended(child.end())
                    if child.trial.finding is None:
                        start(child.trial)
                    else:
                        yield child.trial
        finally:
            for child in under_way.values():
                child.end(kill=True)


@contextlib.contextmanager
def _ends_held() -> Iterator[None]:
    """Signals that end p4gen wait until the block has ended: Python loses what their handlers raise in ``os.fork``, and
    a child that is not under way yet would go on."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(eq=False)
class _Child(Generic[T]):
    """A process that runs the scenarios of its trial and sends the results over a pipe."""

    trial: Trial[T]
    pid: int
    reader: int
    _pending: bytes = b""

    @classmethod
    def start(cls, trial: Trial[T], scenarios: Scenarios, seed: int, engine: EngineName) -> _Child[T]:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            _run(trial, scenarios, seed, engine, writer)
        os.close(writer)
        return cls(trial, pid, reader)

    def read(self) -> bool:
        """Process the messages that can be read. Returns False at their end."""
        data = os.read(self.reader, 65536)
        *lines, self._pending = (self._pending + data).split(b"\n")
        for line in lines:
            self.trial.take(line)
        return bool(data)

    def end(self, *, kill: bool = False) -> int:
        """Wait until the process has ended. Returns its status as from ``os.waitpid``."""
        if kill:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.reader)
        return os.waitpid(self.pid, 0)[1]


def _run(trial: Trial[T], scenarios: Scenarios, seed: int, engine: EngineName, writer: int) -> NoReturn:
    """The main function of a child. It ends the process and never returns to the parent's code."""
    status = 1
    try:
        for number in _ENDS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (trial.processor_s, trial.processor_s + 5))
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        _carry_out(trial, scenarios, seed, engine, writer)
        status = 0
    finally:
        os._exit(status)


def _carry_out(trial: Trial[T], scenarios: Scenarios, seed: int, engine: EngineName, writer: int) -> None:
    try:
        switch = TestedSwitch(trial.build(), trial.ignored, engine=engine)
    except P4genError as error:
        os.write(writer, json.dumps({"invalid": str(error)}).encode() + b"\n")
        return

    def take(result: TestResult) -> bool:
        report.write(writer, result)
        return result.outcome is not Outcome.FAILED

    names = [scenarios[name] for name in trial.todo]
    if run_in_memory(names[:_AT_ONCE], switch, trial.spec, seed, take) and names[_AT_ONCE:]:
        if engine != "jit" and "jit" in engines(switch.program):
            switch = TestedSwitch(switch.program, trial.ignored, engine="jit", cache="")
        run_in_memory(names[_AT_ONCE:], switch, trial.spec, seed, take)


def check_sound(
    spec: ProgramSpec, program: ir.Program, scenarios: Scenarios, *, seed: int, engine: EngineName, jobs: int | None
) -> dict[str, float]:
    """The seconds that each scenario takes on a program without faults, except those that are skipped.

    Each of ``jobs`` children (by default one for each processor) runs a part of the scenarios. Raises ``FailedError``
    when one fails: then faults would prove nothing.
    """
    names, parts = list(scenarios), jobs or os.cpu_count() or 1
    trials = [Trial(part, spec, lambda: program, names[part::parts]) for part in range(min(parts, len(names)))]
    results: dict[str, TestResult] = {}
    for done in sorted(judge(trials, scenarios, seed=seed, engine=engine, jobs=jobs), key=lambda done: done.fault):
        if done.finding is not Finding.SURVIVED:
            why = f"{done.by}: {done.message}" if done.by else done.message
            raise FailedError(f"{spec.program}: scenarios fail without any fault seeded: {why}")
        results |= done.results
    return {name: results[name].seconds for name in names if results[name].outcome is Outcome.PASSED}
