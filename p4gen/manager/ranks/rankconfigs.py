"""The content of InitGroup for each rank of a group that has a place, or whose calls run on a ring."""

from __future__ import annotations

from p4gen.manager.api import HostAddresses, RankChannel, RankConfig, RankTree
from p4gen.manager.fabric import Fabric
from p4gen.manager.ranks.ranks import first_psn
from p4gen.manager.store.record import Record


def rank_config(record: Record, rank: int, fabric: Fabric) -> RankConfig:
    """The configuration of a rank of an active group."""
    placed, view = record.placed, fabric.view
    host = record.spec.ranks[rank]
    if record.ring is not None:
        program = fabric.program(record.spec.ranks)
        assert program is not None
        return RankConfig(
            group=record.spec.name,
            generation=record.generation,
            rank=rank,
            size=len(record.spec.ranks),
            addresses=fabric.addresses(host),
            channels=(),
            first_psn=first_psn(record.ring),
            slots=0,
            sync=record.spec.sync,
            spec=program,
            ring_qp=record.ring,
            leased=record.home is not None,
            ips=tuple(view.names.ip[each] for each in record.spec.ranks),
        )
    assert placed is not None
    first, _ = placed.first.tree.first_hop(rank)
    each = [
        tuple(RankChannel(channel.key, channel.ends[rank].qp, channel.ends[rank].peer) for channel in part.channels)
        for part in placed.parts
    ]
    return RankConfig(
        group=record.spec.name,
        generation=record.generation,
        rank=rank,
        size=len(record.spec.ranks),
        addresses=HostAddresses(view.names.mac[host], view.names.ip[host], each[0][0].peer.mac),
        channels=() if placed.rates else each[0],
        first_psn=placed.first.request.first_psn,
        slots=min(context.slots for _, context in placed.contexts),
        sync=record.spec.sync,
        spec=view.specs[first.key.switch],
        leased=record.home is not None,
        trees=tuple(map(RankTree, each, placed.rates)),
    )
