"""Calls that a lab's hosts make, one after the other, and what has become of them."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import dataclass, field
from typing import Any, Final

from p4gen.errors import FailedError
from p4gen.host.transport.clock import SECOND
from p4gen.labs.calls import CallOrder, members_of
from p4gen.labs.hosts.ranks import COUNTERS
from p4gen.labs.hosts.tasks import Answer, Batch
from p4gen.labs.nodes import ask_all
from p4gen.labs.parties import Party
from p4gen.labs.runs.usage import Usage, usages
from p4gen.labs.session import Lab
from p4gen.plan.placement.windows import Schedule
from p4gen.records import from_plain, to_plain
from p4gen.vocabulary.message import Collective

_LOOK_S: Final = 0.2
"""Seconds in which hosts tell of their progress."""
_ANSWER_S: Final = 10.0
"""Seconds after its deadline in which a host must have answered."""
Progress = Callable[[float], None]
"""Is called now and then with the number of calls done."""


@dataclass(frozen=True)
class CallOutcome:
    """The result of one call at all ranks."""

    call: CallOrder
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
    """The result of several calls in a row, with counters."""

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
    usage: Mapping[str, Usage] = field(default_factory=dict)
    """What each node has used while the calls were made, by name."""

    @property
    def problems(self) -> tuple[str, ...]:
        """All problems and failures."""
        return (*self.failures, *(problem for call in self.calls for problem in call.problems))

    @property
    def ok(self) -> bool:
        """Whether every call ended, and every rank's result equals NumPy's."""
        return not self.problems


class Run:
    """A run in progress; ``result`` waits for it.

    It goes on in a thread of its own, batch by batch: all hosts draw their data, then all make the calls. ``deadline``
    is that of all calls together, in seconds. With ``aligned``, calls begin at all ranks at once, where ranks can do
    that. A batch has calls of ``ahead`` bytes in total, at least one call. With a ``schedule``, in which the others of
    its clock keep step, a call begins in each of its windows, or later if the one before has not ended.
    """

    def __init__(
        self,
        lab: Lab,
        party: Party,
        calls: Sequence[CallOrder],
        *,
        seed: int,
        deadline: float = 60.0,
        aligned: bool = True,
        ahead: int = 0,
        schedule: Schedule | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._schedule = schedule
        self._lab, self._party, self._calls = lab, party, tuple(calls)
        self._seed, self._ahead, self._progress = seed, ahead, progress
        aligning = members_of(lab.job.spec).aligning if aligned else ""
        self._before_each = (CallOrder(aligning, 0),) if aligning else ()
        self._until = time.monotonic() + deadline
        self._traced = lab.traced()
        self._before, self._drops = self._counts(), lab.switch_drops()
        self._failures: list[str] = []
        self._usage: dict[str, Usage] = {}
        self._interrupted = threading.Event()
        self._outcome: Future[RunOutcome] = Future()
        threading.Thread(target=self._work, name=f"run of {party.name}", daemon=True).start()

    @property
    def done(self) -> bool:
        """Whether the run has ended, well or not."""
        return self._outcome.done()

    def result(self) -> RunOutcome:
        """Wait for the end. After a failure or Ctrl-C the party is given up, because its ranks are no longer in step.

        Raises ``FailedError`` if a process has ended without which the calls cannot.
        """
        try:
            return self._outcome.result()
        except KeyboardInterrupt:
            self._interrupted.set()
            self._lab.parties.give_up(self._party)
            raise

    def _work(self) -> None:
        try:
            self._outcome.set_result(self._made())
        except BaseException as error:
            self._outcome.set_exception(error)

    def _made(self) -> RunOutcome:
        outcomes: list[CallOutcome] = []
        for first, calls in self._batches():
            outcomes += self._make(first, calls)
            if self._failures or self._interrupted.is_set() or any(each.problems for each in outcomes):
                break
        if self._failures and not self._interrupted.is_set():
            self._failures += [slow(switch) for switch in dict.fromkeys((*self._traced, *self._lab.traced()))]
            self._failures += self._lab.parties.give_up(self._party)
        after, drops = self._counts(), self._lab.switch_drops()
        ranks = tuple(difference(now, then) for now, then in zip(after, self._before, strict=True))
        changed = {switch: _grown(counts, self._drops.get(switch, {})) for switch, counts in drops.items()}
        failures, traced = tuple(self._failures), tuple(self._traced)
        return RunOutcome(self._party.name, tuple(outcomes), ranks, changed, failures, traced, self._usage)

    def _batches(self) -> Iterator[tuple[int, tuple[CallOrder, ...]]]:
        """Calls that are made without a pause, with the number of the first one."""
        first = 0
        while first < len(self._calls):
            last, size = first + 1, self._calls[first].size
            while last < len(self._calls) and (size := size + self._calls[last].size) <= self._ahead:
                last += 1
            yield first, self._calls[first:last]
            first = last

    def _make(self, first: int, calls: tuple[CallOrder, ...]) -> list[CallOutcome]:
        each = len(self._before_each) + 1
        in_order = tuple(one for call in calls for one in (*self._before_each, call))
        left = max(0.0, self._until - time.monotonic())
        batch = Batch(in_order, self._seed, first * each, left)
        self._ask("prepare", batch=to_plain(batch))
        if self._failures:
            return []
        before = usages(self._lab)
        by_rank = self._ask("run", lambda: self._tell(first, each), times=self._times(len(in_order)))
        for name, now in usages(self._lab).items():
            self._usage[name] = self._usage.get(name, Usage()) + now.since(before[name])
        if self._failures:
            return []
        answers = [[from_plain(Answer, one) for one in said["answers"][each - 1 :: each]] for said in by_rank]
        return [_outcome(first + n, call, each) for n, (call, *each) in enumerate(zip(calls, *answers, strict=True))]

    def _times(self, calls: int) -> list[float]:
        """When calls begin, in seconds of CLOCK_MONOTONIC, whose zero all periods are counted from: in windows from the
        next period on but one, so that all hosts know in time. Empty without windows."""
        if self._schedule is None:
            return []
        period, windows = self._lab.job.wanted.period, sorted(self._schedule.windows)
        first = int(time.monotonic() / period) + 2
        places = (divmod(number, len(windows)) for number in range(calls))
        return [(first + after + windows[which][0]) * period for after, which in places]

    def _ask(self, do: str, meanwhile: Callable[[], None] = lambda: None, **fields: Any) -> list[dict[str, Any]]:
        """Ask all hosts, and wait for their answers; what is missing is in ``_failures``.

        Raises ``FailedError`` when answers cannot come any more, after the party is given up.
        """
        hosts, patience = self._party.ranks, self._until - time.monotonic() + _ANSWER_S
        fields["group"] = self._party.name
        try:
            asked = ask_all(self._lab, hosts, do, patience, meanwhile=meanwhile, **fields)
        except FailedError as error:
            more = [*map(slow, self._traced), *self._lab.parties.give_up(self._party)]
            raise FailedError(*error.diagnostics, *more) from None
        found: list[dict[str, Any]] = []
        others: dict[str, list[str]] = {}
        for host, future in zip(hosts, asked, strict=True):
            try:
                found.append(future.result(0))
            except FutureTimeoutError:
                self._failures.append(f"{host} does not answer")
            except FailedError as error:
                why = error.reason.partition(" s: ")[2]  # the full message once
                if why and why in others:
                    others[why].append(host)
                else:
                    self._failures.append(error.reason)
                    others[why] = []
        self._failures += [f"{', '.join(hosts)}: the same" for hosts in others.values() if hosts]
        return found

    def _tell(self, first: int, each: int) -> None:
        """Report how many calls of how many the slowest rank has done. A rank that does not answer counts as slow."""
        if self._progress is None:
            return
        asked = [self._lab.hosts[host].ask("progress", group=self._party.name) for host in self._party.ranks]
        wait(asked, _LOOK_S)
        done = [future.result()["done"] for future in asked if future.done() and future.exception() is None]
        if len(done) == len(asked):
            self._progress(first + min(done) / each)

    def _counts(self) -> list[dict[str, Any]]:
        """The counters of the ranks, and of the NICs of their hosts."""
        found = []
        for host in self._party.ranks:
            counters = self._lab.hosts[host].call("counters")
            mine = counters["groups"].get(self._party.name, {})
            found.append(
                {"host": host}
                | {name: mine.get(name, 0) for name in COUNTERS}
                | {"trees": mine.get("trees", {})}
                | {name: counters[name] for name in ("faults", "refused", "undelivered", "kernel_drops")}
            )
        return found


def slow(switch: str) -> str:
    """The message for a user who waits while a switch is traced."""
    return f"{switch} is traced, packet by packet, which makes it many times slower: trace {switch} off ends it"


def _outcome(number: int, call: CallOrder, answers: Sequence[Answer]) -> CallOutcome:
    what = f"{call.collective} {number}"
    problems = [f"rank {rank}, {what}: {each.problem}" for rank, each in enumerate(answers) if each.problem]
    first, last = min(each.started for each in answers), max(each.finished for each in answers)
    if call.collective == Collective.BARRIER:
        begun = max(each.started for each in answers)
        problems += [
            f"rank {rank} left barrier {number} before all had reached it"
            for rank, each in enumerate(answers)
            if each.finished < begun
        ]
    return CallOutcome(call, last - first, max(each.begun for each in answers), tuple(problems), answers[0].ring)


def _grown(now: Mapping[str, int], then: Mapping[str, int]) -> dict[str, int]:
    """By how much counters by reason have grown, those that have."""
    return dict(Counter(now) - Counter(then))


def difference(now: Mapping[str, Any], then: Mapping[str, Any]) -> dict[str, Any]:
    """By how much counters have grown. Those that began again count as not grown."""
    found: dict[str, Any] = {}
    for name, value in now.items():
        if isinstance(value, dict):
            found[name] = _grown(value, then[name])
        else:
            found[name] = value if isinstance(value, str) else max(0, value - then[name])
    return found
