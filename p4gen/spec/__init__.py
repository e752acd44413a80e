"""What the user asks for: YAML and flags in, a validated spec or positioned errors out."""

from p4gen.spec.load import flag_name, load_spec
from p4gen.spec.program import (
    LANE_BYTES,
    Arch,
    Congestion,
    Icrc,
    Mode,
    Overflow,
    ProgramSpec,
    Reliability,
    Variant,
)
from p4gen.spec.reductions import DType, Numbers, Op

__all__ = [
    "LANE_BYTES",
    "Arch",
    "Congestion",
    "DType",
    "Icrc",
    "Mode",
    "Numbers",
    "Op",
    "Overflow",
    "ProgramSpec",
    "Reliability",
    "Variant",
    "flag_name",
    "load_spec",
]
