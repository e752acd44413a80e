"""Runs collectives on a lab's hosts, and collects the results."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from p4gen.errors import FailedError, InputError, P4genError
from p4gen.families import collective
from p4gen.host.transport.clock import SECOND
from p4gen.labs.runs.membercalls import MemberCall
from p4gen.labs.runs.peercalls import PeerCall
from p4gen.labs.session import Lab
from p4gen.manager.api import GroupStatus
from p4gen.net.collectives.config import Call
from p4gen.plan.placement.served import missing, served
from p4gen.records import to_plain
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective

_LOOK_S = 0.2
"""Seconds between checks whether all processes that a run needs are running."""
COUNTERS = ("sent", "resent", "timeouts", "naks", "cnps")


@dataclass(frozen=True)
class CallOutcome:
    """The result of one collective at all ranks."""

    call: Call | PeerCall | MemberCall
    duration: int
    """Time from the first rank's start to the last rank's end, in ps."""
    begun: int
    """The most starts of the call at any rank: more than one if the group was placed again meanwhile."""
    problems: tuple[str, ...]
    """Wrong results, one line for each rank."""
    ring: bool = False
    """Whether it ended on a ring of the hosts at rank 0."""

    @property
    def throughput(self) -> float:
        """Throughput in bit/s, of the collective's size (EPIC §7.1); 0 for a barrier."""
        return self.call.size * 8 * SECOND / self.duration if self.duration else 0.0


@dataclass(frozen=True)
class RunOutcome:
    """The result of several collectives in a row, with counters."""

    group: str
    calls: tuple[CallOutcome, ...]
    ranks: tuple[dict[str, Any], ...]
    """By rank: ``host``, counters of the QPs, ``faults`` and ``refused`` by reason."""
    drops: dict[str, dict[str, int]]
    """Dropped packets by switch, then by module and reason."""
    failures: tuple[str, ...] = ()
    """Descriptions of calls that did not end."""
    traced: tuple[str, ...] = ()
    """Switches that were traced and therefore slow."""

    @property
    def problems(self) -> tuple[str, ...]:
        """All problems and failures."""
        return (*self.failures, *(problem for call in self.calls for problem in call.problems))

    @property
    def ok(self) -> bool:
        """Whether every call ended, and every rank's result equals NumPy's."""
        return not self.problems


class GroupRun:
    """A run in progress; ``result`` waits for it."""

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
        check_calls(calls, collective(lab.job.spec), group.spec.ranks)
        self._progress, self._total = progress, len(calls)
        self._lab, self._group, self._calls = lab, group, tuple(calls)
        self._patience = deadline + 10
        self._traced = lab.traced()
        self._before = self._counts()
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
        """Wait for all ranks. After a failure or Ctrl-C the group is destroyed, because its ranks are no longer in
        step."""
        try:
            return self._result()
        except KeyboardInterrupt:
            self._give_up()
            raise

    def _give_up(self) -> str:
        return give_up(self._lab, self._group.spec.name)

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
                why = error.reason.partition(" s: ")[2]  # the full message once
                if why not in others:
                    failures.append(error.reason)
                    others[why] = []
                elif why:
                    others[why].append(host)
                else:
                    failures.append(error.reason)
        failures += [f"{', '.join(hosts)}: the same" for hosts in others.values() if hosts]
        if failures:
            dead = self._lab.groups.dead_switches(self._group)
            failures += [diagnostic.message for error in dead for diagnostic in error.diagnostics]
            failures += [slow(switch) for switch in {*self._traced, *self._lab.traced()}]
            failures.append(self._give_up())
        outcomes = [] if failures else [self._outcome(n, call, answers) for n, call in enumerate(self._calls)]
        after, drops = self._counts(), self._lab.switch_drops()
        ranks = tuple(difference(now, then) for now, then in zip(after, self._before, strict=True))
        changed = {switch: grown(counts, self._drops.get(switch, {})) for switch, counts in drops.items()}
        name = self._group.spec.name
        return RunOutcome(name, tuple(filter(None, outcomes)), ranks, changed, tuple(failures), tuple(self._traced))

    def _counts(self) -> list[dict[str, Any]]:
        return counts_of(self._lab, self._group.spec.name, self._group.spec.ranks)

    def _wait(self) -> None:
        """Wait for all ranks' answers, except those of dead hosts; stop when it is certain that the calls cannot
        end."""
        until = time.monotonic() + self._patience
        while wait(self._asked, _LOOK_S).not_done and time.monotonic() < until:
            try:
                self._lab.check_running(self._group.spec.ranks)
            except FailedError as error:
                traced = [slow(switch) for switch in self._traced]
                raise FailedError(*error.diagnostics, *traced, self._give_up()) from None
            self._tell()

    def _tell(self) -> None:
        """Report how many calls of how many the slowest rank has done. A rank that does not answer counts as slow."""
        if self._progress is None:
            return
        asked = [self._lab.hosts[host].ask("progress") for host in self._group.spec.ranks]
        wait(asked, _LOOK_S)
        done = [future.result()["done"] for future in asked if future.done() and future.exception() is None]
        if len(done) == len(asked):
            self._progress(min(done), self._total)

    def _outcome(self, number: int, call: Call, answers: list[dict[str, Any]]) -> CallOutcome | None:
        # A rank with a wrong result makes no further calls.
        mine = [answer["calls"][number] for answer in answers if number < len(answer["calls"])]
        if len(mine) < len(answers):
            return None
        problems = [
            f"rank {answer['rank']}, {call.collective} {number}: {each['problem']}"
            for answer, each in zip(answers, mine, strict=True)
            if each["problem"]
        ]
        if call.collective is Collective.BARRIER:
            problems += left_too_soon(number, mine)
        first, last = min(each["started"] for each in mine), max(each["finished"] for each in mine)
        begun, ring = max(each["begun"] for each in mine), bool(mine[0]["ring"])
        return CallOutcome(call, last - first, begun, tuple(problems), ring)


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
    """Run collectives and wait for them. With ``aligned``, a barrier precedes each. Data of up to ``ahead`` bytes is
    drawn before the first call; otherwise a rank that is done draws the next call's data while others are still
    working. ``progress`` is called now and then with the number of calls done, and of all calls.

    Raises ``InputError`` for calls that the group cannot make.
    """
    return GroupRun(
        lab, group, calls, seed=seed, deadline=deadline, aligned=aligned, ahead=ahead, progress=progress
    ).result()


