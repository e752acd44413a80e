"""The calls of a rank: their inputs, and their results."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from p4gen.errors import FailedError
from p4gen.host.collectives.arrays import Array, check_root, divide, dtype_of
from p4gen.host.collectives.collectives import Collectives
from p4gen.host.collectives.commlib import GroupConfig, Invocation
from p4gen.vocabulary import Op
from p4gen.vocabulary.message import Collective

ROOTED: Final = frozenset({Collective.REDUCE, Collective.BROADCAST})


@dataclass(frozen=True)
class CallResult:
    """A successful call. Times are CLOCK_MONOTONIC, in ps."""

    value: Any
    """This rank's result; None if the collective gives it none. For a rank with offered memory, the family's result."""
    started: int
    """The time at which the call first began, in any generation of the group."""
    finished: int
    last_result: int | None = None
    begun: int = 1
    """How often it was started: more than once if the group was placed again meanwhile."""
    ring: bool = False
    """Whether it ended on a ring of the hosts, without switches."""


@dataclass(eq=False)
class RankCall:
    """A call that a rank has made, for as long as it takes, over all generations of its group."""

    collective: Collective
    values: Array
    root: int
    op: Op | None
    patience: float | None = None
    """Seconds after which it has failed; None: it waits for ever."""
    until: int | None = None
    """When these have passed, ps; None before it is waiting."""
    future: Future[CallResult] = field(default_factory=Future)
    begun: int = 0
    asked: bool = False
    """Whether the manager has answered in which generation it is to be made."""
    invocation: Invocation | None = None
    """The last invocation of the call."""
    started: int | None = None
    """The time at which it began in an earlier generation."""
    checked: GroupConfig | None = field(default=None, repr=False)
    """The configuration that it has been checked against."""

    def check(self, config: GroupConfig) -> None:
        """Raises ``InputError`` for a call that would be refused at every rank."""
        if config is self.checked:
            return
        if self.collective is not Collective.BARRIER:
            config.kind(dtype_of(self.values), self.op)
        if self.collective in ROOTED:
            check_root(self.root, config.size, config.roots)
        if self.collective is Collective.REDUCE_SCATTER:
            divide(self.values, config.size)
        self.checked = config

    def make(self, communicator: Collectives) -> Invocation:
        """Make the call in one generation of the group."""
        return communicator.invoke(self.collective, self.values, self.root, self.op)

    def fail(self, reason: str) -> None:
        """End the call with an error, unless it has ended."""
        if not self.future.done():
            self.future.set_exception(FailedError(reason))
