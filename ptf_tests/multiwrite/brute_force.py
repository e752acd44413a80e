"""What a node owes to a source, by brute force: a set of edges for each packet that not all have acknowledged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Node:
    """A node's copies of one source's packets. PSNs count from 0, the source's as well as each edge's."""

    def __init__(self, edges: Iterable[int]) -> None:
        self.copies: dict[int, list[int]] = {edge: [] for edge in edges}
        """By edge, the source's PSN of each copy."""
        self.acked = dict.fromkeys(self.copies, 0)
        """By edge, how many copies are acknowledged."""
        self.sent = 0

    def send(self, edges: Iterable[int]) -> Mapping[int, int]:
        """The next packet goes to these edges; the number of its copy at each."""
        numbers = {}
        for edge in edges:
            numbers[edge] = len(self.copies[edge])
            self.copies[edge].append(self.sent)
        self.sent += 1
        return numbers

    def acknowledge(self, edge: int, through: int) -> None:
        """The edge has all copies up to this number."""
        self.acked[edge] = max(self.acked[edge], through + 1)

    @property
    def start(self) -> int:
        """The first packet that not all its edges have acknowledged; what comes next, if all have all."""
        waiting = (psn for edge, copies in self.copies.items() for psn in copies[self.acked[edge] :])
        return min(waiting, default=self.sent)

    def lacking(self, psn: int) -> dict[int, int]:
        """The edges that have not acknowledged a packet, with the numbers of their copies."""
        return {
            edge: copies.index(psn)
            for edge, copies in self.copies.items()
            if psn in copies and copies.index(psn) >= self.acked[edge]
        }
