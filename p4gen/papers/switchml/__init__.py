"""SwitchML (Sapio et al., NSDI 2021): switches that add workers' vectors in a pool of slots with two versions."""

from p4gen.families.family import Family
from p4gen.papers.switchml.spec import SwitchmlSpec

FAMILY = Family(
    "switchml",
    "SwitchML: sums of workers' vectors in a pool of slots with two versions; workers send again what is lost",
    SwitchmlSpec,
    __name__,
    telling=("mode",),
    modes=("switchml",),
)
