"""Numbers of hosts' queue pairs.

A host whose NIC has queue pairs of its own gets numbers of these, any that no rank of the host has. All other hosts
share one range, so that a group's ranks have numbers in a row. Numbers go round, so that a late packet for a dead group
does not meet a new one with its number.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from p4gen.errors import InputError
from p4gen.host.transport.nicinfo import NicInfo
from p4gen.plan.placement.spans import NoRoomError, Spans, gaps

HOST_QP: Final = 0x200
"""First QP of the hosts that share a range."""
QPS: Final = 1 << 24
PER_RANK: Final = 4
"""Numbers that a ring takes for each rank, where they are in a row."""


@dataclass(frozen=True)
class RingEnds:
    """The numbers of a rank's queue pairs on a ring of hosts."""

    left: int
    right: int
    star: tuple[int, ...]
    """For barriers: at rank 0 those for ranks 1, 2, ..., at the others the one for rank 0."""

    def __iter__(self) -> Iterator[int]:
        return iter((self.left, self.right, *self.star))


Ring = tuple[RingEnds, ...]
"""The ends of all ranks, in order of rank."""


def ring_in_a_row(first: int, size: int) -> Ring:
    """The ends of a ring whose numbers begin at ``first``, R for each kind: the ranks' ends to the right, those to the
    left, rank 0's ends of the star, the others' ends of it."""
    stars = (tuple(range(first + 2 * size + 1, first + 3 * size)), *((first + 3 * size + n,) for n in range(1, size)))
    return tuple(RingEnds(first + size + rank, first + rank, star) for rank, star in enumerate(stars))


@dataclass(frozen=True)
class Turns:
    """The numbers at which searches begin: of the hosts that share a range, and of each other host."""

    shared: int = HOST_QP
    own: Mapping[str, int] = field(default_factory=dict)


FIRST_TURNS: Final = Turns()


class PairNumbers:
    """The numbers that are free; allocations reduce them. Of ``nics``, those that own their numbers count; ``turns``
    are the numbers at which searches begin."""

    def __init__(self, nics: Mapping[str, NicInfo], turns: Turns) -> None:
        self._own = {host: Spans(nic.queue_pairs) for host, nic in nics.items() if nic.owns_numbers}
        self._held: defaultdict[str, Spans] = defaultdict(Spans)
        """By host; of hosts that share a range together, by ""."""
        self._next_shared, self._next = turns.shared, dict(turns.own)

    @property
    def turns(self) -> Turns:
        """The numbers at which later searches begin."""
        return Turns(self._next_shared, self._next)

    def hold(self, host: str, first: int, count: int = 1) -> None:
        """Record numbers that a rank has."""
        self._held[host if host in self._own else ""].add(first, first + count)

    def check(self, needed: Mapping[str, int]) -> None:
        """Check that hosts have so many free numbers. Raises ``NoRoomError`` with all that have not."""
        reasons = []
        for host, count in needed.items():
            free = sum(end - first for first, end in self._free(host))
            if host in self._own and free < count:
                wanted = "1 queue pair is" if count == 1 else f"{count} queue pairs are"
                reasons.append(f"{host}: {wanted} needed; {free} of its NIC's {len(self._own[host])} are free")
        if reasons:
            raise NoRoomError(*reasons)

    def ranks(self, hosts: Sequence[str], count: int) -> list[int]:
        """For each of these hosts the first of ``count`` numbers in a row. Raises ``NoRoomError``."""
        sharing = [host for host in hosts if host not in self._own]
        first = self._shared(count * len(sharing)) if sharing else 0
        return [self._take(host, count) if host in self._own else first + count * sharing.index(host) for host in hosts]

    def ring(self, hosts: Sequence[str]) -> Ring:
        """The numbers of a ring of these hosts. Raises ``NoRoomError``."""
        size = len(hosts)
        sharing = not all(host in self._own for host in hosts)
        ends = list(ring_in_a_row(self._shared(PER_RANK * size) if sharing else 0, size))
        self.check(Counter({host: len(tuple(each)) for host, each in zip(hosts, ends, strict=True)}))
        for rank, host in enumerate(hosts):
            if host in self._own:
                left, right, *star = (self._take(host, 1) for _ in ends[rank])
                ends[rank] = RingEnds(left, right, tuple(star))
        return tuple(ends)

    def _free(self, host: str) -> Iterator[tuple[int, int]]:
        for first, end in self._own.get(host, ()):
            yield from gaps(first, end, self._held[host])

    def _take(self, host: str, count: int) -> int:
        """The first of ``count`` numbers in a row of a host's own."""
        widest = 0
        for begin in (self._next.get(host, 0), 0):
            for low, end in self._free(host):
                first = max(low, begin)
                widest = max(widest, end - low)
                if end - first >= count:
                    self._held[host].add(first, first + count)
                    self._next[host] = first + count
                    return first
        raise NoRoomError(f"{host}: {count} queue pairs in a row are needed; {widest} at most of its NIC's are free")

    def _shared(self, count: int) -> int:
        """The first of ``count`` numbers in a row that no host which shares the range has."""
        held = self._held[""]
        for begin in (self._next_shared, HOST_QP):
            for first, end in gaps(begin, QPS, held):
                if end - first >= count:
                    held.add(first, first + count)
                    self._next_shared = first + count if first + count < QPS else HOST_QP
                    return first
        raise InputError(f"no {count} queue pair numbers in a row are free")
