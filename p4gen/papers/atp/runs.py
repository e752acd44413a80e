"""Runs of ATP for ``p4gen sim run``: AllReduce with a parameter server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4gen.inputs import quote
from p4gen.net.runs import FamilyOption, Runs
from p4gen.papers.atp.spec import WINDOW, AtpSpec
from p4gen.vocabulary import units
from p4gen.vocabulary.message import Collective

if TYPE_CHECKING:
    from p4gen.net.order import RunOrder
    from p4gen.papers.atp.running import AtpRun


def _job(order: RunOrder[AtpSpec]) -> AtpRun:
    from p4gen.papers.atp.running import AtpRun  # noqa: PLC0415 - options are read without it

    return AtpRun(order)


def _packets(text: str) -> int:
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= WINDOW:
        raise ValueError(f"a number from 1 to {WINDOW}, not {quote(text)}")
    return value


OPTIONS = {
    "in_flight": FamilyOption("the most packets that a worker has on the way", str(WINDOW), _packets),
    "large": FamilyOption("share of packets whose sums do not fit into int32, such as 1%", "0%", units.share),
}
FACET: Runs[AtpSpec] = Runs((str(Collective.ALLREDUCE),), _job, OPTIONS, frozenset({"concurrent"}))
