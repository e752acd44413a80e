"""Which programs a spec of Mode III is tested with."""

from __future__ import annotations

from p4gen.ptf.conformance import Run
from p4gen.spec import ProgramSpec


def mode_iii_runs(spec: ProgramSpec) -> tuple[Run, ...]:
    """All scenarios on ``spec``'s program."""
    return (Run(spec),)
