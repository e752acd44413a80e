"""The handle that a caller gets for a collective. Calls return at once; the invocation completes later."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4gen.errors import FailedError
from p4gen.host.collectives.arrays import Array
from p4gen.host.transport.verbs import Status
from p4gen.vocabulary.message import Collective


@dataclass
class Invocation:
    """A collective that has been called. ``result`` is available once it is ``done``, unless ``error`` says why it
    failed."""

    collective: Collective
    started: int | None = None
    finished: int | None = None
    """The clock's time, in ps, at which everything was received and every send had completed."""
    last_result: int | None = None
    """The time, in ps, at which the last message of this rank's result arrived; None if it gets none (EPIC §K)."""
    error: Status | str | None = None
    messages: int = 0
    """Number of messages that this rank sends and receives, including those that CommLib adds to synchronise."""
    messages_sent: int = 0
    messages_received: int = 0
    _value: Array | None = field(default=None, repr=False)

    @property
    def done(self) -> bool:
        """Whether it has ended, successfully or not."""
        return self.finished is not None

    @property
    def progress(self) -> float:
        """The fraction of its messages that have been sent and received, from 0 to 1."""
        return min(1.0, (self.messages_sent + self.messages_received) / self.messages) if self.messages else 0.0

    def result(self) -> Array | None:
        """This rank's result; None if the collective gives it none. Raises ``FailedError`` unless it ended
        successfully."""
        if self.finished is None:
            raise FailedError(f"{self.collective} has not ended")
        if self.error is not None:
            raise FailedError(f"{self.collective} failed: {self.error}")
        return self._value

    def end(self, now: int, value: Array | None = None, error: Status | str | None = None) -> None:
        """End it at time ``now``, with a result or an error. Called by the libraries that run invocations."""
        self.finished = now
        self.error = error
        self._value = value
