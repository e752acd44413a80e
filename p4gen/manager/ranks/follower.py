"""The part of a rank that follows the manager's news: it joins each generation of its group, and leaves it.

The manager may place a group again at any time (a *generation*). A rank then creates new queue pairs, reports to the
manager how many calls it has completed, and gets the least number of all ranks: from that call on everything is
repeated, with the inputs that were kept. A rank that has completed such a call has its result; the others need its
contribution.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Final

from p4gen.errors import FailedError, P4genError
from p4gen.host.transport.clock import MS, SECOND
from p4gen.host.transport.realtime import Station
from p4gen.manager.api import Code, GroupState, HostManager, ManagerError, Membership, RankConfig, RankReport

KEPT: Final = 8
"""Number of completed calls whose inputs a rank keeps; no rank is further ahead of another."""
REPORT_EVERY: Final = SECOND // 2
_RETRY_S: Final = 0.5
_RETRY: Final = 100 * MS
_NOT_OURS: Final = frozenset({"not_udp_over_ipv4", "not_udp_over_ipv6", "not_rocev2", "truncated"})
"""Reasons of frames that the NIC refuses because they belong to the kernel."""


class Follower(ABC):
    """A rank of a group. Everything but ``report`` and ``rank`` happens on the loop."""

    def __init__(self, group: str, nic: Station, manager: HostManager, submit: Callable[[RankReport], None]) -> None:
        self.group = group
        self.state = GroupState.INSTALLING
        self.reason = ""
        """The manager's reason why the group is broken."""
        self.generation = 0
        """The generation of the newest queue pairs; 0 before there are any."""
        self.completed = 0
        """Number of calls that this rank has completed."""
        self._nic, self._loop, self._manager, self._submit = nic, nic.loop, manager, submit
        self._wanted: RankConfig | None = None
        self._last: RankConfig | None = None
        """The newest configuration of an active generation."""
        self._joined: RankConfig | None = None
        """The configuration of the generation whose queue pairs exist."""
        self._running = False
        """Whether all ranks are ready, so that calls are made."""
        self._ended = ""
        """Why no more calls are possible; "" while they are."""
        self._failed = ""
        """Why calls fail until the group has other ranks; "" while they do not."""
        self._accepted = 1
        self._term = 1
        """The set of ranks whose calls ``completed`` counts."""
        self._earlier = 0
        """Number of calls that were completed in earlier terms, and that ``completed`` no longer counts."""
        self._at_end: list[Callable[[str], None]] = []
        self._past: Counter[str] = Counter()
        """Counters of queue pairs that were destroyed."""
        self._data_bytes = 0
        self._reported: RankReport | None = None
        self._report_set = False

    @property
    def rank(self) -> int | None:
        """This host's rank; None before the group was active."""
        return None if self._last is None else self._last.rank

    @property
    def size(self) -> int | None:
        """The number of ranks; None before the group was active."""
        return None if self._last is None else self._last.size

    @property
    def term(self) -> int:
        """The number of the newest set of ranks of which this rank is one (``GroupSpec.term``)."""
        return 1 if self._last is None else self._last.term

    @property
    def accepted(self) -> int:
        """The term that calls are made for. While ``term`` is a newer one, calls fail."""
        return self._accepted

    def accept(self, term: int) -> None:
        """Make calls from now on for the newest term, if ``term`` is its number. Call it on the loop."""
        if term == self.term:
            self._accepted = term
            if self.state is not GroupState.FAILED:
                self._failed = ""

    @property
    def ended(self) -> str:
        """Why no more calls are possible; "" while they are."""
        return self._ended

    def add_end(self, action: Callable[[str], None]) -> None:
        """Call ``action`` on the loop, with the reason, when the rank ends, or at once if it has. Call it on the
        loop."""
        if self._ended:
            action(self._ended)
        else:
            self._at_end.append(action)

    @abstractmethod
    def progress(self) -> float:
        """The fraction of the running call that is done, from 0 to 1. May be called from any thread."""

    # --- what each kind of ranks does ---

    @abstractmethod
    def _unfit(self, config: RankConfig) -> str:
        """Why this kind of rank cannot join a group; "" if it can."""

    @abstractmethod
    def _create(self, config: RankConfig) -> None:
        """Create the queue pairs of a generation."""

    @abstractmethod
    def _destroy(self) -> None:
        """Destroy the queue pairs. Calls under way are made again in the next generation."""

    @abstractmethod
    def _go_on(self, again: int) -> None:
        """All ranks are ready: repeat the last ``again`` completed calls, and make those that wait."""

    @abstractmethod
    def _fail_waiting(self, reason: str) -> None:
        """Fail all calls that are not completed, and forget them and the kept inputs."""

    @abstractmethod
    def _counts(self) -> Counter[str]:
        """The counters of the current generation (``Collectives.counts``)."""

    @abstractmethod
    def _waits(self) -> bool:
        """Whether some calls are not completed."""

    # --- generations ---

    offered: bool = False
    """Whether this host has offered memory to the group, before there was one."""

    def continues(self, news: Membership) -> bool:
        """Whether a membership belongs to the same group, not to another one of the same name."""
        last, config = self._last, news.config
        return last is None or config is None or config == last or config.generation > last.generation

    def follow(self, news: Membership) -> None:
        """Handle a change of the group's membership."""
        self.state, self.reason = news.state, news.reason
        if news.gone:
            self.end(f"group {self.group} was destroyed" + (f": {news.reason}" if news.reason else ""))
        elif news.config is not None and (problem := self._unfit(news.config)):
            self.end(problem)
        elif news.state is GroupState.ACTIVE and news.config is not None:
            if self._last is None:
                self._accepted = news.config.term
            elif news.config.term != self._last.term and not self._failed:
                self._suspend("the group has other ranks")
            self._wanted = self._last = news.config
            if self._joined is None or news.config.generation != self.generation:
                self._leave()
                self._join(news.config)
        elif news.state is GroupState.FAILED:
            self._suspend(news.reason)
        elif news.state in (GroupState.BROKEN, GroupState.REMOVING):
            self._wanted = None
            self._leave()

    def _suspend(self, reason: str) -> None:
        """Fail all calls, until the group has other ranks."""
        self._failed, self._wanted = reason, None
        self._leave()
        self._fail_waiting(reason)

    def end(self, reason: str) -> None:
        """End the rank: waiting calls fail, and so do later ones."""
        if self._ended:
            return
        self._ended = reason
        self._suspend(reason)
        for action in self._at_end:
            action(reason)

    def _join(self, config: RankConfig) -> None:
        if config is not self._wanted:
            return
        self.generation = config.generation
        nic, numbers = self._nic.nic, set(config.qps)
        if not config.spec.icrc.right:
            nic.checks_icrc = False
        if not numbers.isdisjoint(nic.pairs):
            # Also for a group that is being destroyed, of which the manager has not notified this rank yet.
            self._loop.at(self._loop.now + _RETRY, self._join, config)
            return
        try:
            self._create(config)
        except P4genError as error:  # the NIC cannot connect, or cannot do what the group needs
            for number in numbers & nic.pairs.keys():
                nic.destroy_pair(nic.pairs[number])
            self.end(str(error))
            return
        self._joined = config
        arguments = config, self.completed
        threading.Thread(target=self._get_ready, args=arguments, name=f"{self.group} ready", daemon=True).start()

    def _get_ready(self, config: RankConfig, completed: int) -> None:
        """Wait for the other ranks, on a separate thread."""
        pause = threading.Event()
        while config is self._joined:
            try:
                first = self._manager.ready(config.group, config.generation, config.rank, completed)
                self._loop.call_soon_threadsafe(self._begin, (config, first))
                return
            except ManagerError as error:
                if error.code in (Code.REFUSED, Code.NOT_FOUND):
                    return  # this generation is over; another membership will arrive
                pause.wait(_RETRY_S)
            except FailedError:
                return  # the loop has ended

    def _begin(self, ready: tuple[RankConfig, int]) -> None:
        config, first = ready
        if config is not self._joined:
            return
        if config.term != self._term:  # all ranks count on from the same number, which is that of the newest one
            self._earlier += self.completed - first
            self._term, self.completed = config.term, first
        self._running = True
        self._go_on(self.completed - first)
        self._watch_counters()

    def _leave(self) -> None:
        self._running = False
        if self._joined is not None:
            self._past += self._counts()
            self._joined = None
            self._destroy()

    def _why(self) -> str:
        """Why calls do not end: the state of the group, or other ranks."""
        if self.state is GroupState.BROKEN:
            return f"the group is broken: {self.reason}" if self.reason else "the group is broken"
        if self._joined is None:
            return "the group is not active"
        if not self._running:
            return f"not all ranks have joined generation {self.generation}"
        return "other ranks have not called it, or packets are lost"

    # --- counters ---

    def report(self) -> RankReport:
        """The counters of this rank and of its host's NIC. May be called from any thread."""
        counts = Counter(self._past)
        if self._joined is not None:
            counts += self._counts()
        dropped = {reason: count for reason, count in self._nic.nic.dropped.items() if reason not in _NOT_OURS}
        return RankReport(
            self.group, self.rank or 0, self._earlier + self.completed, self._data_bytes, **counts, dropped=dropped
        )

    def _watch_counters(self) -> None:
        if not self._report_set:
            self._report_set = True
            self._loop.at(self._loop.now + REPORT_EVERY, self._report)

    def _report(self, _: object) -> None:
        self._report_set = False
        report = self.report()
        if self._last is not None and not self._ended and (self._waits() or report != self._reported):
            self._reported = report
            self._submit(report)
            self._watch_counters()
