"""Locks of blocks of slots that groups share (EPIC section 6.2): the calls of hosts, and the verdict."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final

from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.words import code
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.message import Collective, Lease

_FLOAT_ONE: Final = struct.pack(">f", 1.0)
_ONES: Final = {
    DType.FLOAT32: _FLOAT_ONE,
    DType.FLOAT16: struct.pack(">e", 1.0) * 2,
    DType.BFLOAT16: _FLOAT_ONE[:2] * 2,
}
"""Lanes of ones; an integer's is 1."""


@dataclass(frozen=True)
class Verdicts:
    """The first lane of an acquire. A reduction with a refusal is one."""

    granted: int
    refused: int


def verdicts(spec: EpicSpec) -> Verdicts:
    """Zeros and ones of the program's dtype; ones and zeros where the least element counts."""
    one = int.from_bytes(_ONES.get(DType.INT32 if spec.op is Op.DYNAMIC else spec.dtype, b"\x01"))
    return Verdicts(one, 0) if spec.op is Op.MIN else Verdicts(0, one)


def code_of(spec: EpicSpec, lease: Lease) -> int:
    """The program's ``meta.invocation.code`` of the calls that acquire or release."""
    return code(spec).pack(collective=Collective.BARRIER.code, root=lease)
