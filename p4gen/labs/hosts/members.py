"""A host's ranks of groups whose switches address their memory. The lab asks for all of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import numpy as np

from p4gen.errors import FailedError
from p4gen.host.transport.nic import Nic
from p4gen.labs.hosts.requests import Request, Verb
from p4gen.labs.runs.membercalls import CheckedRank, MemberCall, members_of
from p4gen.manager.ranks.calls import CallResult
from p4gen.manager.ranks.host import Host
from p4gen.records import from_plain, to_plain
from p4gen.vocabulary import ProgramSpec


class MemoryRanks:
    """The ranks by group, in ``host``; their memory is offered before the manager creates the group."""

    def __init__(self, spec: ProgramSpec, host: Host) -> None:
        self._spec, self._host = spec, host
        self._ranks: dict[str, int] = {}
        """The number of ranks of groups."""
        self._drawn: dict[str, tuple[MemberCall, Any]] = {}
        self._waiting: dict[str, Future[CallResult]] = {}

    @property
    def verbs(self) -> dict[str, Verb]:
        """The requests that the lab may send."""
        return {"offer": self.offer, "withdraw": self.withdraw, "prepare": self.prepare, "begin": self.begin}

    def offer(self, request: Request) -> dict[str, Any]:
        """Offer memory to a group that is to be. Returns where it is."""
        rank, size, packets = (int(request[name]) for name in ("rank", "size", "packets"))
        family = members_of(self._spec)

        def make(nic: Nic, changed: Callable[[], None]) -> CheckedRank:
            return family.rank(self._spec, rank, size, packets, nic, changed)

        member = self._host.offer(request["name"], make, float(request["timeout"]))
        self._ranks[request["name"]] = size
        memory: dict[str, Any] = to_plain(member.memory)
        return memory

    def withdraw(self, request: Request) -> dict[str, Any]:
        """Take it back, because the group was not created."""
        self._host.withdraw(request["name"])
        return {}

    def prepare(self, request: Request) -> dict[str, Any]:
        """Draw the data of a call, all ranks' from the same seed."""
        call, name = from_plain(MemberCall, request["call"]), request["name"]
        chance = np.random.default_rng([request["seed"], request["number"]])
        self._drawn[name] = call, call.plan(self._spec, self._ranks[name]).draw(chance)
        return {}

    def begin(self, request: Request) -> dict[str, Any]:
        """Make the prepared call, and compare its result, and all of the memory, with what NumPy gives. Times are in
        ps."""
        name, deadline = request["name"], float(request["deadline"])
        call, drawn = self._drawn.pop(name)

        def start(rank: CheckedRank) -> None:
            rank.make(drawn)

        def finish(rank: CheckedRank) -> str:
            return rank.problem(drawn)

        future = self._host.memory_member(name).begin(start, finish, call.size, deadline)
        self._waiting[name] = future
        try:
            done = future.result()
        except FailedError as error:
            raise FailedError(f"{call.collective}: {error.reason}") from None
        return {"started": done.started, "finished": done.finished, "begun": done.begun, "problem": done.value}

    def progress(self) -> float:
        """The part of the current call that is done."""
        found = []
        for name in [name for name, future in list(self._waiting.items()) if not future.done()]:
            with contextlib.suppress(FailedError):  # the group has just been destroyed
                found.append(self._host.memory_member(name).progress())
        return min(found, default=0.0)
