"""Runs of SwitchML for ``p4gen sim run``: AllReduce around one switch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4gen.net.runs import Runs
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.vocabulary.message import Collective

if TYPE_CHECKING:
    from p4gen.net.order import RunOrder
    from p4gen.papers.switchml.running import MlRun


def _job(order: RunOrder[SwitchmlSpec]) -> MlRun:
    from p4gen.papers.switchml.running import MlRun  # noqa: PLC0415 - options are read without it

    return MlRun(order)


FACET: Runs[SwitchmlSpec] = Runs((str(Collective.ALLREDUCE),), _job)
