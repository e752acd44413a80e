"""Calls of a lab's hosts that are about to be made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from p4gen.labs.calls import CallOrder
from p4gen.labs.job import Wanted
from p4gen.labs.parties import Party
from p4gen.labs.runs.run import Progress, Run
from p4gen.labs.session import Lab
from p4gen.manager.api import GroupStatus


@dataclass(frozen=True)
class Ready:
    """Calls that have been checked, and can begin."""

    lab: Lab
    wanted: Wanted
    call: CallOrder
    title: str
    """The call, as in "allreduce of 64K, 4 ranks"."""
    party: Party

    def begin(self, progress: Progress) -> Run:
        """Begin the calls, ``wanted.repeat`` of them. ``progress`` is called as they end."""
        wanted, calls = self.wanted, [self.call] * self.wanted.repeat
        return Run(self.lab, self.party, calls, seed=wanted.seed, deadline=wanted.deadline, progress=progress)


def ready(lab: Lab, wanted: Wanted, hosts: Sequence[str], named: GroupStatus | None = None) -> Ready:
    """The calls of these hosts; in a group that is ``named``, or where they call together. Raises ``P4genError`` with
    the reason why they cannot be made; then nothing is created."""
    lab.check_hosts(hosts)
    lab.parties.check_run()
    call = CallOrder.wanted(lab.job.spec, wanted, len(hosts))
    title = call.plan(lab.job.spec, len(hosts)).title
    return Ready(lab, wanted, call, title, lab.parties.of(hosts, call, named))
