"""A host that is controlled by a manager: it follows the state of its groups, and is a ``Member`` of each.

Of a group whose switches address the ranks' memory it is a ``MemoryMember``: the memory is offered first.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from p4gen.errors import FailedError
from p4gen.groups.group import Memory
from p4gen.groups.ranks import ACK_EVERY
from p4gen.host.transport.nicinfo import OUR_NIC, NicInfo
from p4gen.host.transport.realtime import Station
from p4gen.manager.api import Code, HostInfo, HostManager, ManagerError, Membership, RankReport
from p4gen.manager.ranks.follower import Follower
from p4gen.manager.ranks.member import Member
from p4gen.manager.ranks.memory import Make, MemoryMember
from p4gen.manager.ranks.ranks import TIMEOUT

__all__ = ["Host", "Member"]

_RETRY_S: Final = 1.0
F = TypeVar("F", bound=Follower)


class Host:
    """The groups of the host ``name``, on its NIC. Register the host first: the manager's answer has its addresses.

    ``timeout_ps`` is the retransmission timer of queue pairs; ``out_of_order`` and ``info`` are what the manager is
    told of the NIC (``HostInfo``). The caller keeps the loop and the objects of which the NIC is made.
    """

    def __init__(
        self,
        manager: HostManager,
        name: str,
        nic: Station,
        *,
        timeout_ps: int = TIMEOUT,
        ack_every: int = ACK_EVERY,
        out_of_order: bool = False,
        info: NicInfo = OUR_NIC,
    ) -> None:
        self.name = name
        self._info = HostInfo(name, out_of_order, info)
        self._manager, self._nic, self._loop = manager, nic, nic.loop
        self._timeout_ps, self._ack_every = timeout_ps, ack_every
        self._members: dict[str, Follower] = {}
        self._changed = threading.Condition()
        self._closed = threading.Event()
        self._watching: Iterator[Membership] | None = None
        self._reports: queue.SimpleQueue[RankReport | None] = queue.SimpleQueue()
        self._loop.add_stop(self._loop_ended)
        for work in (self._watch, self._send_reports):
            threading.Thread(target=work, name=f"{name} {work.__name__}", daemon=True).start()

    def __enter__(self) -> Host:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def member(self, group: str, timeout: float = 10.0) -> Member:
        """This host's rank of a group, once the manager has announced it. Raises ``FailedError`` when it does not
        within ``timeout`` seconds."""
        found = self.follower(group, timeout)
        if not isinstance(found, Member):
            raise FailedError(f"the ranks of group {group} have offered their memory, and make other calls")
        return found

    def memory_member(self, group: str) -> MemoryMember:
        """This host's rank of a group to which it has offered memory. Raises ``FailedError`` for a group of another
        kind."""
        found = self.follower(group, 0)
        if not isinstance(found, MemoryMember):
            raise FailedError(f"{self.name} has offered no memory to group {group}")
        return found

    def follower(self, group: str, timeout: float = 10.0) -> Follower:
        """This host's rank of a group of any kind. Raises as ``member`` does."""
        with self._changed:
            if not self._changed.wait_for(lambda: group in self._members, timeout):
                known = ", ".join(sorted(self._members)) or "none"
                raise FailedError(f"{self.name} is not in group {group} (it is in: {known})")
            return self._members[group]

    def offer(self, group: str, make: Make, timeout: float = 10.0) -> MemoryMember:
        """Become a rank of a group whose switches address the ranks' memory, before the manager creates it. InitGroup
        needs the rank's ``memory``. If the group is not created, ``withdraw`` the memory.

        Waits until this host has left an earlier group of this name; raises ``FailedError`` when it does not within
        ``timeout`` seconds.
        """

        def create() -> MemoryMember:
            return MemoryMember(group, self._nic, self._manager, self._reports.put, make, self._timeout_ps)

        return self._enter(group, create, timeout)

    def _enter(self, group: str, create: Callable[[], F], timeout: float) -> F:
        with self._changed:
            if not self._changed.wait_for(lambda: group not in self._members, timeout):
                raise FailedError(f"{self.name} is still in a group {group}")

        def enter() -> F:
            member = create()
            with self._changed:
                self._members[group] = member
                self._changed.notify_all()
            return member

        return self._loop.run_there(enter)

    def withdraw(self, group: str) -> None:
        """Take back the memory that was offered to a group which was not created."""

        def end() -> None:
            member = self._members.get(group)
            if member is not None and member.offered and not member.generation:
                member.end(f"{self.name} has withdrawn its memory")
                with self._changed:
                    del self._members[group]
                    self._changed.notify_all()

        self._loop.run_there(end)

    def members(self) -> dict[str, Follower]:
        """All groups that the host is in, by name."""
        with self._changed:
            return dict(self._members)

    def close(self) -> None:
        """Leave all groups. Pending calls fail."""
        if not self._closed.is_set():
            self._closed.set()
            self._reports.put(None)
            close = getattr(self._watching, "close", None)  # a running generator cannot be closed
            if close is not None:
                with contextlib.suppress(ValueError):
                    close()
            with contextlib.suppress(FailedError):  # the loop has ended, and so have the members
                self._loop.call_soon_threadsafe(self._end, f"{self.name} has left")

    # --- on the loop ---

    def _follow(self, news: Membership) -> None:
        if self._closed.is_set():
            return
        member = self._members.get(news.group)
        if member is not None and not member.continues(news):
            member.end(f"group {news.group} was destroyed")  # and created again, while the manager was away
            member = None
        if member is None and not news.gone:
            member = self._member(news.group)
        if member is not None:
            member.follow(news)
            with self._changed:
                if news.gone:
                    del self._members[news.group]
                else:
                    self._members[news.group] = member
                self._changed.notify_all()
            if news.offer and isinstance(member, Member):
                arguments = news.group, member, member.offer(news.offer)
                threading.Thread(target=self._offer, args=arguments, name=f"{self.name} offer", daemon=True).start()

    def _member(self, group: str) -> Member:
        return Member(
            group,
            self._nic,
            self._manager,
            self._reports.put,
            timeout_ps=self._timeout_ps,
            ack_every=self._ack_every,
        )

    def _report_gone(self, member: Follower) -> None:
        if self._members.get(member.group) is member:
            self._follow(Membership(member.group, member.state, member.generation, gone=True))

    def _end(self, reason: str) -> None:
        for member in self._members.values():
            member.end(reason)

    def _loop_ended(self) -> None:
        problem = self._loop.problem
        self._end("the host's loop has ended" + (f": {problem!r}" if problem is not None else ""))

    # --- threads that wait for the manager ---

    def _watch(self) -> None:
        while not self._closed.is_set():
            try:
                self._watching = self._manager.watch(self.name)
                for news in self._watching:
                    if self._closed.is_set():
                        return
                    self._loop.call_soon_threadsafe(self._follow, news)
            except ManagerError:
                pass  # the manager has ended and may come back; groups continue meanwhile
            except FailedError:
                return  # the loop has ended
            if self._closed.wait(_RETRY_S):
                return
            with contextlib.suppress(FailedError):
                self._manager.register_host(self._info)
                for group, member in self.members().items():
                    self._ask(group, member)

    def _offer(self, group: str, member: Follower, memory: Memory) -> None:
        """Tell the manager of memory that it has asked for, as soon as it answers."""
        while not self._closed.is_set() and self.members().get(group) is member:
            try:
                self._manager.offer_memory(group, self.name, memory)
                return
            except ManagerError as error:
                if error.code is not Code.UNREACHABLE:
                    return  # it waits no longer
            self._closed.wait(_RETRY_S)

    def _ask(self, group: str, member: Follower) -> None:
        """End a group that was destroyed, or got other ranks, while the manager was not reachable."""
        try:
            gone = self.name not in self._manager.group(group).spec.ranks
        except ManagerError as error:
            gone = error.code is Code.NOT_FOUND
        if gone:
            self._loop.call_soon_threadsafe(self._report_gone, member)

    def _send_reports(self) -> None:
        while (report := self._reports.get()) is not None:
            newest = {report.group: report}
            with contextlib.suppress(queue.Empty):
                while (more := self._reports.get_nowait()) is not None:
                    newest[more.group] = more
            if self._closed.is_set():
                return
            for group, each in newest.items():
                member = self.members().get(group)
                try:
                    self._manager.report_rank(each)
                except ManagerError as error:
                    if error.code is Code.NOT_FOUND and member is not None:
                        with contextlib.suppress(FailedError):
                            self._ask(group, member)
