"""Small scopes in which listed faults of SCIN's programs are searched for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from p4gen.papers.scin.control import Pattern
from p4gen.papers.scin.spec import ScinSpec
from p4gen.papers.scin.verification.searching import TOPOLOGY, PullScope
from p4gen.verification.world import Budget
from p4gen.vocabulary.topology import load_topology

WRAP: Final = 0xFFFFFE
"""A first PSN from which PSNs wrap around within a scope."""

_FORGERY: Final = "a forgery"
_LATE_NAK: Final = "slots are used again, a loss and a duplicate"


def ladder(spec: ScinSpec) -> Iterator[tuple[str, PullScope]]:
    """Small scopes, cheap ones first."""
    base = PullScope(load_topology(TOPOLOGY), spec)
    mixed = replace(base, topology=load_topology("star-3"), pattern=Pattern(0b011, 0b110))
    long = replace(base, calls=(spec.slots + 1,))
    loss = Budget(losses=1)
    yield "two calls", base
    yield "masks", mixed
    yield "barriers", replace(mixed, calls=(2, 0, 1, 0))
    yield "PSNs wrap", replace(base, first_psn=WRAP)
    yield "slots are used again", long
    yield _FORGERY, replace(base, budget=Budget(forgeries=1))
    yield "a loss", replace(base, budget=loss)
    yield "a duplicate", replace(base, budget=Budget(duplicates=1))
    yield "a delay", replace(base, budget=Budget(delays=1))
    yield "a corruption", replace(base, budget=Budget(corruptions=1))
    yield "an early timeout", replace(base, budget=Budget(timeouts=1))
    yield "masks, a loss", replace(mixed, budget=loss)
    yield "barriers, a loss", replace(mixed, calls=(2, 0, 1, 0), budget=loss)
    yield "slots are used again, a loss", replace(long, budget=loss)
    yield "slots are used again, a duplicate", replace(long, budget=Budget(duplicates=1))
    yield "a loss and a duplicate", replace(base, budget=Budget(losses=1, duplicates=1))
    yield "two losses", replace(base, budget=Budget(losses=2))
    yield "slots are used again, a delay", replace(long, budget=Budget(delays=1))
    yield _LATE_NAK, replace(long, budget=Budget(losses=1, duplicates=1))
