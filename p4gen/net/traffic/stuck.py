"""Why traffic between hosts does not end: which connections wait for which PSN, where it was lost, and the switches'
state.

That state is read from the registers of the switch's program (``state``), if the program's family says how.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from p4gen.net.collectives.state import connection_state
from p4gen.net.traffic.wiring import Track
from p4gen.net.world.network import Network
from p4gen.plan.placement.plain import PlainPlacement
from p4gen.rocev2.places import places_for, places_in
from p4gen.vocabulary import ProgramSpec

_MOST: Final = 4
"""Connections that are examined."""


def stuck(
    tracks: Sequence[Track], network: Network, placement: PlainPlacement, specs: Mapping[str, ProgramSpec]
) -> Iterator[str]:
    """The findings about connections with packets that are not acknowledged, one line each."""
    waiting = [track for track in tracks if track.source.requester.una < track.source.requester.high]
    for track in waiting[:_MOST]:
        requester, responder, peer = track.source.requester, track.destination.responder, track.source.peer
        psn, expected = requester.psn(requester.una), responder.psn(responder.expected)
        more = requester.high - requester.una - 1
        yield (
            f"{track.name} waits for the ACK of PSN {psn:#08x}"
            f"{f' and of {more} more' if more else ''}; the receiver expects PSN {expected:#08x}"
        )
        yield from _lost(network, peer.ip, peer.qp, expected)
        for switch, connections in placement.connections.items():
            for here in connections:
                end = here.connection.destination
                if here.destination_port is not None and (end.ip, end.qp) == (peer.ip, peer.qp):
                    for line in connection_state(specs[switch], network.switches[switch], here, expected):
                        yield f"{switch}, {track.name}: {line}"
    if len(waiting) > _MOST:
        yield f"{len(waiting) - _MOST} more connections wait"


def _lost(network: Network, ip: int, qp: int, psn: int) -> Iterator[str]:
    """The losses of a request on links, as far as they are remembered."""
    places = places_for(ip)
    wanted = (places.dst_addr, ip), (places.dest_qp, qp), (places.psn, psn)
    found = Counter(
        (f"{passage.src}>{passage.dst}", passage.reason)
        for passage in network.recent_drops
        if places_in(passage.frame) is places
        and all(int.from_bytes(passage.frame[where]) == value for where, value in wanted)
    )
    for (place, reason), count in found.items():
        yield f"PSN {psn:#08x} was lost on {place}{f' {count} times' if count > 1 else ''} ({reason})"
