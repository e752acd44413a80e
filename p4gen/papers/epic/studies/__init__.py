"""EPIC's figures: simulations (section 7.4, section K) and its lab (section J.4)."""

from collections.abc import Mapping
from typing import Final

from p4gen.net.study import Studies
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.studies.sweep import (
    EPIC_PROGRAM,
    EPIC_TIMEOUT,
    assumptions,
    measure,
    points,
    recovery_in,
)

LAB: Final = {
    Mode.I: {4 << 10: 2.47, 64 << 10: 35.89, 1 << 20: 182.44},
    Mode.II: {4 << 10: 14.74, 64 << 10: 67.32, 1 << 20: 88.96},
    Mode.III: {4 << 10: 15.69, 64 << 10: 88.69, 1 << 20: 72.54},
}
"""EPIC's Table 19: AllReduce, Mb/s by size in bytes."""


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
    lab=lambda spec: (f"EPIC-{spec.mode}", LAB[spec.mode]),
)
