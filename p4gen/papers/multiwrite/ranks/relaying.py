"""AllGather over several trees at once, in domains whose ranks relay for each other (sections 3.1 and 5.2).

A part of each block goes straight to the ranks of a domain, the rest past ranks of the other domain, so that links
between the domains have something to do, too. Switches relay, or hosts do, which store and forward. Each part is an
AllGather of its own, over a layer of trees of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Final

import numpy as np
from typing_extensions import override

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.host.transport.clock import SECOND, US
from p4gen.net.world.loop import Loop
from p4gen.papers.multiwrite.placing import Waypoint, straight
from p4gen.papers.multiwrite.ranks.arithmetic import direct_share
from p4gen.papers.multiwrite.ranks.calls import Gather, SharedCall, different
from p4gen.papers.multiwrite.ranks.hosts import Bytes, Member
from p4gen.papers.multiwrite.ranks.options import Relay
from p4gen.papers.multiwrite.simulation import Caller, Layer
from p4gen.plan.placement.placer import switch_of
from p4gen.vocabulary.topology import TopologySpec

LOOK: Final = US // 50
"""The time between two looks of a relaying host at what has come, ps."""


@dataclass(frozen=True)
class Scheme:
    """A way to gather. ``domain`` is the number of ranks of a domain; with relays there are two."""

    domain: int
    relay: Relay = Relay.NONE
    direct: Fraction = Fraction(1)
    """x, the share of a block that goes straight to each destination."""
    unicast: bool = False
    """Whether each packet is written to each destination by itself."""
    rate: int = 0
    """Bytes a second that a relaying host forwards."""

    @classmethod
    def balanced(cls, domain: int, relay: Relay, link: int, *, unicast: bool = False, rate: int = 0) -> Scheme:
        """The scheme whose ways end together on a full mesh of links of ``link`` bytes a second (section 5.2)."""
        scheme = cls(domain, relay, unicast=unicast, rate=rate)
        if relay is Relay.HOST:
            return replace(scheme, direct=Fraction(link, link + rate))  # x / (1 - x) = w / w_relay
        return replace(scheme, direct=direct_share(domain, scheme.relays, multicast=not unicast))

    def __str__(self) -> str:
        """The end of a title, as in " in domains of 4, 75% straight, relays: paired"; "" without relays."""
        if self.relay is Relay.NONE:
            return ""
        return f" in domains of {self.domain}, {float(self.direct):.0%} straight, relays: {self.relay}"

    @property
    def relays(self) -> int:
        """How many others relay for each rank."""
        return {Relay.NONE: 0, Relay.FULL: self.domain}.get(self.relay, 1)

    def peers(self, rank: int) -> tuple[int, ...]:
        """The other ranks of a rank's domain."""
        first = rank // self.domain * self.domain
        return tuple(other for other in range(first, first + self.domain) if other != rank)

    def partner(self, rank: int, turn: int = 0) -> int:
        """The rank of the other domain with the same number, or the one so many after it."""
        return (rank // self.domain ^ 1) * self.domain + (rank + turn) % self.domain

    def cuts(self, size: int, payload: int) -> list[tuple[int, int]]:
        """Where the parts of a block begin and end, in bytes: what goes straight, then what each relay gets."""
        packets = size // payload
        first = round(self.direct * packets)
        ends = [first, *(first + (packets - first) * turn // self.relays for turn in range(1, 1 + self.relays))]
        return [(start * payload, end * payload) for start, end in zip([0, *ends], ends, strict=False)]

    def forwards(self, layer: int) -> bool:
        """Whether a layer is that on which hosts forward what they have got."""
        return self.relay is Relay.HOST and layer == 2

    def peers_on(self, layer: int, rank: int) -> tuple[int, ...]:
        """The ranks to which a rank writes on a layer, and which write to it there."""
        if self.relay is not Relay.HOST or not layer:
            return self.peers(rank)
        return self.peers(self.partner(rank)) if self.forwards(layer) else (self.partner(rank),)

    def layers(self, topology: TopologySpec, size: int, payload: int) -> tuple[Layer, ...]:
        """The layers of trees for blocks of ``size`` bytes. Raises ``InputError`` if there are no such relays."""
        sizes = [(end - start) // payload for start, end in self.cuts(size, payload)]
        if self.relay is Relay.HOST:
            ways: list[Waypoint] = [straight] * 3
            sizes.append(sizes[1])
        else:
            ways = [straight, *(self._past(topology, turn) for turn in range(self.relays))]
        return tuple(
            Layer(packets, way, partial(self.peers_on, number))
            for number, (packets, way) in enumerate(zip(sizes, ways, strict=True))
        )

    def _past(self, topology: TopologySpec, turn: int) -> Waypoint:
        switches = [switch_of(topology, host) for host in topology.rank_hosts]
        if len(set(switches)) < len(switches):
            what = f"each host needs a switch of its own, as in mesh-8; those of {topology.name} share some"
            raise InputError(Diagnostic(Option("relay"), f"{self.relay}: {what}"))
        return lambda source, _rank: switches[self.partner(source, turn)]


class Rank(Caller):
    """A rank with its connections of all layers."""

    def __init__(self, members: Sequence[Member], loop: Loop) -> None:
        self.members, self._loop = members, loop
        self.rank = members[0].rank
        self._payload = members[0].layout.spec.payload

    @property
    @override
    def done(self) -> bool:
        return all(member.done for member in self.members)

    @property
    @override
    def problems(self) -> list[str]:
        return [problem for member in self.members for problem in member.problems]

    @property
    def fenced(self) -> int:
        """When it had all that others send it, ps."""
        return max(member.fenced for member in self.members)

    @property
    def ended(self) -> int:
        """When it was done with its last call, ps."""
        return max(member.ended for member in self.members)

    def all_gather(self, block: bytes, scheme: Scheme) -> None:
        """Start an AllGather of a block, a whole number of packets, in its domain; ``gathered`` has the result once
        ``done``.

        Raises ``ValueError`` if it takes more packets than windows have room for.
        """
        cuts = scheme.cuts(len(block), self._payload)
        for member, (start, end) in zip(self.members, cuts, strict=False):
            member.all_gather(block[start:end], apart=scheme.unicast)
        if scheme.relay is Relay.HOST:
            (start, end), (_, inward, onward) = cuts[1], self.members
            _Forwarding(inward, onward, scheme, (end - start) // self._payload, self._loop).begin()

    def gathered(self, scheme: Scheme) -> bytes:
        """The blocks of all ranks of its domain, in their order."""
        sources = sorted((self.rank, *scheme.peers(self.rank)))
        return b"".join(part for source in sources for part in self._parts_of(source, scheme))

    def _parts_of(self, source: int, scheme: Scheme) -> list[bytes]:
        if scheme.relay is not Relay.HOST or source == self.rank:
            return [member.block(source) for member in self.members[: 1 + scheme.relays]]
        first, _, onward = self.members
        return [first.block(source), onward.block(scheme.partner(source))]


@dataclass
class _Forwarding:
    """A host that relays a part of its partner's block: it stores packets, and forwards them in their order."""

    inward: Member
    onward: Member
    scheme: Scheme
    packets: int
    loop: Loop
    taken: int = 0
    free_at: int = 0

    def begin(self) -> None:
        """Begin the gather by which the host forwards, and take the packets that have come."""
        self.onward.begin_gather(b"")
        self._look(None)

    def _look(self, _: None) -> None:
        """Take what has come, have each packet sent after the time that the rate gives, and look again until all have
        come."""
        size = self.onward.layout.spec.payload
        for packet in self.inward.arrived(self.scheme.partner(self.inward.rank), self.taken):
            self.free_at = max(self.free_at, self.loop.now) + size * SECOND // self.scheme.rate
            self.loop.at(self.free_at, self._send, (packet, self.taken))
            self.taken += 1
        if self.taken < self.packets:
            self.loop.at(self.loop.now + LOOK, self._look)
        else:
            self.loop.at(max(self.free_at, self.loop.now), self._end)

    def _send(self, stored: tuple[bytes, int]) -> None:
        packet, place = stored
        self.onward.write_block(packet, place, apart=self.scheme.unicast)

    def _end(self, _: None) -> None:
        self.onward.end_gather(self.packets, apart=self.scheme.unicast)


@dataclass(frozen=True)
class Relayed:
    """An AllGather in domains; ``blocks`` has a row of bytes for each rank."""

    blocks: Bytes
    scheme: Scheme
    payload: int

    def start(self, rank: Rank) -> None:
        """Have a rank begin to gather, with its own block."""
        rank.all_gather(self.blocks[rank.rank].tobytes(), self.scheme)

    def problem(self, rank: Rank) -> str:
        """How a rank's result differs from NumPy's; "" if it does not."""
        first = rank.rank // self.scheme.domain * self.scheme.domain
        right = self.blocks[first : first + self.scheme.domain].reshape(-1)
        return different("bytes", np.frombuffer(rank.gathered(self.scheme), np.uint8), right)

    def layer(self, number: int) -> SharedCall:
        """What it comes to on a layer: an AllGather of a part of each block, to others of which hosts forward it."""
        scheme, rows = self.scheme, self.blocks
        cuts = scheme.cuts(rows.shape[1], self.payload)
        if scheme.forwards(number):
            rows = rows[[scheme.partner(rank) for rank in range(len(rows))]]
        start, end = cuts[1 if scheme.forwards(number) else number]
        return Gather(rows[:, start:end], partial(scheme.peers_on, number))
