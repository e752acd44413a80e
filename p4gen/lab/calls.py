"""Running collectives on a lab's hosts, and what comes of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4gen.errors import FailedError, InputError, P4genError
from p4gen.host.collectives.control import Collective
from p4gen.host.transport.clock import SECOND
from p4gen.lab.session import Lab
from p4gen.manager.api import GroupStatus
from p4gen.net.config import Call
from p4gen.records import to_plain
from p4gen.spec import CollectiveSpec

_LOOK_S = 0.2
"""Between two looks at whether all processes live that a run needs."""
COUNTERS = ("sent", "resent", "timeouts", "naks", "cnps")


@dataclass(frozen=True)
class CallOutcome:
    """One collective at all ranks."""

    call: Call
    duration: int
    """From the first rank's begin to the last rank's end, ps."""
    begun: int
    """How often the rank began that did so most often: more than once when the group was placed anew meanwhile."""
    problems: tuple[str, ...]
    """What is wrong with results, by rank."""

    @property
    def throughput(self) -> float:
        """Bit/s, of the collective's size (EPIC §7.1); 0 for a barrier."""
        return self.call.size * 8 * SECOND / self.duration if self.duration else 0.0


@dataclass(frozen=True)
class RunOutcome:
    """Several collectives one after the other, with what was counted meanwhile."""

    group: GroupStatus
    calls: tuple[CallOutcome, ...]
    ranks: tuple[dict[str, Any], ...]
    """By rank: ``host``, the QPs' counters, ``faults`` and ``refused`` by reason."""
    drops: dict[str, dict[str, int]]
    """By switch, then by module and reason."""
    failures: tuple[str, ...] = ()
    """Calls that did not end."""
    traced: tuple[str, ...] = ()
    """Switches that were traced, which makes them slow."""

    @property
    def problems(self) -> tuple[str, ...]:
        """All that is wrong."""
        return (*self.failures, *(problem for call in self.calls for problem in call.problems))

    @property
    def ok(self) -> bool:
        """Whether every call ended, and every rank's result equals NumPy's."""
        return not self.problems


class Running:
    """A run under way; ``result`` waits for it."""

    def __init__(
        self,
        lab: Lab,
        group: GroupStatus,
        calls: Sequence[Call],
        *,
        seed: int,
        deadline: float,
        aligned: bool = True,
        ahead: int = 0,
        progress: Callable[[float, int], None] | None = None,
    ) -> None:
        check_calls(calls, lab.job.spec, len(group.spec.ranks))
        self._progress, self._total = progress, len(calls)
        self._lab, self._group, self._calls = lab, group, tuple(calls)
        self._patience = deadline + 10
        self._traced = lab.traced()
        self._before = _counts(lab, group)
        self._drops = lab.switch_drops()
        fields = [to_plain(call) for call in calls]
        self._asked: list[Future[dict[str, Any]]] = [
            lab.hosts[host].ask(
                "run", group=group.spec.name, calls=fields, seed=seed, deadline=deadline, aligned=aligned, ahead=ahead
            )
            for host in group.spec.ranks
        ]

    @property
    def done(self) -> bool:
        """Whether all ranks have answered."""
        return all(future.done() for future in self._asked)

    def result(self) -> RunOutcome:
        """Wait for all ranks. After a failure or Ctrl-C the group is gone: its ranks are no longer in step."""
        try:
            return self._result()
        except KeyboardInterrupt:
            self._give_up()
            raise

    def _give_up(self) -> str:
        """Destroy the group: its ranks are no longer in step. What to say of that."""
        name = self._group.spec.name
        if self._lab.without_manager:
            return (
                f"group {name} is of no use any more, its ranks are out of step: restart manager, then destroy {name}"
            )
        try:
            self._lab.manager.destroy_group(name)
        except P4genError as error:
            return (
                f"group {name} is of no more use, its ranks are out of step; it could not be destroyed: {error.reason}"
            )
        return f"group {name} is destroyed: its ranks are out of step; the next run makes it again"

    def _result(self) -> RunOutcome:
        answers: list[dict[str, Any]] = []
        failures: list[str] = []
        others: dict[str, list[str]] = {}
        self._wait()
        for host, future in zip(self._group.spec.ranks, self._asked, strict=True):
            try:
                answers.append(future.result(0))
            except FutureTimeoutError:
                failures.append(f"{host} does not answer")
            except FailedError as error:
                why = error.reason.partition(" s: ")[2]  # the whole story once
                if why not in others:
                    failures.append(error.reason)
                    others[why] = []
                elif why:
                    others[why].append(host)
                else:
                    failures.append(error.reason)
        failures += [f"{', '.join(hosts)}: the same" for hosts in others.values() if hosts]
        if failures:
            dead = self._lab.dead_switches(self._group)
            failures += [diagnostic.message for error in dead for diagnostic in error.diagnostics]
            failures += [slow(switch) for switch in {*self._traced, *self._lab.traced()}]
            failures.append(self._give_up())
        outcomes = [] if failures else [self._outcome(n, call, answers) for n, call in enumerate(self._calls)]
        after, drops = _counts(self._lab, self._group), self._lab.switch_drops()
        ranks = tuple(_difference(now, then) for now, then in zip(after, self._before, strict=True))
        changed = {
            switch: dict(Counter(counts) - Counter(self._drops.get(switch, {}))) for switch, counts in drops.items()
        }
        return RunOutcome(
            self._group, tuple(filter(None, outcomes)), ranks, changed, tuple(failures), tuple(self._traced)
        )

    def _wait(self) -> None:
        """Wait for all ranks' answers; not for those of the dead, or when no one can say how it ends."""
        until = time.monotonic() + self._patience
        while wait(self._asked, _LOOK_S).not_done and time.monotonic() < until:
            try:
                self._lab.check_group(self._group)
            except FailedError as error:
                traced = [slow(switch) for switch in self._traced]
                raise FailedError(*error.diagnostics, *traced, self._give_up()) from None
            self._tell()

    def _tell(self) -> None:
        """Say how many calls the slowest rank has done, and of how many; who does not answer is slow, too."""
        if self._progress is None:
            return
        asked = [self._lab.hosts[host].ask("progress") for host in self._group.spec.ranks]
        wait(asked, _LOOK_S)
        done = [future.result()["done"] for future in asked if future.done() and future.exception() is None]
        if len(done) == len(asked):
            self._progress(min(done), self._total)

    def _outcome(self, number: int, call: Call, answers: list[dict[str, Any]]) -> CallOutcome | None:
        # A rank that found something wrong made no further calls.
        mine = [answer["calls"][number] for answer in answers if number < len(answer["calls"])]
        if len(mine) < len(answers):
            return None
        problems = [
            f"rank {answer['rank']}, {call.collective} {number}: {each['problem']}"
            for answer, each in zip(answers, mine, strict=True)
            if each["problem"]
        ]
        if call.collective is Collective.BARRIER:
            begun = max(each["started"] for each in mine)
            problems += [
                f"rank {answer['rank']} left barrier {number} before all had reached it"
                for answer, each in zip(answers, mine, strict=True)
                if each["finished"] < begun
            ]
        first, last = min(each["started"] for each in mine), max(each["finished"] for each in mine)
        return CallOutcome(call, last - first, max(each["begun"] for each in mine), tuple(problems))


