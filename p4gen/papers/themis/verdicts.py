"""The verdicts on NACKs, as programs count them (``verdict_t``): docs/themis.md says what each means."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final


class Verdict(IntEnum):
    """``verdict_t``: indices of a connection's counters."""

    UNDECIDED = 0
    NO_EVIDENCE = 1
    LAST_HOP = 2
    LOST = 3
    LATE = 4
    UNKNOWN = 5
    ARRIVED = 6
    OVERTAKEN = 7
    DISARMED = 8
    COMPENSATED = 9


VERDICT_COUNTER: Final = "IncIngress.blocked_nack.verdicts"
VERDICTS: Final = 16
"""Counters of each connection."""
PASSED: Final = (Verdict.NO_EVIDENCE, Verdict.LAST_HOP, Verdict.LOST, Verdict.OVERTAKEN)
BLOCKED: Final = (Verdict.LATE, Verdict.UNKNOWN, Verdict.ARRIVED)
TALLIES: Final[Mapping[str, tuple[Verdict, ...]]] = {
    "NACKs": (*PASSED, *BLOCKED),
    **{f"passed: {verdict.name.lower().replace('_', ' ')}": (verdict,) for verdict in PASSED},
    "blocked": BLOCKED,
    "armed": (Verdict.UNKNOWN,),
    "disarmed": (Verdict.DISARMED,),
    "compensated": (Verdict.COMPENSATED,),
    "more passes": (Verdict.UNDECIDED,),
}
"""What is shown of a connection at the switch of its responder."""
