"""The packets that a host may send in another's name: altered packets of every kind that arrives at its switch.

The host knows addresses, queue pairs and PSNs. It cannot choose the port at which its packets arrive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from p4gen.rocev2 import psn as serial
from p4gen.rocev2.headers import AETH
from p4gen.rocev2.opcodes import Nak, NakCode, Opcode, RnrNak
from p4gen.rocev2.packet import RocePacket, parse
from p4gen.vocabulary.ticks import InternalOpcode

Cursor = Callable[[RocePacket, int], RocePacket]
"""Makes the packet that goes round in a switch, from a tick and a PSN."""
_FEW = 4


def cursor(tick: RocePacket, psn: int) -> RocePacket:
    """A cursor of ``p4gen.program.repair``: from a PSN on, a few packets are to be sent again."""
    return replace(
        tick,
        bth=replace(tick.bth, opcode=InternalOpcode.CURSOR, psn=psn),
        payload=AETH(1, serial.add(psn, _FEW)).pack(),
    )


def forged(frames: Iterable[bytes], ticks: Iterable[bytes], make: Cursor, psn: int) -> tuple[bytes, ...]:
    """The first and the last packet of each kind that others have sent, altered; and a tick and a cursor from ``psn``
    on, as if from the switch's agent and from the switch itself."""
    kinds: dict[tuple[int, int], list[bytes]] = {}
    for frame in frames:
        packet = parse(frame)
        for made in _altered(packet):
            kinds.setdefault((made.bth.opcode, -1 if made.aeth is None else made.aeth.syndrome), []).append(
                made.sealed().to_bytes()
            )
    found = [frame for made in kinds.values() for frame in (made[0], made[-1])]
    for frame in ticks:
        found += [frame, make(parse(frame), psn).sealed().to_bytes()]
    return tuple(dict.fromkeys(found))


def _altered(packet: RocePacket) -> Iterator[RocePacket]:
    """The packet with other contents: other data, another number of packets, ACKs that are too early, and NAKs in their
    place."""
    if packet.bth.opcode == Opcode.ACKNOWLEDGE and packet.aeth is not None:
        yield packet
        for nak in (Nak(NakCode.PSN_SEQUENCE_ERROR), RnrNak(1)):
            yield replace(packet, aeth=replace(packet.aeth, syndrome=nak.syndrome))
    elif packet.payload:
        yield replace(packet, payload=packet.payload[:-1] + bytes([packet.payload[-1] ^ 1]))
    elif packet.immdt is not None:
        yield replace(packet, immdt=replace(packet.immdt, value=packet.immdt.value ^ 1))
