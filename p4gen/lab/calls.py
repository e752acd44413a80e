"""Running collectives on a lab's hosts, and what comes of it."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from typing import Any

from p4gen.errors import FailedError, P4genError
from p4gen.host.clock import SECOND
from p4gen.host.control import Collective
from p4gen.lab.hostd import call_fields
from p4gen.lab.session import Lab
from p4gen.manager.api import GroupStatus
from p4gen.net.config import Call

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

    @property
    def problems(self) -> tuple[str, ...]:
        """All that is wrong."""
        return (*self.failures, *(problem for call in self.calls for problem in call.problems))

    @property
    def ok(self) -> bool:
        """Whether every call ended, and every rank has what NumPy has."""
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
    ) -> None:
        for call in calls:
            call.check(lab.job.spec, len(group.spec.ranks))
        self._lab, self._group, self._calls = lab, group, tuple(calls)
        self._patience = deadline + 10
        self._before = _counts(lab, group)
        self._drops = lab.switch_drops()
        fields = [call_fields(call) for call in calls]
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

    def _give_up(self) -> None:
        """Destroy the group: its ranks are no longer in step."""
        with contextlib.suppress(P4genError):
            self._lab.manager.destroy_group(self._group.spec.name)

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
            self._give_up()
        outcomes = [] if failures else [self._outcome(n, call, answers) for n, call in enumerate(self._calls)]
        after, drops = _counts(self._lab, self._group), self._lab.switch_drops()
        ranks = tuple(_difference(now, then) for now, then in zip(after, self._before, strict=True))
        changed = {
            switch: dict(Counter(counts) - Counter(self._drops.get(switch, {}))) for switch, counts in drops.items()
        }
        return RunOutcome(self._group, tuple(filter(None, outcomes)), ranks, changed, tuple(failures))

    def _wait(self) -> None:
        """Wait for all ranks' answers; not for those of the dead, or when no one can say how it ends."""
        until = time.monotonic() + self._patience
        while wait(self._asked, _LOOK_S).not_done and time.monotonic() < until:
            try:
                self._lab.check_group(self._group)
            except FailedError:
                self._give_up()
                raise

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
) -> RunOutcome:
    """Run collectives and wait for them. With ``aligned`` a barrier stands before each. Data of up to ``ahead`` bytes
    is drawn before the first begins; otherwise a rank that is through draws the next call's while others still work.

    Raises ``InputError`` for calls that the group cannot do.
    """
    return Running(lab, group, calls, seed=seed, deadline=deadline, aligned=aligned, ahead=ahead).result()


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
