"""Runs collectives of a lab's groups whose ranks offer their memory."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from p4gen.labs.runs.calls import RunOutcome, give_up
from p4gen.labs.runs.membercalls import MemberCall, members_of
from p4gen.labs.runs.peerruns import PeerRun, Tell, over
from p4gen.labs.session import Lab
from p4gen.manager.api import GroupStatus


def run_calls(lab: Lab, group: GroupStatus, calls: Sequence[MemberCall], seed: int, tell: Tell | None) -> RunOutcome:
    """Make calls of a group, one after the other. After a failure the group is destroyed."""
    lab.groups.join(group)

    def end() -> str:
        return give_up(lab, group.spec.name)

    return over(lab, group.spec, calls, end, seed=seed, deadline=lab.job.wanted.deadline, progress=tell)


class MemberCalls:
    """The family's collectives (``p4gen.labs.runs.suite.Calls``)."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab

    def all(self, group: GroupStatus, size: int) -> list[Any]:
        """See ``Calls``."""
        return self._samples(len(group.spec.ranks), size)

    def packets(self, ranks: int, size: int) -> int:
        """See ``Calls``."""
        return max(call.plan(self._lab.job.spec, ranks).packets for call in self._samples(ranks, size))

    def begin(self, group: GroupStatus, calls: list[Any], seed: int) -> PeerRun:
        """See ``Calls``."""
        return PeerRun(partial(run_calls, self._lab, group, calls, seed, None))

    def _samples(self, ranks: int, size: int) -> list[MemberCall]:
        spec = self._lab.job.spec
        return [MemberCall.of(spec, ranks, *asked) for asked in members_of(spec).samples(spec, ranks, size)]
