"""NewFamily: EPIC's Mode II with a module of its own."""

from pathlib import Path

from p4gen.families import Family
from p4gen.papers.epic import FAMILY as EPIC

from .spec import NewFamilySpec

FAMILY = Family(
    "new_family",
    "NewFamily: EPIC's Mode II, and contributions counted by rank",
    NewFamilySpec,
    __name__,
    Path(__file__).parent / "templates",
    base=EPIC,
)