def run(
    lab: Lab,
    group: GroupStatus,
    calls: Sequence[Call],
    *,
    seed: int,
    deadline: float = 60.0,
    aligned: bool = True,
    ahead: int = 0,
    progress: Callable[[float, int], None] | None = None,
) -> RunOutcome:
    """Run collectives and wait for them. With ``aligned`` a barrier stands before each. Data of up to ``ahead`` bytes
    is drawn before the first begins; otherwise a rank that is through draws the next call's while others still work.
    ``progress`` is told every now and then how many calls are done, of how many.

    Raises ``InputError`` for calls that the group cannot do.
    """
    return Running(
        lab, group, calls, seed=seed, deadline=deadline, aligned=aligned, ahead=ahead, progress=progress
    ).result()


def slow(switch: str) -> str:
    """What everybody is told who waits while a switch is traced."""
    return f"{switch} is traced, packet by packet, which makes it many times slower: trace {switch} off ends it"


def check_calls(calls: Sequence[Call], spec: CollectiveSpec, ranks: int) -> None:
    """Raise ``InputError`` for calls that ranks cannot do, or for which there is not the memory: every rank draws all
    ranks' data, to know what has to come out."""
    for call in set(calls):
        call.check(spec, ranks)
        copies = 2 * ranks * ranks
        room = _room()
        if call.size * copies > room:
            raise InputError(
                f"{call.collective} of {call.size:,} bytes: {ranks} ranks draw all ranks' data each, with what has to "
                f"come out {call.size * copies >> 20:,} MiB; there are {room >> 20:,} MiB for it, so "
                f"{room // copies >> 10:,}K is the limit here"
            )


def _room() -> int:
    """Half of the memory that is free now, in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 512
    return 1 << 30


def _counts(lab: Lab, group: GroupStatus) -> list[dict[str, Any]]:
    found = []
    for host, counters in ((host, lab.hosts[host].call("counters")) for host in group.spec.ranks):
        mine = counters["groups"].get(group.spec.name, {})
        found.append(
            {"host": host}
            | {name: mine.get(name, 0) for name in COUNTERS}
            | {name: counters[name] for name in ("faults", "refused", "undelivered", "kernel_drops")}
        )
    return found


def _difference(now: dict[str, Any], then: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in now.items():
        if isinstance(value, dict):
            found[name] = dict(Counter(value) - Counter(then[name]))
        else:
            found[name] = value if isinstance(value, str) else max(0, value - then[name])
    return found
