"""ATP (Lao et al., NSDI 2021): switches that add workers' gradients, as far as they can, for a parameter server."""

from p4gen.families.family import Family
from p4gen.papers.atp.spec import AtpSpec

FAMILY = Family(
    "atp",
    "ATP: switches add workers' gradients in aggregators that are taken as they come; a parameter server adds the rest",
    AtpSpec,
    __name__,
    telling=("mode",),
    modes=("atp",),
)
