"""What the user asks for: the fields of specs and what their values mean."""

from p4gen.spec.collective import CollectiveSpec, Overflow, Reliability
from p4gen.spec.formats import DType
from p4gen.spec.program import Icrc, ProgramSpec, SpecConflictError
from p4gen.spec.reductions import Numbers, Op
from p4gen.spec.serving import ServingSpec

__all__ = [
    "CollectiveSpec",
    "DType",
    "Icrc",
    "Numbers",
    "Op",
    "Overflow",
    "ProgramSpec",
    "Reliability",
    "ServingSpec",
    "SpecConflictError",
]
