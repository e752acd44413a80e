"""What users ask of calls of all ranks: collectives, and options that only these have."""

from __future__ import annotations

from enum import StrEnum
from fractions import Fraction
from typing import Final

from p4gen.inputs import quote
from p4gen.net.runs import FamilyOption, yes_or_no
from p4gen.vocabulary import units

ALLGATHER, DISPATCH, MOE = "allgather", "dispatch", "moe"
_AUTO: Final = "auto"


class Choice(StrEnum):
    """How tokens choose their experts."""

    RANDOM = "random"
    """Each token any set of experts."""
    BALANCED = "balanced"
    """The same, but as many tokens for each expert as for any other, as far as their number allows it."""
    ONE = "one"
    """All tokens of all ranks the experts of the last rank."""
    ALL = "all"
    """Each token an expert of every rank."""
    NEXT = "next"
    """Each rank's tokens the experts of the next rank: no two ranks have a destination in common."""


class Relay(StrEnum):
    """Who relays a part of a rank's block."""

    NONE = "none"
    """Nobody: all goes straight."""
    PAIRED = "paired"
    """The switch of the rank with the same number in the other domain, its partner."""
    FULL = "full"
    """The switches of all ranks of the other domain, a part each."""
    HOST = "host"
    """The partner itself: it stores what it gets, and forwards it."""


class Adds(StrEnum):
    """Who adds the outputs of a token's experts."""

    SWITCHES = "switches"
    """Switches, on their way."""
    SOURCE = "source"
    """The token's source. Nothing is multicast either: everything goes by plain writes."""
    BOTH = "both"
    """Switches; and for comparison another run of the same layers where the source does."""


def _count(text: str) -> int:
    value = units.size(text)
    if not 1 <= value <= 1 << 20:
        raise ValueError(f"a number from 1 to {1 << 20:,}, not {quote(text)}")
    return value


OPTIONS: Final = {
    "tokens": FamilyOption("dispatch, moe: tokens of each rank", "64", _count),
    "hidden": FamilyOption("dispatch, moe: bytes of a token, such as 7168", "1K", _count),
    "experts": FamilyOption("dispatch, moe: experts of all ranks together, the same number each", "64", _count),
    "top": FamilyOption("dispatch, moe: experts that each token goes to", "8", _count),
    "choice": FamilyOption("dispatch, moe: how tokens choose their experts", "random", Choice, tuple(map(str, Choice))),
}


def _split(text: str) -> Fraction | None:
    """The share that goes straight; None: such that all ways end together."""
    return None if text == _AUTO else Fraction(units.share(text)).limit_denominator(1 << 16)


RUN_OPTIONS: Final = OPTIONS | {
    "domains": FamilyOption(
        "allgather: all ranks together, or in two domains of as many ranks, as relays need", "1", int, ("1", "2")
    ),
    "relay": FamilyOption(
        "allgather: who relays for a rank in the other domain: switches of one rank or of all, or a host",
        "none", Relay, tuple(map(str, Relay)),
    ),
    "relay_rate": FamilyOption("allgather: what a relaying host forwards in a second, bits", "192G", units.bandwidth),
    "split": FamilyOption(
        "allgather: the share that is not relayed, such as 50%; auto: so that on a full mesh all ways end together",
        _AUTO, _split,
    ),
    "adds": FamilyOption(
        "moe: who adds outputs of a token's experts: switches; its source, and all goes by plain writes; or both, in "
        "two runs that are compared",
        "switches", Adds, tuple(map(str, Adds)),
    ),
    "unicast": yes_or_no("allgather: whether each packet is written to each rank by itself", "no"),
}  # fmt: skip
