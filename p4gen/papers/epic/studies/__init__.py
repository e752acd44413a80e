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

_SIZES: Final = tuple(4 << 10 << 2 * power for power in range(10))
LAB: Final = {
    mode: dict(zip(_SIZES, figures, strict=True))
    for mode, figures in {
        Mode.I: (2.47, 10.24, 35.89, 78.97, 182.44, 247.87, 381.91, 417.60, 425.77, 426.94),
        Mode.II: (14.74, 48.10, 67.32, 85.11, 88.96, 93.74, 86.64, 89.33, 94.11, 97.86),
        Mode.III: (15.69, 64.14, 88.69, 86.77, 72.54, 75.54, 74.86, 75.46, 75.13, 75.64),
    }.items()
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
