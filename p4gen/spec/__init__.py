"""What the user asks for: the fields of specs and what their values mean."""

from p4gen.spec.collective import LANE_BYTES, CollectiveSpec, Overflow, Reliability
from p4gen.spec.program import Icrc, ProgramSpec, SpecConflictError
from p4gen.spec.reductions import DType, Numbers, Op

__all__ = [
    "LANE_BYTES",
    "CollectiveSpec",
    "DType",
    "Icrc",
    "Numbers",
    "Op",
    "Overflow",
    "ProgramSpec",
    "Reliability",
    "SpecConflictError",
]
