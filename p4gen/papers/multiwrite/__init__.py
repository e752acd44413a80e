"""MultiWrite: one RDMA WRITE to many destinations, replicated by switches."""

from p4gen.families.family import Family
from p4gen.papers.multiwrite.spec import MultiwriteSpec

FAMILY = Family(
    "multiwrite",
    "MultiWrite: one WRITE to the destinations in its bitmap, replicated on the way and acknowledged by all",
    MultiwriteSpec,
    __name__,
    telling=("mode",),
    modes=("multiwrite",),
)
