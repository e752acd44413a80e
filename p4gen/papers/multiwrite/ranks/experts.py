"""Layers of a mixture of experts with drawn data, and what NumPy says of each rank's sums and window."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from typing_extensions import override

from p4gen.host.collectives.arrays import Array, array_type, wrong_elements
from p4gen.papers.multiwrite.ranks.calls import Choices, Dispatch, SharedCall, Window
from p4gen.papers.multiwrite.ranks.combining import ExpertMember, with_sets
from p4gen.papers.multiwrite.ranks.hosts import DISPATCH, Member
from p4gen.papers.multiwrite.ranks.layout import RECORD, pieces_of
from p4gen.vocabulary import DType


@dataclass(frozen=True)
class Moe(SharedCall):
    """A layer. An expert's output is its token times a weight: what an expert computes is no matter of the network."""

    tokens: Array
    """(source, token, element)."""
    topk: Choices
    """(source, token, choice): a rank for each chosen expert."""
    weights: Array
    """Of the same shape; integers where elements are."""
    apart: bool = False
    """Whether everything goes by plain writes."""

    @classmethod
    def drawn(cls, dtype: DType, hidden: int, topk: Choices, chance: np.random.Generator, *, apart: bool) -> Moe:
        """A layer of tokens of ``hidden`` bytes. Sums do not overflow, and their parts have one sign."""
        shape = (*topk.shape[:2], hidden // dtype.number_format.bytes)
        tokens: Array
        weights: Array
        if dtype.number_format.integer:
            tokens, weights = chance.integers(-(1 << 20), 1 << 20, shape), chance.integers(1, 16, topk.shape)
        else:
            tokens, weights = chance.uniform(0.5, 1.5, shape), chance.uniform(0.1, 1.0, topk.shape)
        return cls(tokens.astype(array_type(dtype)), topk, weights, apart)

    def output(self, rank: int, source: int, index: int, token: Array) -> Array:
        """A rank's output for a token: the sum of its experts'."""
        weight = self.weights[source, index][self.topk[source, index] == rank].sum()
        scaled: Array = token.astype(weight.dtype) * weight
        return scaled.astype(token.dtype)

    @override
    def start(self, member: Member) -> None:
        assert isinstance(member, ExpertMember)
        rank = member.rank
        member.layer(self.tokens[rank], self.topk[rank], partial(self.output, rank), apart=self.apart)

    @override
    def problem(self, member: Member) -> str:
        assert isinstance(member, ExpertMember)
        rank, got = member.rank, member.combined()
        weights = self.weights[rank].sum(axis=1)[:, None]
        wanted = (self.tokens[rank].astype(weights.dtype) * weights).astype(got.dtype)
        wrong = wrong_elements(got, wanted)
        if not wrong.size:
            return ""
        at = tuple(int(i) for i in np.unravel_index(wrong[0], got.shape))
        return f"token {at[0]}, element {at[1]}: {got[at]}, not {wanted[at]}; {wrong.size:,} are wrong"

    @override
    def fill(self, window: Window, number: int) -> None:
        bodies = np.stack([with_sets(each, self.topk[rank], rank) for rank, each in enumerate(self.tokens)])
        dispatch = Dispatch(bodies, self.topk)
        if not self.apart:
            dispatch.fill(window, number)
            return
        dispatch.fill(window, 2 * number - 1)
        self._fill_outputs(window, 2 * number)

    def _fill_outputs(self, window: Window, number: int) -> None:
        """What the window has of others' outputs after call ``number``, by which they are written."""
        spec, mine, ranks = window.layout.spec, window.rank, len(self.tokens)
        size = self.tokens[0, 0].nbytes
        pieces, room = pieces_of(spec, size), spec.payload - RECORD
        named = np.stack([(self.topk == rank).any(axis=2) for rank in range(ranks)])
        for rank in range(ranks):
            if rank == mine:
                continue
            for token in np.flatnonzero(named[rank, mine]).tolist():
                data = self.output(rank, mine, token, self.tokens[mine, token]).view(np.uint8)
                for piece in range(pieces):
                    place = token * pieces + piece
                    packet = np.zeros(spec.payload, np.uint8)
                    packet[:RECORD] = np.frombuffer(number.to_bytes(4) + place.to_bytes(4), np.uint8)
                    part = data[piece * room : (piece + 1) * room]
                    packet[RECORD : RECORD + len(part)] = part
                    window.put(rank, place, packet)
            counts = [0 if rank == source else int(named[rank, source].sum()) * pieces for source in range(ranks)]
            window.fence(rank, number, DISPATCH, counts)
