"""The content of InitGroup for each rank of a group that has a place, or whose calls run on a ring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from p4gen.host.transport.verbs import Peer
from p4gen.manager.api import RankChannel, RankConfig, RankTree, RingEnd
from p4gen.manager.fabric import Fabric
from p4gen.manager.ranks.ranks import first_psn
from p4gen.manager.store.record import Record
from p4gen.plan.placement.numbers import Ring
from p4gen.plan.placement.placed import Channel, PlacedGroup


def rank_config(record: Record, rank: int, fabric: Fabric) -> RankConfig:
    """The configuration of a rank of an active group."""
    placed, view = record.placed, fabric.view
    host = record.spec.ranks[rank]
    addresses, ips = fabric.addresses(host), [view.names.ip[each] for each in record.spec.ranks]
    if record.ring is not None:
        program = fabric.program(record.spec.ranks)
        assert program is not None
        return RankConfig(
            group=record.spec.name,
            generation=record.generation,
            rank=rank,
            size=len(record.spec.ranks),
            addresses=addresses,
            channels=(),
            first_psn=first_psn(record.ring[0].right),
            slots=0,
            sync=record.spec.sync,
            spec=program,
            term=record.spec.term,
            leased=record.home is not None,
            ring=ring_ends(record.ring, rank, addresses.gateway, ips),
        )
    assert placed is not None
    first, _ = placed.first.tree.first_hop(rank)
    each = [tuple(_channel(channel, part, rank) for channel in part.channels) for part in placed.parts]
    return RankConfig(
        group=record.spec.name,
        generation=record.generation,
        rank=rank,
        size=len(record.spec.ranks),
        addresses=replace(addresses, gateway=each[0][0].peer.mac),
        channels=() if placed.rates else each[0],
        first_psn=placed.first.request.first_psn,
        slots=min(context.slots for _, context in placed.contexts),
        sync=record.spec.sync,
        spec=view.specs[first.key.switch],
        term=record.spec.term,
        leased=record.home is not None,
        ring=() if (ring := placed.first.ring) is None else ring_ends(ring, rank, addresses.gateway, ips),
        trees=tuple(map(RankTree, each, placed.rates)),
        memory=record.spec.memories[rank] if record.spec.memories else None,
    )


def ring_ends(ring: Ring, rank: int, gateway: int, ips: Sequence[int]) -> tuple[RingEnd, ...]:
    """A rank's ends of a ring. ``gateway`` is the MAC address that it sends to, ``ips`` are the addresses of all
    ranks."""
    left, right, star = (rank - 1) % len(ring), (rank + 1) % len(ring), range(1, len(ring)) if rank == 0 else (0,)
    far = [(left, ring[left].right), (right, ring[right].left)]
    far += [(other, ring[other].star[max(rank - 1, 0)]) for other in star]
    return tuple(RingEnd(own, Peer(gateway, ips[to], qp)) for own, (to, qp) in zip(ring[rank], far, strict=True))


def _channel(channel: Channel, placed: PlacedGroup, rank: int) -> RankChannel:
    first, _ = placed.tree.first_hop(rank)
    end, context = channel.ends[rank], channel.contexts[first.key]
    return RankChannel(channel.key, end.qp, end.peer, context.context, context.epoch)
