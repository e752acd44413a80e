"""The receiving half of a reliable connection (InfiniBand volume 1, 9.7.1, 9.7.4 and 9.7.5; Themis §2.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from p4gen.compiled.cached import compiled
from p4gen.compiled.channels import on_received
from p4gen.compiled.elements import copy_elements
from p4gen.compiled.frames import address, ask, give
from p4gen.compiled.machine import load32
from p4gen.compiled.memory import NONE, Ask, Pool
from p4gen.compiled.missing import ask_ahead, ask_for_oldest, send_nak
from p4gen.compiled.pairs import BODY_AT, HALF, ICRC_SIZE, MASK, acknowledge, answer
from p4gen.compiled.pools import give_record, take_record
from p4gen.compiled.records import kept_at, length_at, pair_at, receive_at
from p4gen.compiled.requester import RECOVERIES, STATUSES
from p4gen.host.transport.verbs import Recovery, Status
from p4gen.rocev2.headers import RETH, ImmDt
from p4gen.rocev2.opcodes import (
    Nak,
    NakCode,
    Opcode,
    ends_message,
    has_imm,
    has_reth,
    is_send,
    is_write,
    starts_message,
)

KEPT_AHEAD: Final = 1 << 16
"""Packets that a NIC can keep."""
_GO_BACK_N, _IDEAL, _ORACLE = (RECOVERIES.index(each) for each in (Recovery.GO_BACK_N, Recovery.IDEAL, Recovery.ORACLE))
_FLUSHED, _LENGTH_ERROR = STATUSES.index(Status.FLUSHED), STATUSES.index(Status.LOCAL_LENGTH_ERROR)
_RECEIVED, _FAIL, _WRITE, _OVERRUN, _EXECUTE, _REPEAT = (
    int(each) for each in (Ask.RECEIVED, Ask.FAIL, Ask.WRITE, Ask.OVERRUN, Ask.EXECUTE, Ask.REPEAT)
)
_INVALID = Nak(NakCode.INVALID_REQUEST).syndrome
_IMMEDIATE = ImmDt.SIZE
_EXECUTED = tuple(int(opcode) for opcode in (Opcode.READ_REQUEST, Opcode.COMPARE_SWAP, Opcode.FETCH_ADD))
_STARTS, _ENDS, _IS_SEND, _HAS_IMMEDIATE, _BODY = range(5)
_TRAITS = np.full((256, 5), NONE)
"""By opcode: whether it starts and ends a message, is a SEND, has immediate data, and where the payload begins."""
for _opcode in Opcode:
    if is_send(_opcode) or is_write(_opcode):
        _body = BODY_AT + RETH.SIZE * has_reth(_opcode) + ImmDt.SIZE * has_imm(_opcode)
        _TRAITS[_opcode] = (
            starts_message(_opcode), ends_message(_opcode), is_send(_opcode), has_imm(_opcode), _body,
        )  # fmt: skip
_KEPT = int(Pool.KEPT)
_RECEIVES = int(Pool.RECEIVES)


@compiled
def on_request(world: int, number: int, opcode: int, psn: int, asks: bool, frame: int) -> None:
    """Handle a request packet, and free its frame unless it is kept."""
    pair = pair_at(world, number)
    ahead = (psn - pair.received_psn - pair.expected) & MASK
    executes = opcode in _EXECUTED
    if executes:
        asks = False  # the response takes the place of an ACK
    if ahead == 0:
        accepted = _accept(world, number, opcode, frame)
        give(world, frame)
        if accepted:
            pair.nak_sent = False
            if pair.kept != NONE and _take_kept(world, number):
                asks = True
            if pair.kept != NONE and pair.recovery == _IDEAL and not pair.selective:
                ask_for_oldest(world, number)
            if asks and not pair.broken:
                acknowledge(world, number)
    elif ahead >= HALF:
        # A duplicate: the ACK may have been lost, so everything that has arrived is acknowledged again (9.7.4.2.1).
        pair.duplicates += 1
        if executes:
            ask(world, _REPEAT, number, frame, pair.expected + ahead - MASK - 1)
        else:
            acknowledge(world, number)
        give(world, frame)
    else:
        _ahead_of_turn(world, number, pair.expected + ahead, opcode, asks, frame)


# --- packets out of order ---


@compiled
def _ahead_of_turn(world: int, number: int, seq: int, opcode: int, asks: bool, frame: int) -> None:
    """Handle a packet before which others are missing."""
    pair = pair_at(world, number)
    pair.out_of_order += 1
    too_far = pair.recovery != _GO_BACK_N and seq - pair.expected >= KEPT_AHEAD
    if pair.recovery == _GO_BACK_N or too_far or not _keep(world, number, seq, opcode, asks, frame):
        give(world, frame)
    if too_far:
        return
    if pair.recovery == _IDEAL:
        ask_ahead(world, number, seq)
        pair.seen = max(pair.seen, seq + 1)
    elif not pair.nak_sent and pair.recovery != _ORACLE:
        pair.nak_sent = True
        send_nak(world, number, pair.expected)


@compiled
def _keep(world: int, number: int, seq: int, opcode: int, asks: bool, frame: int) -> bool:
    """Keep a packet; False if it is kept already. Kept packets are listed by number, the newest is the nearest to the
    end."""
    pair = pair_at(world, number)
    before = pair.last_kept
    while before != NONE and kept_at(world, before).seq > seq:
        before = kept_at(world, before).before
    if before != NONE and kept_at(world, before).seq == seq:
        return False
    place = take_record(world, _KEPT)
    following = pair.kept if before == NONE else kept_at(world, before).following
    entry = kept_at(world, place)
    entry.seq = seq
    entry.opcode = opcode
    entry.asks = asks
    entry.frame = frame
    entry.following = following
    entry.before = before
    if before == NONE:
        pair.kept = place
    else:
        kept_at(world, before).following = place
    if following == NONE:
        pair.last_kept = place
    else:
        kept_at(world, following).before = place
    return True


@compiled
def take_first_kept(world: int, number: int) -> int:
    """Take the first packet that is kept from the list. Returns its frame."""
    pair = pair_at(world, number)
    place = pair.kept
    entry = kept_at(world, place)
    pair.kept = entry.following
    if pair.kept == NONE:
        pair.last_kept = NONE
    else:
        kept_at(world, pair.kept).before = NONE
    give_record(world, _KEPT, place)
    return entry.frame


@compiled
def _take_kept(world: int, number: int) -> bool:
    """Process the kept packets that are now in order. Returns whether one of them asked for an ACK."""
    pair = pair_at(world, number)
    asked = False
    while pair.kept != NONE and kept_at(world, pair.kept).seq == pair.expected:
        asks = kept_at(world, pair.kept).asks != 0
        opcode = kept_at(world, pair.kept).opcode
        frame = take_first_kept(world, number)
        accepted = _accept(world, number, opcode, frame)
        give(world, frame)
        if not accepted:
            break
        asked = asked or asks
    return asked


# --- packets in order ---


@compiled
def _accept(world: int, number: int, opcode: int, frame: int) -> bool:
    """Process the expected packet. Returns whether it was not refused."""
    pair = pair_at(world, number)
    traits = _TRAITS[opcode]
    starts, ends, is_send = traits[_STARTS] == 1, traits[_ENDS] == 1, traits[_IS_SEND]
    immediate, body = traits[_HAS_IMMEDIATE] == 1, traits[_BODY]
    # A first packet is valid only between messages; the others continue the same kind of message.
    if body == NONE:
        return _execute(world, number, opcode, frame)
    body += pair.shift
    if starts != (pair.inside == NONE) or pair.inside not in (NONE, is_send):
        return _refuse(world, number, _INVALID)
    size = length_at(world, frame).value - body - ICRC_SIZE
    # FIRST and MIDDLE fill the path MTU exactly; a LAST is not empty (9.7.4.1.6).
    if size < 0 or size > pair.mtu or (not ends and size != pair.mtu) or (ends and not starts and size == 0):
        return _refuse(world, number, _INVALID)
    if starts:
        pair.filled = 0
        pair.has_receive = False
        if is_send:
            if not _take_receive(world, number):
                return False
            pair.room, pair.size, pair.width = pair.taken_room, pair.taken_size, pair.taken_width
        else:
            room = ask(world, _WRITE, number, frame, size)
            if room < 0:
                return _refuse(world, number, -room)
            pair.room = room
            pair.size = load32(address(world, frame) + BODY_AT + pair.shift + 12)
            pair.width = 1
    if ends and immediate and not pair.has_receive and not _take_receive(world, number):
        return False
    if size > 0:
        filled = pair.filled
        pair.filled += size
        if pair.filled > pair.size:
            return _overrun(world, number)
        if ends and not is_send and pair.filled != pair.size:
            return _refuse(world, number, _INVALID)  # shorter than its RETH has said
        copy_elements(pair.room + filled, address(world, frame) + body, size, pair.width)
    pair.received += 1
    pair.expected += 1
    if not ends:
        pair.inside = is_send
        return True
    pair.inside = NONE
    pair.msn = (pair.msn + 1) & MASK
    if pair.has_receive:
        pair.has_receive = False
        value = load32(address(world, frame) + body - _IMMEDIATE) if immediate else NONE
        if pair.has_channel:
            on_received(world, number, value)
        else:
            ask(world, _RECEIVED, number, pair.filled, value)
    return True


@compiled
def _execute(world: int, number: int, opcode: int, frame: int) -> bool:
    """A READ or an atomic operation: its responses are queued, and take as many PSNs."""
    pair = pair_at(world, number)
    valid = pair.inside == NONE and opcode in _EXECUTED
    packets = ask(world, _EXECUTE, number, frame, 0) if valid else -_INVALID
    if packets < 0:
        return _refuse(world, number, -packets)
    pair.received += 1
    pair.expected += packets
    pair.msn = (pair.msn + 1) & MASK
    return True


@compiled
def _take_receive(world: int, number: int) -> bool:
    """Take the posted receive for a message. If there is none, send an RNR NAK (9.7.5.2.8)."""
    pair = pair_at(world, number)
    place = pair.receive
    if place == NONE:
        pair.rnr_naks_sent += 1
        pair.nak_sent = True  # packets after the refused one are not a new gap
        answer(world, number, (pair.received_psn + pair.expected) & MASK, pair.rnr_syndrome, NONE)
        return False
    entry = receive_at(world, place)
    pair.taken_room, pair.taken_size, pair.taken_width = entry.room, entry.size, entry.width
    pair.receive = entry.following
    give_record(world, _RECEIVES, place)
    pair.posted -= 1
    pair.has_receive = True
    return True


@compiled
def _overrun(world: int, number: int) -> bool:
    """The message is longer than its buffer: an error at both ends (9.7.4.1.6)."""
    pair = pair_at(world, number)
    if pair.has_receive:
        pair.has_receive = False
        ask(world, _OVERRUN, number, 0, 0)
    return _refuse(world, number, _INVALID)


@compiled
def _refuse(world: int, number: int, syndrome: int) -> bool:
    """Refuse a request that a retransmission cannot correct: send a NAK and break the queue pair (9.9.3)."""
    pair = pair_at(world, number)
    pair.naks_sent += 1
    answer(world, number, (pair.received_psn + pair.expected) & MASK, syndrome, NONE)
    ask(world, _FAIL, number, _FLUSHED, 0)
    return False
