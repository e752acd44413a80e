"""EPIC's programs for searches of states: only the timers of Mode III's edges measure time."""

from p4gen.papers.epic.spec import EpicSpec
from p4gen.verification.family import Verification


def _sound(spec: EpicSpec) -> EpicSpec:
    """The program without the design error of its ``variant``."""
    return type(spec).model_validate(spec.model_dump(exclude_unset=True, exclude={"variant"}))


FACET: Verification[EpicSpec] = Verification(
    clocks=("IncIngress.resend_timer.timers",),
    locks=("IncIngress.acquire_lease.locks",),
    ticks=2,
    slots=(
        "IncIngress.check_duplicate.slots",
        "IncIngress.filter_order.",
        "IncIngress.combine_acks.",
        "IncIngress.track_sent.",
        "IncIngress.emit_message.",
    ),
    idles=lambda spec: spec.mode.augmented,  # in Mode II Broadcasts take slots, too
    searched=lambda _: ({"message": 1, "window": 1}, {"message": 1}),
    sound=_sound,
)
