"""What keys and selected expressions are matched against: values in entries, keysets in ``select``."""

from __future__ import annotations

from dataclasses import dataclass

from p4gen.errors import Pos
from p4gen.p4.ir.expressions import Expr
from p4gen.p4.node import node
from p4gen.p4.types import Annotation, Type


@dataclass(frozen=True)
class Exactly:
    value: int | bool | str


@dataclass(frozen=True)
class Masked:
    value: int
    mask: int


@dataclass(frozen=True)
class Between:
    low: int
    high: int


@dataclass(frozen=True)
class Anything:
    """``_`` or ``default``, which every value matches."""


KeyValue = Exactly | Masked | Between | Anything


@node
class ValueSet:
    name: str
    type: Type
    size: int
    pos: Pos
    annotations: tuple[Annotation, ...] = ()


@node
class ExactSet:
    expr: Expr


@node
class MaskSet:
    value: Expr
    mask: Expr


@node
class RangeSet:
    low: Expr
    high: Expr


@node
class AnySet:
    pass


Keyset = ExactSet | MaskSet | RangeSet | AnySet | ValueSet
