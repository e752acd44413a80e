"""Themis's programs for searches of states: nothing in them measures time."""

from p4gen.papers.themis.spec import Evidence, Mode, Spread, ThemisSpec
from p4gen.verification.family import Verification


def _sound(spec: ThemisSpec) -> ThemisSpec:
    """The program without the design error of its ``variant``."""
    return type(spec).model_validate(spec.model_dump(exclude_unset=True, exclude={"variant"}))


def _unfit(spec: ThemisSpec) -> str:
    if spec.spread in (Spread.FLOWLET, Spread.RANDOM, Spread.ADAPTIVE):
        return f"spread {spec.spread} depends on time, chance or queues, which a search of states does not know"
    return ""


def _small(spec: ThemisSpec) -> dict[str, object]:
    fields: dict[str, object] = {"ports": 4, "paths": 2, "connections": 4}
    return fields | ({"queue": 8, "queue_banks": 4} if spec.filters and spec.evidence is Evidence.QUEUE else {})


def _searched(spec: ThemisSpec) -> tuple[dict[str, object], ...]:
    """Hosts see what one half of Themis does only if there is the other."""
    return () if spec.mode is Mode.BOTH else ({"mode": Mode.BOTH},)


FACET: Verification[ThemisSpec] = Verification(
    unfit=_unfit,
    small=_small,
    searched=_searched,
    filters=lambda spec: spec.filters and spec.icrc.checked,
    exact=lambda spec: spec.evidence is Evidence.QUEUE,
    sound=_sound,
)
