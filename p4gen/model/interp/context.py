"""The data that compiled closures work on: one frame per packet; and how control leaves a statement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from p4gen.model.state import Digest
from p4gen.model.tables import Installed
from p4gen.model.trace import Trace

Frame = list[Any]
"""Slot 0 holds the ``Context``; every variable of the program has a slot of its own. P4 has no
recursion, so a variable has at most one live instance at a time and its slot can be fixed."""

Eval = Callable[[Frame], Any]
"""A compiled expression. The value of a composite expression may be the storage itself, so it must be copied to be
kept."""

Exec = Callable[[Frame], "int | None"]
"""A compiled statement; true results are the signals below."""

BREAK, CONTINUE, RETURN = 1, 2, 3


class ExitSignal(Exception):  # noqa: N818 - no error
    """``exit``: leaves all blocks, copying out on the way (spec 12.5)."""


class Reject(Exception):  # noqa: N818 - the name of the state
    """A parser ends in ``reject``; ``error`` is the name of the error constant (spec 13.3)."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


@dataclass
class Context:
    """A packet's pass through one block, with the program's requests to the traffic manager."""

    data: bytes = b""
    """The packet as the parser sees it."""
    at: int = 0
    """The parser's position in bits."""
    ingress_length: int = 0
    """The length that byte counters and meters add (on entry to ingress), in bytes."""
    length: int = 0
    """BMv2's packet length register: it follows setValid and setInvalid."""
    checksum_error: bool = False
    clone: tuple[int, int | None] | None = None
    """(session, field list) of the last clone call."""
    resubmit: tuple[int | None] | None = None
    """(field list,) of the last resubmit call."""
    recirculate: tuple[int | None] | None = None
    truncate: int | None = None
    digests: list[Digest] = field(default_factory=list)
    emitted: list[tuple[int, int]] = field(default_factory=list)
    """What the deparser has emitted: (bits as an integer, how many)."""
    matched: Installed | None = None
    """The entry whose action is running, for direct counters and meters."""
    color: int = 0
    """The direct meter's verdict for that entry."""
    trace: Trace | None = None
