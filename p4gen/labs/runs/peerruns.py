"""Runs collectives over connections of a lab's hosts, and collects the results.

Unlike calls of a group (``calls``) they are begun one by one, when all hosts have drawn their data.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final, Protocol

from p4gen.errors import FailedError, P4genError
from p4gen.labs.connections import PeerGroup
from p4gen.labs.runs.calls import CallOutcome, RunOutcome, counts_of, difference, grown, left_too_soon, room, slow
from p4gen.labs.runs.membercalls import MemberCall
from p4gen.labs.runs.peercalls import PeerCall
from p4gen.labs.session import Lab
from p4gen.records import to_plain
from p4gen.vocabulary.message import Collective

_LOOK_S: Final = 0.2
_ANSWER_S: Final = 10.0
Tell = Callable[[float, int], None]


class HostGroup(Protocol):
    """Hosts that make calls together."""

    @property
    def name(self) -> str:
        """What hosts know it by."""
        ...

    @property
    def ranks(self) -> tuple[str, ...]:
        """The hosts, in order of rank."""
        ...


def run(
    lab: Lab,
    group: PeerGroup,
    calls: Sequence[PeerCall],
    *,
    seed: int,
    deadline: float = 60.0,
    progress: Tell | None = None,
) -> RunOutcome:
    """Make calls one after the other. ``deadline`` is that of each call, in seconds; for ``progress`` see
    ``calls.run``.

    Raises ``InputError`` for calls that the group cannot make. After a failure or Ctrl-C the group is closed.
    """
    for call in set(calls):
        call.check(len(group.ranks))
        room(call.collective, call.size, len(group.ranks))

    def end() -> str:
        return _give_up(lab, group)

    return over(lab, group, calls, end, seed=seed, deadline=deadline, progress=progress)


def over(
    lab: Lab,
    group: HostGroup,
    calls: Sequence[PeerCall | MemberCall],
    give_up: Callable[[], str],
    *,
    seed: int,
    deadline: float,
    progress: Tell | None,
) -> RunOutcome:
    """Make calls of any hosts that do so one by one. After a failure or Ctrl-C ``give_up`` ends what they have in
    common, and says so."""
    traced, before, drops = lab.traced(), counts_of(lab, group.name, group.ranks), lab.switch_drops()
    outcomes: list[CallOutcome] = []
    failures: list[str] = []
    try:
        for number, call in enumerate(calls):
            outcomes.append(_one(lab, group, call, seed, number, deadline, _teller(progress, number, len(calls))))
            if outcomes[-1].problems:
                break
    except KeyboardInterrupt:
        give_up()
        raise
    except FailedError as error:
        failures = [diagnostic.message for diagnostic in error.diagnostics]
        failures += [slow(switch) for switch in {*traced, *lab.traced()}]
    after = counts_of(lab, group.name, group.ranks)
    if failures:
        failures.append(give_up())
    ranks = tuple(difference(now, then) for now, then in zip(after, before, strict=True))
    changed = {switch: grown(counts, drops.get(switch, {})) for switch, counts in lab.switch_drops().items()}
    return RunOutcome(group.name, tuple(outcomes), ranks, changed, tuple(failures), tuple(traced))


class PeerRun:
    """A run in the background."""

    def __init__(self, make: Callable[[], RunOutcome]) -> None:
        self._pool = ThreadPoolExecutor(1)
        self._done = self._pool.submit(make)

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self._done.done()

    def result(self) -> RunOutcome:
        """Wait for its end."""
        try:
            return self._done.result()
        finally:
            self._pool.shutdown(wait=False)


def _one(
    lab: Lab,
    group: HostGroup,
    call: PeerCall | MemberCall,
    seed: int,
    number: int,
    deadline: float,
    tell: Callable[[float], None],
) -> CallOutcome:
    _answers(lab, group, "prepare", deadline, call=to_plain(call), seed=seed, number=number)
    answers = _answers(lab, group, "begin", deadline, tell=tell, deadline=deadline)
    what = f"{call.collective} {number}"
    problems = [f"rank {rank}, {what}: {a['problem']}" for rank, a in enumerate(answers) if a["problem"]]
    if call.collective == Collective.BARRIER:
        problems += left_too_soon(number, answers)
    first, last = min(a["started"] for a in answers), max(a["finished"] for a in answers)
    return CallOutcome(call, last - first, max(a.get("begun", 1) for a in answers), tuple(problems))


def _answers(
    lab: Lab, group: HostGroup, do: str, patience: float, *, tell: Callable[[float], None] | None = None, **fields: Any
) -> list[dict[str, Any]]:
    """Every host's answer. Raises ``FailedError`` when one fails, or cannot come any more."""
    asked = [lab.hosts[host].ask(do, name=group.name, **fields) for host in group.ranks]
    until = time.monotonic() + patience + _ANSWER_S
    while wait(asked, _LOOK_S).not_done and time.monotonic() < until:
        lab.check_running(group.ranks)
        if tell is not None:
            _tell(lab, group, tell)
    found, failed = [], []
    for host, future in zip(group.ranks, asked, strict=True):
        try:
            found.append(future.result(0))
        except FutureTimeoutError:
            failed.append(f"{host} does not answer")
        except FailedError as error:
            failed.append(error.reason)
    if failed:
        raise FailedError(*failed)
    return found


def _tell(lab: Lab, group: HostGroup, tell: Callable[[float], None]) -> None:
    asked: list[Future[dict[str, Any]]] = [lab.hosts[host].ask("progress") for host in group.ranks]
    wait(asked, _LOOK_S)
    done = [future.result()["done"] for future in asked if future.done() and future.exception() is None]
    if len(done) == len(asked):
        tell(min(done))


def _teller(progress: Tell | None, number: int, total: int) -> Callable[[float], None]:
    return lambda part: progress(number + part, total) if progress is not None else None


def _give_up(lab: Lab, group: PeerGroup) -> str:
    """Close the group, because its ranks are no longer in step. Returns a message about it."""
    try:
        lab.connections.close(group)
    except P4genError as error:
        return f"the connections of {group.name} cannot be used any more, and are not all released: {error.reason}"
    return f"the connections of {group.name} are closed: their ends are out of step; the next run creates new ones"
