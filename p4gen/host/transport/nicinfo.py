"""What a host says about its NIC, so that the manager numbers its queue pairs, and refuses what it cannot do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from p4gen.host.transport.verbs import Recovery

MTUS: Final = (256, 512, 1024, 2048, 4096)
"""Path MTUs of RoCE."""
QPNS: Final = range(2, 1 << 24)
"""Numbers of ordinary QPs; 0 and 1 are for management."""
_MOST: Final = (1 << 23) - 1
"""The most packets that PSNs of 24 bits can tell from earlier ones."""


@dataclass(frozen=True)
class NicNeeds:
    """What a program asks of the NICs of its groups' ranks."""

    payload: int = 0
    """Bytes of data in a packet."""
    packets: int = 1
    """The most packets of a message."""
    uneven: bool = False
    """Whether the last packet of a message may be longer than the others."""
    recovery: Recovery | None = None
    """How queue pairs recover from loss; None: in any way."""
    outstanding: int = 1
    """Packets of a queue pair that may be unacknowledged."""
    reads: int = 0
    """READs from a rank that may be outstanding."""


@dataclass(frozen=True)
class NicInfo:
    """What a NIC can do. By default it is p4gen's own, which has no limits of its own."""

    recovery: Recovery = Recovery.IDEAL
    """How its queue pairs recover from loss; ``ideal``: each as it is configured."""
    mtus: tuple[int, ...] = ()
    """The path MTUs, in bytes, that a queue pair may have; empty: every payload."""
    outstanding: int = _MOST
    """The most packets that a queue pair may have unacknowledged."""
    reads: int = _MOST
    """The number of READs that a queue pair remembers as a responder, to serve them again."""
    queue_pairs: tuple[tuple[int, int], ...] = ()
    """The numbers of its queue pairs, as spans [first, end) that do not overlap. It has created them, and connects
    those that the manager chooses. Empty: it takes every number."""

    def __str__(self) -> str:
        offered = sum(end - first for first, end in self.queue_pairs)
        return f"{offered} queue pairs, recovery by {self.recovery}"

    @property
    def owns_numbers(self) -> bool:
        """Whether it is a verbs device, which numbers its queue pairs itself and keeps their PSNs to itself."""
        return bool(self.queue_pairs)

    def recovers_by(self, recovery: Recovery) -> bool:
        """Whether its queue pairs can recover in this way."""
        return self.recovery in (recovery, Recovery.IDEAL)

    def has(self, numbers: Iterable[int]) -> bool:
        """Whether its queue pairs can have all these numbers."""
        spans = self.queue_pairs or ((QPNS.start, QPNS.stop),)
        return all(any(first <= number < end for first, end in spans) for number in numbers)

    def lacks(self, needs: NicNeeds) -> Iterator[str]:
        """Why ranks of a program with these needs cannot have such a NIC, and what would do, a sentence each."""
        if needs.recovery is not None and not self.recovers_by(needs.recovery):
            yield f"its NIC recovers by {self.recovery}, not by {needs.recovery}: reliability {self.recovery} would do"
        if self.mtus and needs.packets > 1 and (needs.uneven or needs.payload not in self.mtus):
            sizes = "of unequal lengths" if needs.uneven else f"of {needs.payload} bytes"
            yield (
                f"a message is cut into packets {sizes}; its NIC cuts it into packets of {_or(self.mtus)} bytes: "
                "such packets would do, or messages of one packet"
            )
        if self.mtus and needs.payload > max(self.mtus):
            yield f"packets have {needs.payload} bytes of data; its NIC sends {max(self.mtus)} at most"
        if needs.outstanding > self.outstanding:
            yield f"{needs.outstanding} packets may be unacknowledged (W x M); its NIC has {self.outstanding} at most"
        if needs.reads > self.reads:
            yield f"{needs.reads} READs may be outstanding; its NIC remembers {self.reads}"

    def problems(self) -> Iterator[str]:
        """What is wrong with the data, a sentence each."""
        if self.recovery is Recovery.ORACLE:
            yield f"no NIC recovers by {self.recovery}"
        wrong = [mtu for mtu in self.mtus if mtu not in MTUS]
        if wrong:
            yield f"path MTU {wrong[0]} is not one of {', '.join(map(str, MTUS))}"
        if not 1 <= self.outstanding <= _MOST or not 0 <= self.reads <= _MOST:
            yield f"{self.outstanding} packets outstanding and {self.reads} READs: more than 0, up to {_MOST}"
        for first, end in self.queue_pairs:
            if not QPNS.start <= first < end <= QPNS.stop:
                yield f"queue pairs {first} to {end - 1} are not from {QPNS.start} to {QPNS.stop - 1}"
        for (_, end), (first, _) in pairwise(sorted(self.queue_pairs)):
            if first < end:
                yield f"queue pair {first} is offered twice"


def _or(numbers: tuple[int, ...]) -> str:
    *others, last = map(str, numbers)
    return f"{', '.join(others)} or {last}" if others else last


OUR_NIC: Final = NicInfo()
"""p4gen's own NIC."""
