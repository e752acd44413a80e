"""NICs: queue pairs that share a line, and what they check of frames that arrive."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, ask, give
from p4gen.compiled.links import transmit
from p4gen.compiled.machine import copy, crc_from, load32, load64, store64
from p4gen.compiled.memory import FULL, HEAD, KEY, KNOWN, MANY, NEVER, NONE, SLOT_OF_TEMPLATES, Ask, Event, column_at
from p4gen.compiled.pairs import BODY_AT, MASK, be_listed, kick, notify_congestion, take_answer, take_turn
from p4gen.compiled.pausing import append, waiting_priorities
from p4gen.compiled.records import (
    cell_at,
    direction_at,
    every,
    host_at,
    known_address,
    known_at,
    left_at,
    length_at,
    pair_at,
)
from p4gen.compiled.requester import on_ack, on_cnp, on_response, ready, send
from p4gen.compiled.responder import on_request
from p4gen.host.transport.wire import ACK_REQUEST, CRC_OF_ONES, RESIDUE
from p4gen.rocev2.codes import ETHERTYPE_IPV4, ETHERTYPE_IPV6, PROTOCOL_UDP, ROCE_UDP_PORT
from p4gen.rocev2.layouts import ROCE
from p4gen.rocev2.opcodes import Opcode, is_response
from p4gen.rocev2.places import IPV4, IPV6, Places

_PUMP = int(Event.PUMP)
_REFUSED, _TRANSMIT, _PROBLEM = int(Ask.REFUSED), int(Ask.TRANSMIT), int(Ask.PROBLEM)
_ACKNOWLEDGE, _CNP = int(Opcode.ACKNOWLEDGE), int(Opcode.CNP)
_ANSWERS = (_ACKNOWLEDGE, _CNP, *(int(opcode) for opcode in Opcode if is_response(opcode)))
"""Opcodes of packets that are for the sending half of a queue pair."""
_IP, _UDP, _LEAST, _ANSWER_SIZE = IPV4.ip, IPV4.udp, IPV4.shortest, IPV4.answer
_ETHER_TYPE = ROCE.bytes("ethernet.ether_type").start
_ECN, _CE_OF_IPV4, _CE_OF_IPV6 = IPV4.ecn_at, IPV4.ce, IPV6.ce
_LENGTH_OF_IPV4, _LENGTH_OF_IPV6 = IPV4.length.start, IPV6.length.start
_PROTOCOL_OF_IPV4, _PROTOCOL_OF_IPV6 = IPV4.protocol_at, IPV6.protocol_at
_SOURCE_OF_IPV4, _SOURCE_OF_IPV6 = IPV4.src_addr.start, IPV6.src_addr.start
_DESTINATION_OF_IPV4, _DESTINATION_OF_IPV6 = IPV4.dst_addr.start, IPV6.dst_addr.start
_PLAIN = IPV4.first[1]
"""The first byte of an IPv4 header without options."""
_PORT, _UDP_LENGTH, _OPCODE = IPV4.udp_port.start, IPV4.udp_length.start, IPV4.opcode_at
_WORD = 8
_PARTITION = KEY - 2
"""The partition key ends before resv8a."""
_VERSION = 0xF << 16
_KEY_OF_PARTITION = 0x7FFF
"""The bits of a word that begins with the opcode, and of the partition key."""


def _variant(places: Places) -> npt.NDArray[np.int64]:
    """The bits from the IP header to resv8a that count as ones in an ICRC, in words as they are in memory."""
    bits = places.variant[places.ip : places.resv8a_at + 1]
    return np.frombuffer(bits.ljust(-(-len(bits) // _WORD) * _WORD, b"\0"), np.int64)


_VARIANT_OF_IPV4, _VARIANT_OF_IPV6 = _variant(IPV4), _variant(IPV6)
_START = column_at(KNOWN, "start")
_SCRAMBLE = 0x9E3779B1


# --- sending ---


@compiled
def pump(world: int, number: int) -> None:
    """Give the line as many packets as a NIC holds ready."""
    of, host = every(world), host_at(world, number)
    if host.pump_at == NONE or host.pump_at > of.now:
        return  # another pending event will handle it
    host.pump_at = NONE
    when = of.now
    if host.direction >= 0 and direction_at(world, host.direction).controlled:
        _feed(world, number)
        return
    for _ in range(of.burst):
        frame = _next_frame(world, number, when)
        if frame == NONE:
            host.free_at = when
            _wait_for_rate(world, number, when)
            return
        if host.direction >= 0:
            when = transmit(world, host.direction, frame, when)
        else:
            when = _leave(world, number, frame, when)
    host.free_at = when
    host.pump_at = when
    at(world, when, _PUMP, number, 0)


@compiled
def _feed(world: int, number: int) -> None:
    """Give a line with priorities packets until one of each priority that has any waits there. The line asks for more
    when none waits that it may send."""
    host, now = host_at(world, number), every(world).now
    while True:
        host.held = waiting_priorities(world, host.direction)
        frame = _next_frame(world, number, now)
        if frame == NONE:
            break
        append(world, host.direction, frame, NONE)
    host.free_at = now
    _wait_for_rate(world, number, now)


@compiled
def _leave(world: int, number: int, frame: int, when: int) -> int:
    """Give a frame to the line of a host that no direction leads from. Returns when the line is free again."""
    of = every(world)
    if host_at(world, number).direction == NONE:
        free = ask(world, _TRANSMIT, number, frame, when)
        give(world, frame)
        return free
    if of.left_used == MANY:
        ask(world, _PROBLEM, FULL, 0, 0)
        return when
    left = left_at(world, of.left_used)
    left.host = number
    left.frame = frame
    of.left_used += 1
    return when


@compiled
def send_other(world: int, number: int, frame: int) -> None:
    """Send a frame of no queue pair, behind those that the line has."""
    now, direction = every(world).now, host_at(world, number).direction
    if direction < 0:
        _leave(world, number, frame, now)
        at(world, now, _PUMP, number, 0)  # whoever waits for an event sends what has left
    elif direction_at(world, direction).controlled:
        append(world, direction, frame, NONE)
    else:
        transmit(world, direction, frame, now)


@compiled
def _next_frame(world: int, number: int, when: int) -> int:
    host = host_at(world, number)
    passed = NONE
    while host.answering not in (NONE, passed):
        first = host.answering
        host.answering = pair_at(world, first).next_answering
        if host.held >> pair_at(world, first).priority & 1:
            be_listed(world, first)
            passed = first if passed == NONE else passed
            continue
        frame = take_answer(world, first)
        if frame != NONE:
            be_listed(world, first)
            return frame
    for _ in range(host.turns):
        first = host.turn
        host.turn = pair_at(world, first).next_turn
        host.turns -= 1
        if ready(world, first, when):
            take_turn(world, first)
            pair = pair_at(world, first)
            if pair.free_at <= when and not host.held >> pair.priority & 1:
                return send(world, first, when)
        else:
            pair_at(world, first).in_turn = False  # the pair calls kick when that changes
    return NONE


@compiled
def _wait_for_rate(world: int, number: int, when: int) -> None:
    """No pair may send now: try again when the first rate allows it."""
    host = host_at(world, number)
    due, place = NEVER, host.turn
    for _ in range(host.turns):
        pair = pair_at(world, place)
        if not host.held >> pair.priority & 1:
            due = min(due, pair.free_at)
        place = pair.next_turn
    if due != NEVER:
        host.pump_at = max(when, due)
        at(world, host.pump_at, _PUMP, number, 0)


# --- receiving ---


@compiled
def place_of(world: int, host: int, number: int) -> int:
    """The place of a queue pair in the table, or the free place where it belongs. A place has a key, the host and the
    pair's number, and the number of its record; 1 is added to both."""
    key = (host << 24 | number) + 1
    mask = every(world).mask
    place = (key * _SCRAMBLE) & mask
    while cell_at(world, place).key != 0 and cell_at(world, place).key != key:
        place = (place + 1) & mask
    return place


