"""Small scopes in which listed faults of MultiWrite's programs are searched for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.papers.multiwrite.verification.searching import TOPOLOGY, Sets, WriteScope
from p4gen.verification.world import Budget
from p4gen.vocabulary.topology import load_topology

WRAP: Final = 0xFFFFFE
"""A first PSN from which PSNs wrap around within a scope."""


def ladder(spec: MultiwriteSpec) -> Iterator[tuple[str, WriteScope]]:
    """Small scopes, cheap ones first."""
    base = WriteScope(load_topology(TOPOLOGY), spec)
    two = replace(base, packets=2)
    loss = Budget(losses=1)
    yield "three tokens", base
    yield "PSNs wrap", replace(base, first_psn=WRAP)
    yield "a forgery", replace(two, budget=Budget(forgeries=1))
    yield "a loss", replace(two, budget=loss)
    yield "a duplicate", replace(two, budget=Budget(duplicates=1))
    yield "a delay", replace(two, budget=Budget(delays=1))
    yield "a corruption", replace(two, budget=Budget(corruptions=1))
    yield "an early timeout", replace(two, budget=Budget(timeouts=1))
    yield "four tokens", replace(base, packets=4)
    tree = replace(base, topology=load_topology("tree-3-2"), packets=1)
    yield "a tree, a token", tree
    yield "a loss, the last host twice", replace(base, sets=Sets.LAST_TWICE, budget=loss)
    yield "three tokens, a loss", replace(base, budget=loss)
    yield "three tokens, an early timeout", replace(base, budget=Budget(timeouts=1))
    yield "PSNs wrap, a loss", replace(base, first_psn=WRAP, budget=loss)
    yield "a loss and a duplicate", replace(two, budget=Budget(losses=1, duplicates=1))
    yield "two losses", replace(two, budget=Budget(losses=2))
    yield "two losses, the last host twice", replace(base, sets=Sets.LAST_TWICE, budget=Budget(losses=2))
    yield "a tree, a token, a loss", replace(tree, budget=loss)
    yield "three tokens, two losses", replace(base, budget=Budget(losses=2))
    yield "a loss, a duplicate and a delay", replace(two, budget=Budget(1, 1, 1))
