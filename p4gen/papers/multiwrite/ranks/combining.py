"""A rank of a layer of a mixture of experts: its tokens go to the ranks of their experts, and a sum of weighted outputs
comes back.

Switches add the outputs of a token on their way, over the connections that have brought the token; or each rank writes
its output to the token's source, which adds them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Final

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.host.collectives.arrays import Array, array_type, combine, from_wire, to_wire
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status
from p4gen.papers.multiwrite.control import GROUP_KEY
from p4gen.papers.multiwrite.ranks.hosts import Bytes, Member
from p4gen.vocabulary import DType, Op, Overflow

NUMBERS: Final = 1 << 24
"""Numbers of sums wrap."""
SET_BYTES: Final = 4
"""Before a token's data: the other ranks that get it, a little-endian bitmap, which its outputs name."""
Respond = Callable[[int, int, Array], Array]
"""A rank's output for a token: of a source, with a number there, and data. It is the weighted sum of its experts'."""


def with_sets(tokens: Array, topk: npt.NDArray[np.int64], rank: int) -> Bytes:
    """What a rank dispatches: each token, a row, behind the set of other ranks that get it."""
    named = [{int(each) for each in row} - {rank} for row in topk]
    sets = np.array([sum(1 << each for each in ranks) for ranks in named], f"<u{SET_BYTES}")
    return np.concatenate([sets.view(np.uint8).reshape(-1, SET_BYTES), tokens.view(np.uint8)], axis=1)


class ExpertMember(Member):
    """A rank of a group whose switches add outputs."""

    @override
    def _begin_afresh(self) -> None:
        super()._begin_afresh()
        self._dtype = DType(str(self._spec.combine))
        self._layers = 0
        self._answer: Callable[[], None] | None = None
        """Answers the tokens of the layer, once all have come."""
        self._tokens = np.zeros((0, 0), array_type(self._dtype))
        self._own: dict[int, Array] = {}
        """This rank's outputs for its own tokens."""
        self._owed: dict[int, int] = {}
        """Sums that have not come: their place among those of the layer, by number."""
        self._sums: Bytes | None = None
        """Those that have, a row each, as on the wire; None: switches add nothing in this layer."""
        self._returned: set[int] = set()
        """The tokens that have sums."""

    def layer(self, tokens: Array, topk: npt.NDArray[np.int64], respond: Respond, *, apart: bool = False) -> None:
        """Start a layer: send tokens, a row each, to the ranks in their rows of ``topk``, and answer those that come.
        ``combined`` has the sums once ``done``. ``apart``: each packet goes to one rank, and switches add nothing.

        Raises ``ValueError`` if the tokens take more packets than windows have room for, or more sums than slots.
        """
        body, pieces = with_sets(tokens, topk, self.rank), self._pieces(tokens)
        if not apart and len(tokens) * pieces > self._spec.slots:
            raise ValueError(f"{len(tokens) * pieces} packets of sums; the program has {self._spec.slots} slots")
        self._tokens, self._own, self._owed = tokens, {}, {}
        self._sums = None if apart else np.zeros((len(tokens) * pieces, self._spec.payload), np.uint8)
        self._answer = partial(self._write_outputs if apart else self._return_outputs, respond)
        if not apart:
            first = self._layers * self._spec.slots
            self._returned = set(np.flatnonzero(body[:, :SET_BYTES].any(axis=1)).tolist())
            self._owed = {
                (first + at) % NUMBERS: at for at in range(len(tokens) * pieces) if at // pieces in self._returned
            }
            for _ in self._owed:
                self._writer.post_recv(RecvWr(0))
        self._layers += 1
        self.dispatch(body, topk, apart=apart)

    def combined(self) -> Array:
        """The sums of outputs for this rank's tokens, a row each."""
        parts: list[list[Array]] = [[] for _ in self._tokens]
        if self._sums is None:
            found = self.received(self._tokens[0].nbytes)
            for index, row in zip(found.index, found.tokens, strict=True):
                parts[index].append(row.copy().view(self._tokens.dtype))
        else:
            rows = self._sums.reshape(len(self._tokens), -1)
            for index in sorted(self._returned):
                parts[index].append(from_wire(rows[index].data, self._dtype, self._tokens[0].shape))
        for index, own in self._own.items():
            parts[index].append(own)
        return np.stack([reduce(partial(combine, Op.SUM, Overflow.SATURATE), each) for each in parts])

    @property
    @override
    def done(self) -> bool:
        return super().done and self._answer is None and not self._owed

    def _pieces(self, tokens: Array) -> int:
        """Packets of a token's sum."""
        return -(-int(tokens[0].nbytes) // self._spec.payload)

    def _outputs(self, respond: Respond) -> list[tuple[int, int, int, Array]]:
        """This rank's outputs for others' tokens: the source, the number there, the set, the output."""
        found, kind = self.received(SET_BYTES + self._tokens[0].nbytes), self._tokens.dtype
        outputs = []
        for source, index, body in zip(found.source.tolist(), found.index.tolist(), found.tokens, strict=True):
            output = respond(source, index, body[SET_BYTES:].copy().view(kind))
            if source == self.rank:
                self._own[index] = output
            else:
                outputs.append((source, index, int.from_bytes(body[:SET_BYTES].tobytes(), "little"), output))
        return outputs

    def _return_outputs(self, respond: Respond) -> None:
        """Send outputs back the way that their tokens have come."""
        size, pieces = self._spec.payload, self._pieces(self._tokens)
        first = (self._layers - 1) * self._spec.slots
        for source, index, ranks, output in self._outputs(respond):
            wire = to_wire(output, size)
            for piece in range(pieces):
                number = (first + index * pieces + piece) % NUMBERS
                data = wire[piece * size : (piece + 1) * size]
                self._pairs[source].post_send(SendWr(0, data, ranks, GROUP_KEY, number))

    def _write_outputs(self, respond: Respond) -> None:
        """Write outputs to the sources of their tokens, as tokens of a dispatch are written."""
        outputs = self._outputs(respond)
        self._begin([])
        counts: dict[int, int] = {}
        for source, index, _, output in outputs:
            records = self._records(index, output.tobytes())
            self._write_records(index, records, {source})
            counts[source] = counts.get(source, 0) + len(records)
        self.fence(counts)

    # --- completions ---

    @override
    def _on_sent(self, completion: Completion) -> None:
        if not completion.receive or completion.status is not Status.SUCCESS:
            super()._on_sent(completion)
            return
        number = completion.immediate
        place = None if number is None else self._owed.pop(number, None)
        if place is None or self._sums is None:
            self._note(f"rank {self.rank}: a sum of number {number}, which it does not wait for")
            return
        at = self.layout.size + (place << self.layout.slot_shift)
        self._sums[place] = np.frombuffer(self.memory, np.uint8)[at : at + self._spec.payload]
        self._note_end()

    @override
    def _on_fence(self, source: int, completion: Completion) -> None:
        if completion.receive:
            super()._on_fence(source, completion)
        elif completion.status is not Status.SUCCESS:
            self._note(f"rank {self.rank}, to rank {source}: {completion.status}")

    @override
    def _note_end(self) -> None:
        if self._answer is not None and super().done:
            answer, self._answer = self._answer, None
            answer()
        super()._note_end()
