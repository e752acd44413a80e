"""The paper's arithmetic: what destinations cost in a header (section 4.1), groups that a dispatch would need (section
2.3.2), shares and durations of relaying (section 3.1), and the expected copies of a token (section 3.2)."""

from __future__ import annotations

from fractions import Fraction
from math import comb

EID_BYTES = 16
"""Section 4.1: an EID of the UB protocol has 128 bits."""


def eid_bytes(destinations: int) -> int:
    """Bytes of the addresses of so many destinations.

    >>> eid_bytes(8)
    128
    """
    return EID_BYTES * destinations


def bitmap_share(receivers: int, payload: int) -> float:
    """The bytes of a bitmap as a share of a packet's data (section 6.4).

    >>> f"{bitmap_share(1024, 4096):.3%}"
    '3.125%'
    """
    return receivers / 8 / payload


def groups(experts: int, top: int) -> int:
    """Multicast groups, one for each set of experts (section 2.3.2).

    >>> groups(64, 8)
    4426165368
    """
    return comb(experts, top)


def direct_share(domain: int, relays: int, *, multicast: bool) -> Fraction:
    """x, the share of a fragment that goes straight in an AllGather of two domains, so that all links end together.

    With fragments of s bytes and links of w bytes a second it takes x s/w (section 3.1). With 0 relays all goes
    straight. A link between the domains has first hops of its own source, one copy, or with unicast one for each
    destination. With several relays it has second hops of the other domain, too; those of one relay go elsewhere.

    >>> [str(direct_share(4, relays, multicast=True)) for relays in (0, 1, 4)]
    ['1', '1/2', '1/2']
    >>> [str(direct_share(4, relays, multicast=False)) for relays in (1, 4)]
    ['3/4', '3/5']
    """
    if not relays:
        return Fraction(1)
    first = Fraction(1 if multicast else domain - 1, relays)
    second = Fraction(relays - 1, relays)
    load = first + second  # of a link, in units of 1 - x
    return load / (1 + load)


def copies_by_expert(experts: int, top: int, here: int) -> float:
    """Copies of a token to another place with ``here`` of the experts, one for each expert.

    >>> copies_by_expert(64, 8, 32)
    4.0
    """
    return top * here / experts


def copies_by_rank(experts: int, top: int, ranks: int, each: int) -> float:
    """The same with one for each of ``ranks`` ranks, of ``each`` experts, that has one of the token's: hypergeometric.

    >>> round(copies_by_rank(64, 8, 8, 4), 3)
    3.375
    """
    return ranks * (1 - comb(experts - each, top) / comb(experts, top))


def copies_by_place(experts: int, top: int, here: int) -> float:
    """The same with one if any of its experts is there: a MultiWrite's.

    >>> round(copies_by_place(64, 8, 32), 3)
    0.998
    """
    return 1 - comb(experts - here, top) / comb(experts, top)
