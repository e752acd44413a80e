"""Runs of SCIN for ``p4gen sim run``: collectives that a star's switch starts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4gen.net.runs import Runs
from p4gen.papers.scin.ranks.options import CALL, OPTIONS
from p4gen.papers.scin.spec import ScinSpec
from p4gen.vocabulary.message import Collective

if TYPE_CHECKING:
    from p4gen.net.order import RunOrder
    from p4gen.papers.scin.running import PullRun


def _job(order: RunOrder[ScinSpec]) -> PullRun:
    from p4gen.papers.scin.running import PullRun  # noqa: PLC0415 - options are read without it

    return PullRun(order)


FACET: Runs[ScinSpec] = Runs((*map(str, Collective), CALL), _job, OPTIONS, frozenset({"root", "concurrent"}))