@compiled
def receive(world: int, host: int, frame: int) -> None:
    """Receive a frame. Python reads whatever is not a valid packet of a working queue pair."""
    of = host_at(world, host)
    shift = of.shift
    start, size = address(world, frame) + shift, length_at(world, frame).value - shift
    number = NONE
    if size >= _LEAST:
        number = cell_at(world, place_of(world, host, load32(start + KEY) & MASK)).value - 1
    if number == NONE or pair_at(world, number).broken or not _valid(world, of, number, frame):
        ask(world, _REFUSED, host, frame, 0)
        give(world, frame)
        return
    word = load32(start + HEAD)
    opcode = load32(start + _OPCODE) >> 24
    mark = _CE_OF_IPV6 if shift else _CE_OF_IPV4
    if load32(start - shift + _ECN) >> 24 & mark == mark:
        notify_congestion(world, number)
    if opcode not in _ANSWERS:
        on_request(world, number, opcode, word & MASK, word >= ACK_REQUEST, frame)
        return
    if opcode == _CNP:
        on_cnp(world, number)
    elif opcode != _ACKNOWLEDGE:
        on_response(world, number, opcode, word & MASK, frame)
        kick(world, number)
    elif size == _ANSWER_SIZE:
        aeth = load32(start + BODY_AT)
        on_ack(world, number, word & MASK, aeth >> 24, aeth & MASK)
        kick(world, number)
    else:
        ask(world, _REFUSED, host, frame, 0)
    give(world, frame)


