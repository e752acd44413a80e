"""Calls of one size whose time is measured, after others that warm up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from p4gen.labs.calls import CallOrder
from p4gen.labs.runs.run import Run, RunOutcome
from p4gen.labs.session import Lab

_WARM_UP: Final = 2
"""Calls of each size that are made before those whose time counts."""
_LONG: Final = 64 << 20
"""Bytes of a call that needs none before it."""
_AHEAD: Final = 32 << 20
"""Bytes of data that are drawn before the calls, if ranks look only at the results that calls return."""


def warm_up(size: int) -> int:
    """How many calls of a size are made before those whose time counts."""
    return _WARM_UP if size < _LONG else 0


def timed(lab: Lab, call: CallOrder, hosts: Sequence[str], calls: int) -> Iterator[RunOutcome]:
    """What has become of the calls to warm up, and if all of them were right, of the ``calls`` to measure."""
    wanted = lab.job.wanted
    group = lab.parties.of(hosts, call)
    ahead = 0 if lab.job.spec.uses_memory else wanted.ahead(_AHEAD)
    for seed, number in ((wanted.seed, warm_up(call.size)), (wanted.seed + 1, calls)):
        outcome = Run(lab, group, [call] * number, seed=seed, deadline=wanted.deadline, ahead=ahead).result()
        yield outcome
        if not outcome.ok:
            return
