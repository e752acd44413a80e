"""CollectiveSpec: the fields of all programs that take part in collectives.

Hosts, manager, simulator and benchmarks use only these fields of a program. Symbols follow EPIC Table 2:
a window is W messages of M packets, and N slots buffer them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, assert_never

from pydantic import Field, field_validator, model_validator
from typing_extensions import override

from p4gen.vocabulary.formats import DType
from p4gen.vocabulary.message import ROOTS
from p4gen.vocabulary.program import SpecConflictError, whole
from p4gen.vocabulary.reductions import Numbers, Op, all_numbers
from p4gen.vocabulary.serving import ServingSpec

DYNAMIC_BITS = 32
"""Bits of an element in programs that compute with what each control message announces."""
MAX_SLOTS = 65536
MAX_TOTAL_SLOTS = 1 << 20


class Overflow(StrEnum):
    """How a reduction handles results outside the range of its dtype."""

    SATURATE = "saturate"
    WRAP = "wrap"


class Reliability(StrEnum):
    """How an edge's packets are accepted when some are lost (EPIC section C)."""

    GBN = "gbn"
    """Go-Back-N: in order only."""
    SR = "sr"
    """Selective repeat: also out of order."""
    SACK = "sack"
    """Selective repeat whose NAKs name every missing packet at once; no commodity NIC sends or knows them."""

    @property
    def in_order(self) -> bool:
        """Whether an edge's packets are accepted in order only."""
        match self:
            case Reliability.GBN:
                return True
            case Reliability.SR | Reliability.SACK:
                return False
            case other:
                assert_never(other)

    @property
    def selective_naks(self) -> bool:
        """Whether NAKs name several packets."""
        match self:
            case Reliability.SACK:
                return True
            case Reliability.GBN | Reliability.SR:
                return False
            case other:
                assert_never(other)


