"""EPIC's figures: simulations (section 7.4, section K) and its lab (section J.4)."""

from collections.abc import Mapping

from p4gen.net.study import Studies
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.studies.emulated import EMULATED
from p4gen.papers.epic.studies.sweep import (
    EPIC_PROGRAM,
    EPIC_TIMEOUT,
    assumptions,
    measure,
    points,
    recovery_in,
)


def _program(spec: EpicSpec) -> Mapping[str, object]:
    fields = EPIC_PROGRAM.model_dump(mode="json", exclude_unset=True)
    return fields | ({"reliability": "sack"} if spec.mode is Mode.III else {})


FACET: Studies[EpicSpec] = Studies(
    program=_program,
    timeout=lambda spec: EPIC_TIMEOUT[spec.mode],
    recovery=lambda spec: recovery_in(spec.mode),
    points=points,
    measure=measure,
    assumptions=assumptions,
    lab=lambda spec: (f"EPIC-{spec.mode}", {each: rows[spec.mode] for each, rows in EMULATED.items()}),
)
