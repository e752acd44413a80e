"""Runs of MultiWrite for ``p4gen sim run``: AllGather, dispatch, and layers of a mixture of experts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4gen.net.runs import Runs
from p4gen.papers.multiwrite.ranks.options import ALLGATHER, DISPATCH, MOE, RUN_OPTIONS
from p4gen.papers.multiwrite.spec import MultiwriteSpec

if TYPE_CHECKING:
    from p4gen.net.order import RunOrder
    from p4gen.papers.multiwrite.running import WriteRun


def _job(order: RunOrder[MultiwriteSpec]) -> WriteRun:
    from p4gen.papers.multiwrite.running import WriteRun  # noqa: PLC0415 - options are read without it

    return WriteRun(order)


FACET: Runs[MultiwriteSpec] = Runs((ALLGATHER, DISPATCH, MOE), _job, RUN_OPTIONS)
