"""What the user asks for: the fields of specs and what their values mean."""

from p4gen.vocabulary.collective import CollectiveSpec, Overflow, Reliability
from p4gen.vocabulary.formats import DType
from p4gen.vocabulary.program import Icrc, ProgramSpec, SpecConflictError
from p4gen.vocabulary.reductions import Numbers, Op
from p4gen.vocabulary.serving import ServingSpec

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
