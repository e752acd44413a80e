"""The phases that a channel runs, and the object that it runs them for (``compiled``, ``verbs``).

Message 0 of a phase is its control message, the others have M packets each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import Phase
from p4gen.host.transport.verbs import Completion, Status


@dataclass(eq=False)
class PhaseRun:
    """A phase that has been prepared or is running. Counts are messages."""

    phase: Phase
    invocation: Invocation
    messages: int
    """Messages in each direction that the phase uses."""
    begun: bool = False
    rooms: int = 0
    """Number of receives posted."""
    received: int = 0
    posted: int = 0
    """Number of sends posted."""
    sent: int = 0
    control: int = field(init=False)
    """The immediate value of message 0."""
    left: int = field(init=False)
    """Messages still to be sent or received. At 0 everything has arrived and everything sent is acknowledged."""

    def __post_init__(self) -> None:
        self.control = self.phase.control.encode()
        self.left = self.messages * (2 - (self.phase.send, self.phase.receive).count(None))


class Owner(Protocol):
    """The object that runs phases on a channel."""

    def run_ended(self, run: PhaseRun) -> None:
        """A phase is complete: everything is sent, acknowledged and received."""

    def channel_failed(self, error: Status | str) -> None:
        """The channel has failed and cannot be used again."""


def unexpected(phase: Phase, completion: Completion, last: int | None = None) -> str:
    """Why a received message is not the expected one. ``last`` is the PSN of its last packet, if it is written to
    memory."""
    if completion.wr_id == 0:
        return f"a control message announces {completion.immediate}, not {phase.control}"
    if last is not None:
        return f"results are written up to PSN {completion.immediate}, not up to {last}"
    return "a control message came instead of data"