class CollectiveSpec(ServingSpec):
    """A program that reduces and distributes what ranks send."""

    lanes: Annotated[
        Literal[8, 16, 32, 64, 128, 256, 512, 1024],
        Field(
            description="lanes of a packet, each an element, or two of float16 or bfloat16; the payload is lanes x the "
            "bytes of a lane; a power of two"
        ),
    ] = 64
    dtype: Annotated[
        DType,
        Field(description="type of an element; op dynamic serves all integers, and with float32 these numbers, too"),
    ] = DType.INT32
    op: Annotated[
        Op,
        Field(
            description="how contributions are reduced, element by element; dynamic: as the control message announces"
        ),
    ] = Op.SUM
    overflow: Annotated[Overflow | None, Field(description="for sums: saturate (the default) or wrap around")] = None
    window: Annotated[int, Field(ge=1, le=1024, description="W: messages a rank may have outstanding")] = 16
    message: Annotated[int, Field(ge=1, le=1024, description="M: packets in a message")] = 4
    slots: Annotated[
        Literal[2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536] | None,
        Field(
            description="N: packets buffered per group; at least 2 x W x M, in mode I W x M (by default the smallest "
            "such), and a power of two, so that a slot's index is the PSN's low bits and survives its wrap",
        ),
    ] = None
    groups: Annotated[int, Field(ge=1, le=256, description="groups that share the switch at the same time")] = 4
    fan_in: Annotated[
        int,
        Field(
            ge=1,
            le=32,
            description="most edges of a group that contribute at this switch; one bit each of a 32-bit bitmap",
        ),
    ] = 32
    roots: Annotated[
        Literal[32, 64, 128, 256, 512, 1024, 2048, 4096],
        Field(
            description="ranks that can be roots of Reduce and Broadcast, those from 0 on; ReduceScatter and AllGather "
            "have no more ranks; more roots leave fewer packets for each control message to announce"
        ),
    ] = ROOTS
    reliability: Annotated[
        Reliability | None,
        Field(description="how packets are taken when some are lost: in order only (gbn), or out of order (sr, sack)"),
    ] = None

    @field_validator("lanes", "slots", "roots", mode="before")
    @classmethod
    def _whole_too(cls, value: Any) -> Any:
        return whole(value)

    @model_validator(mode="after")
    def _slots_fit(self) -> CollectiveSpec:
        if self.overflow is not None and not self.op.overflows:
            fitting = " or ".join(op for op in Op if op.overflows)
            raise SpecConflictError("overflow", f"goes with op {fitting}; {self.op} cannot overflow")
        if self.overflow is not None and self.numbers is not None and not self.dtype.number_format.integer:
            raise SpecConflictError("overflow", f"is for integers; a sum of {self.dtype} that overflows is infinite")
        if self.numbers is None:
            form = self.dtype.number_format
            if self.dtype is not DType.INT32 and (form.integer or form.wide or form.lane_bits != DYNAMIC_BITS):
                raise SpecConflictError(
                    "dtype",
                    "goes with a fixed op; with op dynamic the control message chooses it, of integers and float32",
                )
        elif self.dtype not in self.op.reduction.dtypes:
            fitting = " or ".join(self.op.reduction.dtypes)
            raise SpecConflictError("dtype", f"op {self.op} is defined for {fitting}")
        elif self.dtype.number_format.wide is not None and not self.folds:
            raise SpecConflictError("dtype", self.no_wide_sums)
        needed, windows = self.needed_slots, self.buffered_windows
        formula = self.slots_formula.replace("W", "window").replace("M", "message")
        if needed > MAX_SLOTS:
            raise SpecConflictError("window", f"{formula} is {needed}; at most {MAX_SLOTS} slots are available")
        if self.slots is not None and self.slots < needed:
            why = "a rank a window ahead overwrites" if windows > 1 else "a rank's window is not buffered"
            raise SpecConflictError("slots", f"must be at least {formula} = {needed}, or {why}")
        if self.total_slots > MAX_TOTAL_SLOTS:
            raise SpecConflictError(
                "groups", f"all groups together have {self.total_slots} slots; at most {MAX_TOTAL_SLOTS} are available"
            )
        return self

    @property
    @override
    def takes_part(self) -> bool:
        return True

    @property
    def terminates(self) -> bool:
        """Whether each switch terminates the ranks' connections and acknowledges, instead of translating them."""
        return False

    @property
    def folds(self) -> bool:
        """Whether a switch stores the contributions to a slot and reduces them at once, in the order of ranks."""
        return False

    @property
    def ring(self) -> int:
        """Packets of the ring, a power of two, in a rank's memory that the results of a channel are written to; 0 where
        results are sent. A rank has at most 2W receives posted, so at most 2W + 1 messages are there that it has not
        read."""
        return 0

    @property
    @override
    def channel_memory(self) -> int:
        # A message begins at the place in the ring that its first PSN maps to, and may end beyond the ring.
        return (self.ring + self.message - 1) * self.payload_bytes if self.ring else 0

    @property
    def no_wide_sums(self) -> str:
        """Why a program that does not fold has no elements that are added in a wider format, for an error."""
        return (
            f"{self.dtype} is added in {self.dtype.number_format.wide} and rounded once, for which a switch needs all "
            "contributions at the same time; this program adds each as it arrives, and would round each time"
        )

    @property
    @override
    def buffered_windows(self) -> int:
        """How many windows of W x M packets the slots of a group hold at least."""
        return 2

    @property
    @override
    def needed_slots(self) -> int:
        """The fewest slots with which all windows have room."""
        return self.buffered_windows * self.window * self.message

    @property
    @override
    def slots_formula(self) -> str:
        """``needed_slots`` in terms of W and M."""
        return f"{self.buffered_windows} x W x M" if self.buffered_windows > 1 else "W x M"

    @property
    def slots_per_group(self) -> int:
        """N, with its default resolved."""
        return self.slots or max(2, 1 << (self.needed_slots - 1).bit_length())

    @property
    def total_slots(self) -> int:
        """Slots in one pipeline's memory: those of a group's own for each of its pipes."""
        return self.groups * self.own_slots * self.pipes

    @property
    def bank_slots(self) -> int:
        """Words of state for slots in a pipeline's bank; a power of two where there are several banks."""
        return self._bank(self.total_slots)

    @property
    def bank_contexts(self) -> int:
        """Words of state for contexts in a pipeline's bank."""
        return self._bank(self.groups)

    @property
    def bank_edges(self) -> int:
        """Words of state for edges in a pipeline's bank; edges are numbered from 1."""
        return self._bank(self.groups * self.fan_in + 1)

    def _bank(self, words: int) -> int:
        return words if self.pipelines == 1 else 1 << max(1, (words - 1).bit_length())

    @property
    def numbers(self) -> Numbers | None:
        """Op and dtype of the program; None if each control message chooses them."""
        return None if self.op is Op.DYNAMIC else Numbers(self.op, self.dtype)

    @property
    def choices(self) -> tuple[Numbers, ...]:
        """All ops and dtypes of the program; with op dynamic those of integers, and of ``dtype``."""
        if self.numbers is not None:
            return (self.numbers,)
        forms = ((each, each.dtype.number_format) for each in all_numbers())
        return tuple(
            each for each, form in forms if form.bits == self.lane_bits and (form.integer or each.dtype is self.dtype)
        )

    @property
    def saturating(self) -> bool:
        """Whether results of integers that overflow saturate."""
        match self.overflow:
            case None | Overflow.SATURATE:
                return any(n.op.overflows and n.dtype.number_format.integer for n in self.choices)
            case Overflow.WRAP:
                return False
            case other:
                assert_never(other)

    @property
    def counts_overflows(self) -> bool:
        """Whether packets are counted in which a result leaves the range of its dtype, and does not wrap around."""
        return self.saturating or any(n.op.overflows and not n.dtype.number_format.integer for n in self.choices)

    @property
    def loss_recovery(self) -> Reliability:
        """``reliability``, with its default resolved."""
        return self.reliability or Reliability.SR

    @property
    def lane_bits(self) -> int:
        """Bits of a lane, which has an element, or several of a dtype that says so."""
        return DYNAMIC_BITS if self.op is Op.DYNAMIC else self.dtype.number_format.lane_bits

    @property
    def elements(self) -> int:
        """Number of elements in a data packet."""
        return self.lanes if self.op is Op.DYNAMIC else self.lanes * self.dtype.number_format.per_lane

    @property
    @override
    def unit_bytes(self) -> int:
        return self.dtype.number_format.bytes

    @property
    def payload_bytes(self) -> int:
        """Bytes of payload in a data packet."""
        return self.lane_bits * self.lanes // 8

    @property
    @override
    def alike(self) -> dict[str, str]:
        """The values that all switches of a tree must share, as text."""
        return {
            "lanes": str(self.lanes),
            "op": str(self.op),
            "dtype": str(self.dtype),
            "saturation": "on" if self.saturating else "off",
            "reliability": str(self.loss_recovery),
            "roots": str(self.roots),
            "W x M": f"{self.window} x {self.message}",
            "ICRC": str(self.icrc),
        }
