"""The paper's arithmetic, and small runs of its figures."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.experiments.experiment import Order
from p4gen.papers.multiwrite.experiments import FACET
from p4gen.papers.multiwrite.experiments.dispatch import expected_copies
from p4gen.papers.multiwrite.experiments.dispatching import (
    BY_EXPERT,
    BY_RANK,
    MULTIWRITE,
    SCHEMES,
    SERVER,
    choices,
    dispatch,
    remote,
)
from p4gen.papers.multiwrite.experiments.paths import Paths, Piece
from p4gen.papers.multiwrite.placing import straight
from p4gen.papers.multiwrite.ranks import arithmetic
from p4gen.papers.multiwrite.ranks.gathering import DIRECT, FULL, IN_HOSTS, LINK, RELAY, UNICAST, WAYS, gather
from p4gen.papers.multiwrite.ranks.gathering import MULTIWRITE as RELAYED
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.topology import load_topology


def test_the_arithmetic_of_the_paper() -> None:
    """Sections 2.3.2, 4.1 and 6.4."""
    assert arithmetic.eid_bytes(8) == 128
    assert arithmetic.groups(64, 8) == comb(64, 8) == 4_426_165_368
    assert round(100 * arithmetic.bitmap_share(1024, 4096), 2) == 3.12  # the paper rounds 3.125 to 3.13
    in_network = [way for way in WAYS if way is not IN_HOSTS]
    assert [float(way.scheme.direct) for way in in_network] == [way.factor for way in in_network] == [
        1, 0.75, 0.5, 0.6, 0.5,
    ]  # fmt: skip
    assert IN_HOSTS.scheme.direct == Fraction(LINK, LINK + RELAY) == Fraction(7, 10)  # section 5.2: both end together


def test_expected_copies_are_those_of_random_tokens() -> None:
    """The hypergeometric formulas beside 100,000 tokens, within 1 %."""
    rows = choices(12_800, 3).reshape(-1, 8)
    by_hand = {
        BY_EXPERT: (rows >= 32).sum(axis=1).mean(),
        BY_RANK: np.mean([len(set(remote(row))) for row in rows[:20_000]]),
        MULTIWRITE: (rows >= 32).any(axis=1).mean(),
    }
    for scheme in SCHEMES:
        assert abs(by_hand[scheme] / expected_copies(scheme) - 1) < 0.01
    counts = np.bincount(rows.ravel(), minlength=64)
    assert set(counts) == {len(rows) // 8}  # balanced


@pytest.mark.sample(1)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.long
def test_links_carry_the_copies_that_tokens_ask_for(scheme: str) -> None:
    """Every token at each rank that it names, and as many copies on the way there as NumPy counts."""
    tokens = 8
    found = dispatch(scheme, tokens, seed=5)
    ranks = [remote(row) for row in choices(tokens, 5).reshape(-1, 8)]
    copies = {
        BY_EXPERT: sum(map(len, ranks)),
        BY_RANK: sum(len(set(row)) for row in ranks),
        MULTIWRITE: sum(bool(row) for row in ranks),
    }
    assert found.copies * SERVER * tokens == copies[scheme]
    assert all(SERVER <= rank < 2 * SERVER for row in ranks for rank in row)


@pytest.mark.long
def test_relaying_is_faster_and_multiwrite_the_fastest() -> None:
    """A small AllGather, whose ends are a larger part of it; the figure has the ratios."""
    took = {scheme: gather(scheme, 96) for scheme in (DIRECT, UNICAST, RELAYED, FULL, IN_HOSTS)}
    assert took[DIRECT] > took[UNICAST] > took[RELAYED]
    assert took[RELAYED] / took[DIRECT] == pytest.approx(0.5, abs=0.05)
    assert took[IN_HOSTS] / took[DIRECT] == pytest.approx(0.7, abs=0.05)
    assert took[FULL] / took[DIRECT] == pytest.approx(0.5, abs=0.05)


def test_trees_that_are_none_are_refused() -> None:
    spec = MultiwriteSpec(payload=64, contexts=64, edges=8, slots=8, ports=8)
    crossed = {(0, 1): "n2", (0, 2): "n1"}  # each past the other
    with pytest.raises(InputError, match=r"routes from h0 reach n[12] twice: they make no tree"):
        Paths(load_topology("mesh-8"), spec, [lambda source, rank: crossed.get((source, rank))], 64)


def test_what_nobody_can_take_ends_a_run() -> None:
    spec = MultiwriteSpec(payload=64, contexts=8, edges=8, slots=8, ports=8)
    net = Paths(load_topology("mesh-8"), spec, [straight], 64, engine="interp")
    with pytest.raises(InputError, match="nothing has arrived since"):
        net.run([Piece(0, 0, bytes(64), (1,), 64)])  # beyond the window


@pytest.mark.sample(1)
@pytest.mark.parametrize("number", ["figure-6", "figure-7", "figure-8", "table-1"])
@pytest.mark.long
def test_what_must_hold_holds(number: str) -> None:
    scale = "small" if number == "table-1" else "quick"  # a ratio of slopes needs more tokens
    report = FACET.experiments[number].perform(Order(scale, 1))
    assert report.ok, [check.text for check in report.checks if not check.ok]
