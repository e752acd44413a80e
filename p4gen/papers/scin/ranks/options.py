"""What users ask of calls of all ranks: the options that only these have."""

from __future__ import annotations

from typing import Final

from p4gen.host.transport.clock import MS
from p4gen.host.transport.verbs import Resumption
from p4gen.inputs import quote
from p4gen.net.runs import FamilyOption, yes_or_no
from p4gen.vocabulary import units

MOST_RANKS: Final = 32
CALL: Final = "call"
"""What any two masks make, beside the collectives that have a name."""
QUANTISE: Final = "quantise"
ALTERNATE: Final = "alternate"
_LATEST: Final = 10 * MS
"""Much less than the time without progress after which a run is given up."""
_ALL: Final = "all"


def _ranks(text: str) -> int | None:
    """Ranks as a bitmap; None for all."""
    if text == _ALL:
        return None
    mask = 0
    for each in text.split(","):
        if not (each.strip().isdecimal() and int(each) < MOST_RANKS):
            raise ValueError(f"ranks such as 0,3, or all, not {quote(text)}")
        mask |= 1 << int(each)
    return mask


def _late(text: str) -> int:
    value = units.duration(text)
    if value > _LATEST:
        raise ValueError(f"ranks may be 10ms late at most, not {quote(text)}")
    return value


OPTIONS: Final = {
    "sources": FamilyOption("call: ranks whose operands are read, such as 0,3", _ALL, _ranks),
    "destinations": FamilyOption("call: ranks that get the result", _ALL, _ranks),
    "in_place": yes_or_no("whether results go where operands are", "yes"),
    QUANTISE: FamilyOption(
        "of a program whose calls may be exact: whether a call is quantised, or every other one, from the first on",
        "yes",
        str,
        ("yes", "no", ALTERNATE),
    ),
    "late": FamilyOption("the longest that a rank waits before it arrives at a call; each time is drawn", "0", _late),
    "resumption": FamilyOption(
        "how NICs answer a READ again: any part, or as Linux rxe, which narrows it",
        str(Resumption.STRICT),
        Resumption,
        tuple(map(str, Resumption)),
    ),
}
