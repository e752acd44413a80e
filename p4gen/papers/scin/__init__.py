"""SCIN: collectives that the switch starts, by READs of the ranks' operands and WRITEs of the results."""

from p4gen.families.family import Family
from p4gen.papers.scin.spec import ScinSpec

FAMILY = Family(
    "scin",
    "SCIN: the switch reads operands from the ranks' memory, reduces them, and writes results and flags",
    ScinSpec,
    __name__,
    telling=("mode",),
    modes=("scin",),
)
