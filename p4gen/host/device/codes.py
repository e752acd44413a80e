"""How verbs say what p4gen says otherwise: timeouts, path MTUs, addresses, sets of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address
from itertools import groupby
from typing import Final

from p4gen.errors import FailedError
from p4gen.host.transport.nicinfo import MTUS
from p4gen.host.transport.verbs import timeout_ps
from p4gen.rocev2.cm import gid_of

_FOR_EVER: Final = 7
"""The retry count without an end: of RNR NAKs by the standard, of timeouts on rdma_rxe."""
_LONGEST: Final = 31
"""The greatest code of a timeout."""


def timeout_code(least_ps: int) -> int:
    """The code of the shortest timeout that is not shorter; 0 for none.

    >>> timeout_code(0), timeout_code(8_192_000), timeout_code(50 * 10**9)
    (0, 1, 14)
    """
    return next((code for code in range(1, _LONGEST) if timeout_ps(code) >= least_ps), _LONGEST) if least_ps else 0


def retries(count: int | None) -> int:
    """The code of a retry count; None is for ever."""
    return _FOR_EVER if count is None else min(count, _FOR_EVER)


def path_mtu(payload: int, most: int) -> int:
    """The least path MTU that a packet of ``payload`` bytes fits, up to ``most``. Raises ``FailedError`` if none is."""
    fitting = [mtu for mtu in MTUS if payload <= mtu <= most]
    if not fitting:
        raise FailedError(f"packets of {payload:,} bytes are longer than the path MTU, {most:,}")
    return fitting[0]


def gid_text(ip: int) -> str:
    """The GID of an IP address, in full.

    >>> gid_text(0x0A000001)
    '0000:0000:0000:0000:0000:ffff:0a00:0001'
    >>> gid_text(0xFD << 120 | 1)
    'fd00:0000:0000:0000:0000:0000:0000:0001'
    """
    return IPv6Address(gid_of(ip)).exploded


def spans(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Numbers as spans [first, end).

    >>> list(spans([18, 17, 20]))
    [(17, 19), (20, 21)]
    """
    for _, group in groupby(enumerate(sorted(numbers)), lambda each: each[1] - each[0]):
        row = [number for _, number in group]
        yield row[0], row[-1] + 1
