"""AllGather in two domains of four NPUs on a full mesh of eight (sections 3.1 and 5.2, Figures 2, 6 and 7).

Links between the domains are idle unless NPUs of the other domain relay: the partner alone (paired relaying), or all
four. A share x of a fragment goes straight, the rest past the relays, so that both ends meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from p4gen.errors import FailedError
from p4gen.families.multiwrite.paths import Paths, Piece, Relay, straight
from p4gen.families.multiwrite.placing import Waypoint
from p4gen.families.multiwrite.spec import MultiwriteSpec
from p4gen.model import EngineName
from p4gen.spec.topology import load_topology

NETWORK: Final = "mesh-8"
DOMAIN: Final = 4
"""NPUs of a domain (TP 4)."""
LINK: Final = 56_000_000_000
"""Bytes a second of a link between NPUs (section 6.1)."""
RELAY: Final = 24_000_000_000
"""Bytes a second that a relay's CPU forwards, by which the paper's MultiWrite takes 0.70 of direct writes: section 5.2
splits so that both ways end together, x / (1 - x) = w / w_relay."""


@dataclass(frozen=True)
class Scheme:
    """A way to gather."""

    name: str
    relays: int
    """NPUs of the other domain that relay for each source."""
    multicast: bool
    direct: float
    """x, the share of a fragment that goes straight to each destination."""
    factor: float
    """Duration by the paper's model, in fragments a link: s/w of direct writes is 1."""
    in_hosts: bool = False
    """Whether hosts relay, ``RELAY`` bytes a second each, rather than switches."""


DIRECT: Final = Scheme("direct", 0, False, 1, 1)
UNICAST: Final = Scheme("unicast multi-path, paired relays", 1, False, 3 / 4, 3 / 4)
MULTIWRITE: Final = Scheme("MultiWrite, paired relays", 1, True, 1 / 2, 1 / 2)
IN_HOSTS: Final = Scheme("MultiWrite, paired relays in hosts", 1, True, 7 / 10, 7 / 10, in_hosts=True)
FULL_UNICAST: Final = Scheme("unicast multi-path, four relays", 4, False, 3 / 5, 3 / 5)
FULL: Final = Scheme("MultiWrite, four relays", 4, True, 1 / 2, 1 / 2)
SCHEMES: Final = (DIRECT, UNICAST, MULTIWRITE, IN_HOSTS, FULL_UNICAST, FULL)


def program() -> MultiwriteSpec:
    """The program of the NPUs' switches."""
    return MultiwriteSpec(payload=4096, contexts=64, edges=8, slots=128, ports=8)


def peers(rank: int) -> tuple[int, ...]:
    """The other ranks of a rank's domain."""
    first = rank // DOMAIN * DOMAIN
    return tuple(other for other in range(first, first + DOMAIN) if other != rank)


def _past(turn: int) -> Waypoint:
    """Past a relay of the other domain: the partner, or the one that comes so many after it."""
    return lambda source, _rank: f"n{(source // DOMAIN ^ 1) * DOMAIN + (source + turn) % DOMAIN}"


def gather(scheme: Scheme, packets: int, engine: EngineName = "jit") -> int:
    """The duration of an AllGather of fragments of so many packets, ps. Every byte is checked.

    Raises ``FailedError`` if a rank has anything else than the fragments of its domain.
    """
    spec, topology = program(), load_topology(NETWORK)
    hosts = scheme.in_hosts
    layers = [straight, straight, straight] if hosts else [straight, *(_past(turn) for turn in range(scheme.relays))]
    size = packets * spec.payload
    fragments = [_fragment(rank, size) for rank in range(2 * DOMAIN)]
    net = Paths(topology, spec, layers, (DOMAIN + 1) * size, engine=engine)
    pieces = (piece for rank in range(2 * DOMAIN) for piece in _pieces(scheme, spec, rank, fragments[rank]))
    relays = [_relay(scheme, spec, rank, fragments[rank]) for rank in range(2 * DOMAIN)] if hosts else []
    ended = net.run(pieces, relays, RELAY)
    for rank in range(2 * DOMAIN):
        for source in peers(rank):
            at = source % DOMAIN * size
            if net.memory[rank][at : at + size] != fragments[source]:
                raise FailedError(f"{scheme.name}: rank {rank} has not the fragment of rank {source}")
    return max(ended)


def _fragment(rank: int, size: int) -> bytes:
    return b"".join((rank << 24 | at).to_bytes(4) for at in range(size // 4))


def _pieces(scheme: Scheme, spec: MultiwriteSpec, rank: int, fragment: bytes) -> Iterator[Piece]:
    """The writes of a rank: packet by packet to its peers in turn, so that all its links are busy."""
    packets = len(fragment) // spec.payload
    first = round(scheme.direct * packets)
    base = rank % DOMAIN * len(fragment)
    others = peers(rank)
    for number in range(packets):
        at = number * spec.payload
        data = fragment[at : at + spec.payload]
        layer = 0 if number < first else 1 + (number - first) % scheme.relays
        if layer and scheme.in_hosts:
            yield Piece(rank, layer, data, (_partner(rank),), DOMAIN * len(fragment) + at)
        elif layer and scheme.multicast:
            yield Piece(rank, layer, data, others, base + at)
        else:
            yield from (Piece(rank, layer, data, (other,), base + at) for other in others)


def _partner(rank: int) -> int:
    """The NPU of the same number in the other domain."""
    return (rank + DOMAIN) % (2 * DOMAIN)


def _relay(scheme: Scheme, spec: MultiwriteSpec, rank: int, fragment: bytes) -> Relay:
    """What the partner of a rank forwards: one MultiWrite for each packet that the rank sends it."""
    packets = len(fragment) // spec.payload
    first = round(scheme.direct * packets)
    return Relay(
        rank,
        1,
        _partner(rank),
        stored=DOMAIN * len(fragment) + first * spec.payload,
        packets=packets - first,
        onward=2,
        ranks=peers(rank),
        offset=rank % DOMAIN * len(fragment) + first * spec.payload,
    )
