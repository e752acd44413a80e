"""The clock of a network, as jobs see it: virtual time advances from event to event."""

from __future__ import annotations

from typing import Protocol

from p4gen.host.transport.clock import Clock


class Loop(Clock, Protocol):
    """A clock of virtual time, which advances in ``run`` (``p4gen.host.compiled.loop``)."""

    @property
    def handled(self) -> int:
        """Number of events handled so far."""
        ...

    @property
    def idle(self) -> bool:
        """Whether no event is pending."""
        ...

    @property
    def latest(self) -> int:
        """The time of the last pending event; now if there is none."""
        ...

    def run(self, until: int | None = None, count: int | None = None) -> None:
        """Handle events until none is left, at most ``count`` of them. With ``until``, handle those that are not later,
        and advance the time to it."""
