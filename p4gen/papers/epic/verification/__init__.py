"""EPIC's programs for searches of states: only the timers of Mode III's edges measure time. And what the paper checked
(§5.1, §H; Tables 7 and 8)."""

from p4gen.papers.epic.spec import EpicSpec
from p4gen.verification.family import PaperSearch, PaperTable, Verification
from p4gen.vocabulary.message import Collective

_TABLES = PaperTable(
    "Model checking: verification time (Table 7) and size of the state space (Table 8)",
    "EPIC checked TLA+ models, written by hand (1,108 to 1,741 lines), with TLC on 75 cores",
    topology="tree-3-2",
    packets=3,
    losses=1,
    rows=tuple(
        PaperSearch(f"{mode} {collective}", {"mode": mode}, collective, time, depth, distinct, total)
        for mode, collective, time, depth, total, distinct in (
            ("II", Collective.ALLREDUCE, "20 s", 77, 3_981_257, 901_703),
            ("II", Collective.REDUCE, "3 s", 57, 52_105, 14_136),
            ("II", Collective.BROADCAST, "10 s", 60, 1_763_880, 320_128),
            ("III", Collective.ALLREDUCE, "146 min", 115, 2_242_781_644, 439_476_508),
            ("III", Collective.REDUCE, "9 s", 65, 2_291_727, 447_972),
            ("III", Collective.BROADCAST, "113 s", 67, 67_902_618, 9_911_424),
        )
    ),
)


def _sound(spec: EpicSpec) -> EpicSpec:
    """The program without the design error of its ``variant``."""
    return type(spec).model_validate(spec.model_dump(exclude_unset=True, exclude={"variant"}))


FACET: Verification[EpicSpec] = Verification(
    clocks=("IncIngress.resend_timer.timers",),
    ticks=2,
    slots=(
        "IncIngress.check_duplicate.slots",
        "IncIngress.filter_order.",
        "IncIngress.combine_acks.",
        "IncIngress.track_sent.",
        "IncIngress.emit_message.",
    ),
    idles=lambda spec: spec.mode.augmented,  # in Mode II Broadcasts take slots, too
    tables={7: _TABLES, 8: _TABLES},
    searched=lambda _: ({"message": 1, "window": 1}, {"message": 1}),
    sound=_sound,
)
