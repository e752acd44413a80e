"""What a caller holds of a collective that is under way. Nobody waits on an event loop: it is done some time later."""

from __future__ import annotations

from dataclasses import dataclass, field

from p4gen.errors import FailedError
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.control import Collective
from p4gen.host.transport.verbs import Status


@dataclass
class Invocation:
    """A collective under way. ``result`` is there once it is ``done``, unless ``error`` says why it failed."""

    collective: Collective
    started: int | None = None
    finished: int | None = None
    """The clock's time, ps: when all is received and every send has completed."""
    last_result: int | None = None
    """When the last message of this rank's result arrived, ps; None when it gets none (EPIC §K counts until here)."""
    error: Status | str | None = None
    messages: int = 0
    """Messages that this rank sends and receives for it, those included that CommLib adds to synchronise."""
    messages_sent: int = 0
    messages_received: int = 0
    _value: Array | None = field(default=None, repr=False)

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self.finished is not None

    def result(self) -> Array | None:
        """This rank's result, None where the collective leaves it none. FailedError unless it ended well."""
        if self.finished is None:
            raise FailedError(f"{self.collective} has not ended")
        if self.error is not None:
            raise FailedError(f"{self.collective} failed: {self.error}")
        return self._value

    def end(self, now: int, value: Array | None = None, error: Status | str | None = None) -> None:
        """It has ended at ``now``, with ``value`` or an error; for the libraries that work invocations off."""
        self.finished = now
        self.error = error
        self._value = value