def give_up(lab: Lab, name: str) -> str:
    """Destroy a group, because its ranks are no longer in step. Returns a message about it."""
    if lab.without_manager:
        return f"group {name} cannot be used any more, its ranks are out of step: restart manager, then destroy {name}"
    try:
        lab.manager.destroy_group(name)
    except P4genError as error:
        return f"group {name} cannot be used any more and could not be destroyed: {error.reason}"
    return f"group {name} is destroyed: its ranks are out of step; the next run creates it again"


def slow(switch: str) -> str:
    """The message for a user who waits while a switch is traced."""
    return f"{switch} is traced, packet by packet, which makes it many times slower: trace {switch} off ends it"


def check_calls(calls: Sequence[Call], spec: CollectiveSpec, hosts: Sequence[str]) -> None:
    """Raises ``InputError`` for calls that these hosts cannot make, that the program does not serve, or that need too
    much memory: every rank draws all ranks' data to compute the expected results."""
    sync, collectives = served(spec, hosts)
    for call in set(calls):
        if call.collective not in collectives:
            raise InputError(*(missing(spec, hosts, sync, [call.collective])))
        call.check(spec, len(hosts))
        room(call.collective, call.size, len(hosts))


def room(collective: str, size: int, ranks: int) -> None:
    """Raises ``InputError`` when there is not enough memory for a call of ``size`` bytes."""
    copies, free = 2 * ranks * ranks, _room()
    if size * copies > free:
        raise InputError(
            f"{collective} of {size:,} bytes: every rank draws all ranks' data; with the expected "
            f"results that takes {size * copies >> 20:,} MiB; {free >> 20:,} MiB are free for it, so "
            f"{free // copies >> 10:,}K is the limit here"
        )


def left_too_soon(number: int, answers: Sequence[Mapping[str, Any]]) -> list[str]:
    """Ranks that left a barrier before all had reached it, a line each."""
    begun = max(answer["started"] for answer in answers)
    return [
        f"rank {rank} left barrier {number} before all had reached it"
        for rank, answer in enumerate(answers)
        if answer["finished"] < begun
    ]


def _room() -> int:
    """Half of the memory that is free now, in bytes."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) * 512
    return 1 << 30


def counts_of(lab: Lab, group: str, hosts: Sequence[str]) -> list[dict[str, Any]]:
    """The counters of a group's ranks, and of the NICs of their hosts."""
    found = []
    for host, counters in ((host, lab.hosts[host].call("counters")) for host in hosts):
        mine = counters["groups"].get(group, {})
        found.append(
            {"host": host}
            | {name: mine.get(name, 0) for name in COUNTERS}
            | {"trees": mine.get("trees", {})}
            | {name: counters[name] for name in ("faults", "refused", "undelivered", "kernel_drops")}
        )
    return found


def grown(now: Mapping[str, int], then: Mapping[str, int]) -> dict[str, int]:
    """By how much counters by reason have grown, those that have."""
    return dict(Counter(now) - Counter(then))


def difference(now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """By how much counters have grown. Those that began again count as not grown."""
    found: dict[str, Any] = {}
    for name, value in now.items():
        if isinstance(value, dict):
            found[name] = grown(value, then[name])
        else:
            found[name] = value if isinstance(value, str) else max(0, value - then[name])
    return found
