"""EPIC: polymorphic in-network collectives. Modes I, II and III."""

from p4gen.families.family import Family
from p4gen.papers.epic.spec import EpicSpec, Mode

FAMILY = Family(
    "epic",
    "EPIC: reliable in-network collectives, Modes I, II and III",
    EpicSpec,
    __name__,
    telling=("mode",),
    modes=tuple(Mode),
)
