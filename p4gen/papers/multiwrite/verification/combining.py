"""Searched hosts of programs that combine: ranks send outputs of tokens, and the source gets their sums."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from p4gen.host.transport.nic import Nic
from p4gen.host.transport.verbs import Completion, QpConfig, RecvWr, SendWr, Status
from p4gen.papers.multiwrite.control import GROUP_KEY
from p4gen.papers.multiwrite.placing import End
from p4gen.papers.multiwrite.ranks.layout import Layout


def output(number: int, rank: int, size: int) -> bytes:
    """A rank's output for a token: bytes in which outputs differ, and whose sums do not saturate."""
    return bytes([number + 1 + 8 * rank]) * size


def total(number: int, ranks: Sequence[int], size: int) -> bytes:
    """The sum of the outputs of a token."""
    found = sum(np.frombuffer(output(number, rank, size), ">i4").astype(np.int64) for rank in ranks)
    return np.asarray(found).astype(">i4").tobytes()


class Expert:
    """A rank that answers tokens (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE = ("_acknowledged", "problem")

    def __init__(
        self, nic: Nic, rank: int, end: End, config: QpConfig, size: int, tokens: Sequence[tuple[int, tuple[int, ...]]]
    ) -> None:
        self.name, self.problem = f"rank {rank}", ""
        self._rank, self._size, self._tokens = rank, size, tokens
        self._acknowledged = 0
        self._pair = nic.create_pair(end.qp, end.peer, config, self._completed)

    def parts(self) -> dict[str, object]:
        """The task itself: the queue pair is a part of the NIC."""
        return {"task": self}

    def start(self) -> None:
        """Send the outputs of all tokens that have come here."""
        for number, ranks in self._tokens:
            named = sum(1 << rank for rank in ranks)
            self._pair.post_send(SendWr(0, output(number, self._rank, self._size), named, GROUP_KEY, number))

    @property
    def done(self) -> bool:
        """Whether all outputs are acknowledged."""
        return self._acknowledged == len(self._tokens)

    def forget_times(self) -> None:
        """Nothing: it keeps no times."""

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            self.problem = f"{self.name}: {completion.status}"
        self._acknowledged += 1


class Collector:
    """The source, which gets sums (``p4gen.verification.parts.hosts.SearchedTask``)."""

    STATE = ("_come", "_memory")

    def __init__(self, nic: Nic, end: End, config: QpConfig, layout: Layout, tokens: Sequence[tuple[int, ...]]) -> None:
        self.name = "rank 0"
        self._layout, self._tokens = layout, tokens
        self._memory = bytearray(layout.spec.slots << layout.slot_shift)
        self._come: list[int] = []
        """The numbers of sums, as they have come."""
        nic.domain.register(self._memory)
        self._pair = nic.create_pair(end.qp, end.peer, config, self._completed)

    def parts(self) -> dict[str, object]:
        """The task itself: the queue pair is a part of the NIC."""
        return {"task": self}

    def start(self) -> None:
        """Wait for a sum of each token."""
        for _ in self._tokens:
            self._pair.post_recv(RecvWr(0))

    @property
    def done(self) -> bool:
        """Whether all sums have come."""
        return len(self._come) == len(self._tokens)

    def forget_times(self) -> None:
        """Nothing: it keeps no times."""

    @property
    def problem(self) -> str:
        """How what has come differs from sums of tokens, each once; "" if it does not."""
        if len(set(self._come)) < len(self._come) or not set(self._come) <= set(range(len(self._tokens))):
            return f"rank 0: sums of the tokens {self._come} have come"
        right = bytearray(len(self._memory))
        for number in self._come:
            data, at = total(number, self._tokens[number], self._layout.spec.payload), number << self._layout.slot_shift
            right[at : at + len(data)] = data
        if right != self._memory:
            return f"rank 0: after {len(self._come)} sums its window is not that of the tokens {self._come}"
        return ""

    def _completed(self, completion: Completion) -> None:
        self._come.append(-1 if completion.immediate is None else completion.immediate)
