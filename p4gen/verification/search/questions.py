"""Questions of the kernel about the parts of a system."""

from __future__ import annotations

from typing import NamedTuple

from p4gen.verification.search.kernel import ARRIVE, ARRIVE_CORRUPT, EXPIRES, TICKS


class Question(NamedTuple):
    """A question of the kernel (``kernel.question``), taken apart."""

    kind: int
    who: int
    """A link, a host or a tick."""
    place: int
    state: int
    """The state of the part, or the content of a link."""
    frame: int
    """A frame, a list of frames, or a timer."""

    @classmethod
    def of(cls, number: int) -> Question:
        """Decode a question that ``kernel.question`` has encoded."""
        return cls(number >> 60, number >> 52 & 0xFF, number >> 48 & 0xF, number >> 24 & 0xFFFFFF, number & 0xFFFFFF)

    @property
    def number(self) -> int:
        """The question as a number."""
        return self.kind << 60 | self.who << 52 | self.place << 48 | self.state << 24 | self.frame

    @property
    def step(self) -> bool:
        """Whether it is about a step of a switch or a host."""
        return self.kind in (ARRIVE, ARRIVE_CORRUPT, EXPIRES, TICKS)
