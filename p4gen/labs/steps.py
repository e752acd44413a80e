"""The steps of suites, which are loaded only where a suite runs: hosts make calls without them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from p4gen.labs.calls import Step


def group_steps() -> Sequence[Step]:
    """Of programs whose hosts are in groups of the manager."""
    from p4gen.labs.runs.groupsteps import GROUP_STEPS  # noqa: PLC0415

    return GROUP_STEPS


def connection_steps() -> Sequence[Step]:
    """Of programs whose hosts run collectives over connections with each other."""
    from p4gen.labs.runs.connectionsteps import CONNECTION_STEPS  # noqa: PLC0415

    return CONNECTION_STEPS
