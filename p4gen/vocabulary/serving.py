"""ServingSpec: what placement and manager need of a program whose switches serve groups of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from p4gen.vocabulary.program import ProgramSpec


class ServingSpec(ProgramSpec):
    """A program that serves groups. A family's spec has all of these, as fields or as properties."""

    @property
    def serves_groups(self) -> bool:
        """See ``ProgramSpec``."""
        return True

    if TYPE_CHECKING:  # a property here would be in the way of a field of this name

        @property
        def groups(self) -> int:
            """Contexts that the switch has at the same time."""
            ...

        @property
        def fan_in(self) -> int:
            """Most edges of a context."""
            ...

        @property
        def slots_per_group(self) -> int:
            """N, with its default resolved."""
            ...

        @property
        def needed_slots(self) -> int:
            """The least N."""
            ...

        @property
        def slots_formula(self) -> str:
            """``needed_slots`` in symbols."""
            ...

        @property
        def buffered_windows(self) -> int:
            """How many windows of a rank the slots of a group hold at least."""
            ...

        @property
        def total_slots(self) -> int:
            """Slots in one pipeline's memory."""
            ...

        @property
        def pipes(self) -> int:
            """How many ranges of N slots a group may have at a switch."""
            ...

        @property
        def payload_bytes(self) -> int:
            """Bytes of payload in a data packet."""
            ...

        @property
        def own_psns(self) -> bool:
            """Whether each direction of each connection begins with a PSN of its own, unrelated to all others."""
            ...

        @property
        def alike(self) -> dict[str, str]:
            """The values that all switches of a tree must share, as text."""
            ...
