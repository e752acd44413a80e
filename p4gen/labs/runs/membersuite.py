"""What the suite of a lab runs in a group whose ranks offer their memory."""

from __future__ import annotations

from functools import partial
from typing import Any

from p4gen.labs.prompt.membercommands import run_calls
from p4gen.labs.runs.membercalls import MemberCall, members_of
from p4gen.labs.runs.peerruns import PeerRun
from p4gen.labs.session import Lab
from p4gen.manager.api import GroupStatus


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
