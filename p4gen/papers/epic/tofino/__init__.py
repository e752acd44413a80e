"""Programs for architectures whose registers have few actions (``Feature.WIDE_STATE`` is not theirs): static groups.

A group runs one pattern, which its table entries say. So no announcement is remembered, and a slot's state is a tag
(PSN and epoch) and a bitmap. ``capabilities`` says what such programs lack, ``static_limits`` which there are;
``static_modules`` and ``static_flow`` are Mode II's, ``static_iii`` is Mode III's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from p4gen.arch import Feature
from p4gen.layout import Field, Header, HeaderField, Word
from p4gen.papers.epic import words
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import folding
from p4gen.rocev2 import layouts as roce
from p4gen.vocabulary import DType, Op
from p4gen.vocabulary.program import ProgramSpec

if TYPE_CHECKING:
    from p4gen.model import Model

SPAN_BYTES: Final = 64
"""The most bytes of a payload that a hash reads; the crossbar of a stage has 128, for tables too."""
KINDS: Final = 6
"""Entries of ``flows`` for an edge, at most: data, two announcements, answers, notifications, and one to spare."""


def static(spec: ProgramSpec) -> bool:
    """Whether a program is of this form."""
    return Feature.WIDE_STATE not in spec.architecture.features


def tells_stale(spec: EpicSpec) -> bool:
    """Whether a slot tells an older PSN from a newer one, which takes three comparisons in one access."""
    return not spec.needs_order


ORDINARY: Final = "meta.lookup.kind == kind_t.ORDINARY"
"""The P4 condition of packets that are not for the IncEngine."""


def bypassing(spec: EpicSpec) -> str:
    """The P4 condition of packets that bypass egress."""
    return f"{ORDINARY} || meta.fold.goes_on == 1" if folding.folded(spec) else ORDINARY


BITMAP: Final = Field("bitmap", 32, "bitmap")
SLOT: Final = Word(words.EPOCH, Field("psn", roce.PSN_BITS, "PSN"), BITMAP)
"""A slot in one word: what it serves, and whose contributions it has."""
OWNER: Final = Word(Field("psn", roce.PSN_BITS, "PSN"), Field("zeros", 32, "zeros"), words.EPOCH)
"""What a slot serves, where that has a register of its own, and so has the bitmap: programs that tell stale packets."""

ACKED: Final = Word(
    Field("psn", roce.PSN_BITS, "PSN"),
    Field("answer", 8, "complement of the syndrome's 7 bits"),
    Field("epoch", 32, "epoch"),
)
"""What an edge has acknowledged of a broadcast."""


def bridge(spec: EpicSpec) -> Header:
    """The header in front of a packet between ingress and egress: the metadata that are kept."""
    summed = (
        HeaderField("kind", 8, "what kind of packet this is", type="kind_t"),
        *((HeaderField("task", 8, "what becomes of it", type="task_t"),) if folding.folded(spec) else ()),
        HeaderField("payload_crc", 32, "what the payload adds to the ICRC"),
    )
    return Header(
        "bridge",
        "What ingress tells egress, in front of the packet; it never leaves the switch",
        (HeaderField("edge", 16, "the edge it came over", type="edge_t"), *(summed if spec.icrc.right else ())),
        noted=True,
    )


def held(spec: EpicSpec, switch: Model, index: int) -> dict[str, int]:
    """What a slot has: PSN, epoch and bitmap."""
    if tells_stale(spec):
        return OWNER.unpack(switch.register("owners", index)) | {"bitmap": switch.register("slots", index)}
    return SLOT.unpack(switch.register("slots", index))


def spans(spec: EpicSpec) -> tuple[range, ...]:
    """The lanes of each span of a payload that one hash reads in a pass."""
    size, lanes = 8 * SPAN_BYTES // spec.lane_bits, spec.pass_lanes
    return tuple(range(first, min(first + size, lanes)) for first in range(0, lanes, size))


def combined(spec: EpicSpec) -> str:
    """The P4 expression that reduces ``held`` and ``element``, which have the type of ``lane_type``."""
    if spec.op is Op.SUM:
        return "held |+| element" if spec.saturating else "held + element"
    return f"{spec.op}(held, element)"


def lane_type(spec: EpicSpec) -> str:
    """The P4 type of a lane: signed if its elements are, as a stateful ALU distinguishes them by it."""
    dtype: DType = spec.dtype
    return dtype.number_format.p4 if dtype.number_format.least < 0 else f"bit<{spec.lane_bits}>"