@compiled
def _valid(world: int, host: Any, number: int, frame: int) -> bool:
    """Whether a frame is a valid packet of its queue pair. What all packets of one kind begin with is remembered."""
    start, size, shift = address(world, frame), length_at(world, frame).value, host.shift
    opcode = load32(start + shift + _OPCODE) >> 24
    place = number * SLOT_OF_TEMPLATES + (opcode & (SLOT_OF_TEMPLATES - 1))
    known = known_at(world, place)
    begins = known_address(world, place) + _START
    key = KEY + shift
    if not (known.valid and _same(begins, start, key)):
        if not _begins_well(host, pair_at(world, number), start):
            return False
        known.valid = True
        known.crc = _crc_of_start(world, start, begins, shift)
        known.length = _UDP + shift + (load32(start + shift + _UDP_LENGTH) >> 16)
        copy(begins, start, key)
    if size != known.length:
        return False
    return not host.checks_icrc or crc_from(every(world).crc, known.crc, start + key + 1, size - key - 1) == RESIDUE


@compiled
def _same(one: int, two: int, size: int) -> bool:
    """Whether two frames begin with the same bytes."""
    for i in range(0, size - _WORD, _WORD):
        if load64(one + i) != load64(two + i):
            return False
    return load64(one + size - _WORD) == load64(two + size - _WORD)


@compiled
def _begins_well(host: Any, pair: Any, start: int) -> bool:
    """Whether the first bytes of a frame are as in ``p4gen.host.transport.wire.Reader``, from the pair's peer."""
    told = _told_by_ipv6(host, pair, start) if pair.shift else _told_by_ipv4(host, pair, start)
    roce = start + pair.shift
    return (
        (load32(start) << 16 | load32(start + 4) >> 16) == host.mac
        and load32(roce + _PORT) >> 16 == ROCE_UDP_PORT
        and load32(roce + _UDP_LENGTH) >> 16 == told
        and _UDP + told >= _LEAST
        and load32(roce + _OPCODE) & _VERSION == 0
        and load32(roce + _PARTITION) >> 16 & _KEY_OF_PARTITION == _KEY_OF_PARTITION
    )


@compiled
def _told_by_ipv4(host: Any, pair: Any, start: int) -> int:
    """Bytes from UDP on, as the header of an IPv4 packet from the peer has them; ``NONE`` for another one."""
    sums = 0
    for i in range(_IP, _UDP, 2):
        sums += load32(start + i) >> 16
    sums = (sums & 0xFFFF) + (sums >> 16)
    right = (
        load32(start + _ETHER_TYPE) >> 16 == ETHERTYPE_IPV4
        and load32(start + _IP) >> 24 == _PLAIN
        and load32(start + _PROTOCOL_OF_IPV4) >> 24 == PROTOCOL_UDP
        and (sums & 0xFFFF) + (sums >> 16) == 0xFFFF
        and load32(start + _DESTINATION_OF_IPV4) == host.ip
        and load32(start + _SOURCE_OF_IPV4) == pair.peer_ip
    )
    return (load32(start + _LENGTH_OF_IPV4) >> 16) - (_UDP - _IP) if right else NONE


@compiled
def _told_by_ipv6(host: Any, pair: Any, start: int) -> int:
    """The same of an IPv6 packet."""
    right = (
        load32(start + _ETHER_TYPE) >> 16 == ETHERTYPE_IPV6
        and load32(start + _IP) >> 28 == 6
        and load32(start + _PROTOCOL_OF_IPV6) >> 24 == PROTOCOL_UDP
        and load64(start + _DESTINATION_OF_IPV6) == host.ip
        and load64(start + _DESTINATION_OF_IPV6 + _WORD) == host.ip_rest
        and load64(start + _SOURCE_OF_IPV6) == pair.peer_ip
        and load64(start + _SOURCE_OF_IPV6 + _WORD) == pair.peer_ip_rest
    )
    return load32(start + _LENGTH_OF_IPV6) >> 16 if right else NONE


@compiled
def _crc_of_start(world: int, start: int, room: int, shift: int) -> int:
    """The invariant CRC up to the BTH's resv8a, with variant fields as ones, made in the room of a known start."""
    variant = _VARIANT_OF_IPV6 if shift else _VARIANT_OF_IPV4
    for i in range(len(variant)):
        store64(room + i * _WORD, load64(start + _IP + i * _WORD) | variant[i])
    return crc_from(every(world).crc, CRC_OF_ONES, room, KEY + shift + 1 - _IP)
