"""ServingSpec: what placement and manager need of a program whose switches serve groups of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import field_validator, model_validator
from typing_extensions import override

from p4gen.vocabulary.formats import DType
from p4gen.vocabulary.message import ROOTS
from p4gen.vocabulary.program import ProgramSpec, SpecConflictError, whole
from p4gen.vocabulary.reductions import Op


class ServingSpec(ProgramSpec):
    """A program that serves groups. A family's spec has all of these, as fields or as properties."""

    @property
    @override
    def serves_groups(self) -> bool:
        return True

    if TYPE_CHECKING:  # a property here would be in the way of a field of this name

        @property
        def groups(self) -> int:
            """Contexts that the switch has at the same time."""
            ...

        @property
        def fan_in(self) -> int:
            """The most edges that a context may have."""
            ...

        @property
        def slots_per_group(self) -> int:
            """N, with its default resolved."""
            ...

        @property
        def total_slots(self) -> int:
            """Slots in one pipeline's memory."""
            ...

        @property
        def payload_bytes(self) -> int:
            """Bytes of payload in a data packet."""
            ...

        @property
        def roots(self) -> int:
            """Ranks that can be roots of Reduce and Broadcast, those from 0 on."""
            ...

    @property
    def alike(self) -> dict[str, str]:
        """The values that all switches of a tree must share, as text."""
        return {}

    @property
    def needed_slots(self) -> int:
        """The fewest slots of a context with which all windows have room."""
        return 1

    @property
    def slots_formula(self) -> str:
        """``needed_slots`` in symbols."""
        return str(self.needed_slots)

    @property
    def buffered_windows(self) -> int:
        """How many windows of a rank the slots of a group hold at least."""
        return 1

    @property
    def shared_blocks(self) -> int:
        """Blocks of N slots a pipe that groups share, by locks in the switch; 0: each group has slots of its own."""
        return 0

    @property
    def own_slots(self) -> int:
        """Slots that a group has for itself, of each of its pipes."""
        return self.slots_per_group

    def block_of(self, context: int) -> tuple[int, int | None]:
        """The first slots of the block that a context shares, for data up and, if there is another pipe, for data
        down. Blocks are behind all slots that contexts have for themselves."""
        size = self.slots_per_group
        first = self.pipes * (self.groups * self.own_slots + context % self.shared_blocks * size)
        return first, first + size if self.pipes > 1 else None

    @property
    def pipes(self) -> int:
        """How many ranges of N slots a group may have at a switch."""
        return 1

    @property
    def own_psns(self) -> bool:
        """Whether each direction of each connection begins with a PSN of its own, unrelated to all others."""
        return False

    @property
    def own_state(self) -> bool:
        """Whether each context has state of its own: N slots, no more, and no Barriers between patterns."""
        return False

    @property
    def channel_memory(self) -> int:
        """Bytes of the memory of a rank that each of its channels has, in their order; 0: switches say which part of it
        they use, if they address it at all."""
        return 0

    @property
    def queue_pairs(self) -> int:
        """Queue pairs of a rank in a context. Their numbers are in a row, at both ends; an edge has the first ones."""
        return 1

    @property
    def single_switch(self) -> bool:
        """Whether a group has a single switch that does more than forward."""
        return False

    @property
    def has_server(self) -> bool:
        """Whether a group's last rank has a server on its host. The tree leads to that rank's switch, packets go
        from host to host, and their headers name context and epoch, which are the same at all switches."""
        return False

    @property
    def entrances(self) -> int:
        """The most ports by which packets of endpoints come in, counted for each endpoint."""
        return 2 * self.groups * self.fan_in


class AddingSpec(ServingSpec):
    """A program that adds vectors of int32, a packet at a time, which workers send by a protocol of their own."""

    op: ClassVar = Op.SUM
    dtype: ClassVar = DType.INT32

    if TYPE_CHECKING:

        @property
        def lanes(self) -> int:
            """Elements of a packet."""
            ...

    @field_validator("lanes", mode="before", check_fields=False)
    @classmethod
    def _whole_number(cls, value: Any) -> Any:
        return whole(value)

    @model_validator(mode="after")
    def _alone(self) -> Self:
        if self.pipelines > 1:
            raise SpecConflictError("pipelines", "what a switch adds up is in the memory of one pipeline: must be 1")
        if self.beside is not None:
            raise SpecConflictError("beside", f"programs of {self.family} have no second family")
        return self

    @property
    @override
    def payload_bytes(self) -> int:
        return self.unit_bytes * self.lanes

    @property
    @override
    def roots(self) -> int:
        return ROOTS


class MemorySpec(ServingSpec):
    """A program whose switches address the memory of ranks: each of its contexts has state of its own."""

    @property
    @override
    def roots(self) -> int:
        """Bitmaps name ranks."""
        return ROOTS

    if TYPE_CHECKING:

        @property
        def contexts(self) -> int:
            """Number of contexts that a switch has."""
            ...

        @property
        def edges(self) -> int:
            """The most edges that a context may have."""
            ...

        @property
        def payload(self) -> int:
            """Bytes of data in a packet."""
            ...

        @property
        def slots(self) -> int:
            """N of each context, no more and no fewer."""
            ...

    @property
    @override
    def uses_memory(self) -> bool:
        return True

    @property
    @override
    def own_state(self) -> bool:
        return True

    @property
    @override
    def groups(self) -> int:
        return self.contexts

    @property
    @override
    def fan_in(self) -> int:
        return self.edges

    @property
    @override
    def slots_per_group(self) -> int:
        return self.slots

    @property
    @override
    def needed_slots(self) -> int:
        return self.slots

    @property
    @override
    def slots_formula(self) -> str:
        return "N"

    @property
    @override
    def total_slots(self) -> int:
        return self.contexts * self.slots

    @property
    @override
    def payload_bytes(self) -> int:
        return self.payload
