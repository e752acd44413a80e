"""What both halves of a queue pair use: its turn at the NIC, its answers, and frames that it sends."""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, ask, take
from p4gen.compiled.machine import copy, crc_from, store32, store_little
from p4gen.compiled.memory import HEAD, NONE, SLOT_OF_TEMPLATES, TEMPLATE, Ask, Event, Pool, column_at
from p4gen.compiled.pools import give_record, take_record
from p4gen.compiled.records import answer_at, every, host_at, length_at, pair_at, template_address, template_at
from p4gen.host.transport.wire import ACK_REQUEST
from p4gen.rocev2.layouts import ICRC
from p4gen.rocev2.opcodes import Ack, Opcode
from p4gen.rocev2.places import IPV4

MASK: Final = (1 << 24) - 1
HALF: Final = 1 << 23
ICRC_SIZE: Final = ICRC.size
BODY_AT: Final = IPV4.body
"""Bytes of a frame before what follows the BTH; over IPv6 ``shift`` more."""
ACK: Final = Ack().syndrome
_PUMP = int(Event.PUMP)
_TEMPLATE, _ANSWER, _CNP = int(Ask.TEMPLATE), int(Ask.ANSWER), int(Ask.CNP)
_ACKNOWLEDGE = int(Opcode.ACKNOWLEDGE)
_AETH = 4
_START = column_at(TEMPLATE, "start")
_ANSWERS = int(Pool.ANSWERS)


@compiled
def kick(world: int, number: int) -> None:
    """A pair may have packets to send."""
    pair = pair_at(world, number)
    host = host_at(world, pair.host)
    if not pair.in_turn:
        pair.in_turn = True
        take_turn(world, number)
    now = every(world).now
    due = max(host.free_at, now)
    if host.pump_at == NONE or host.pump_at > due:
        host.pump_at = due
        at(world, due, _PUMP, pair.host, 0)


@compiled
def take_turn(world: int, number: int) -> None:
    """Put a pair behind the others that wait for their turn."""
    pair = pair_at(world, number)
    host = host_at(world, pair.host)
    pair.next_turn = NONE
    if host.turn == NONE:
        host.turn = number
    else:
        pair_at(world, host.last_turn).next_turn = number
    host.last_turn = number
    host.turns += 1


@compiled
def be_listed(world: int, number: int) -> None:
    """Put a pair behind the others that have answers to send."""
    pair = pair_at(world, number)
    host = host_at(world, pair.host)
    pair.next_answering = NONE
    if host.answering == NONE:
        host.answering = number
    else:
        pair_at(world, host.last_answering).next_answering = number
    host.last_answering = number


@compiled
def _list(world: int, number: int) -> None:
    pair = pair_at(world, number)
    if not pair.listed:
        pair.listed = True
        be_listed(world, number)
    kick(world, number)


@compiled
def notify_congestion(world: int, number: int) -> None:
    """Send a CNP for a marked packet, unless one was sent a moment ago."""
    pair, now = pair_at(world, number), every(world).now
    if pair.cnp_interval and now >= pair.next_cnp:
        pair.next_cnp = now + pair.cnp_interval
        pair.cnp_due = True
        _list(world, number)


@compiled
def acknowledge(world: int, number: int) -> None:
    """Queue an ACK for everything that has arrived in order."""
    pair_at(world, number).ack_due = True
    _list(world, number)


@compiled
def answer(world: int, number: int, psn: int, syndrome: int, msn: int) -> None:
    """Queue a NAK, after a queued ACK; an ``msn`` of ``NONE`` is the one that is current when it is sent."""
    pair = pair_at(world, number)
    if pair.ack_due:
        pair.ack_due = False
        _add_answer(world, number, (pair.received_psn + pair.expected - 1) & MASK, ACK, NONE)
    _add_answer(world, number, psn, syndrome, msn)
    _list(world, number)


@compiled
def answer_by_python(world: int, number: int) -> None:
    """Queue an answer that Python writes when it is sent."""
    _add_answer(world, number, 0, NONE, NONE)
    _list(world, number)


@compiled
def _add_answer(world: int, number: int, psn: int, syndrome: int, msn: int) -> None:
    pair = pair_at(world, number)
    place = take_record(world, _ANSWERS)
    entry = answer_at(world, place)
    entry.psn = psn
    entry.syndrome = syndrome
    entry.msn = msn
    entry.following = NONE
    if pair.answer == NONE:
        pair.answer = place
    else:
        answer_at(world, pair.last_answer).following = place
    pair.last_answer = place


@compiled
def forget_answers(world: int, number: int) -> None:
    """Send none of the answers that are queued."""
    pair = pair_at(world, number)
    while pair.answer != NONE:
        place = pair.answer
        pair.answer = answer_at(world, place).following
        give_record(world, _ANSWERS, place)


@compiled
def take_answer(world: int, number: int) -> int:
    """The frame of the next ACK, NAK or CNP; ``NONE`` when there is none."""
    pair = pair_at(world, number)
    msn = NONE
    if pair.cnp_due:
        pair.cnp_due = False
        pair.cnps_sent += 1
        return ask(world, _CNP, number, 0, 0)
    if pair.answer != NONE:
        place = pair.answer
        entry = answer_at(world, place)
        psn = entry.psn
        syndrome = entry.syndrome
        msn = entry.msn
        pair.answer = entry.following
        give_record(world, _ANSWERS, place)
        if syndrome == NONE:
            return ask(world, _ANSWER, number, 0, 0)
    elif pair.ack_due:
        pair.ack_due = False
        psn = (pair.received_psn + pair.expected - 1) & MASK
        syndrome = ACK
    else:
        pair.listed = False
        return NONE
    frame, crc = begin(world, number, _ACKNOWLEDGE, psn, False, False, _AETH)
    store32(address(world, frame) + BODY_AT + pair.shift, syndrome << 24 | (pair.msn if msn == NONE else msn))
    seal(world, number, frame, crc)
    return frame


@compiled
def begin(world: int, number: int, opcode: int, psn: int, asks: bool, solicited: bool, size: int) -> tuple[int, int]:
    """A frame of a pair without its body of ``size`` bytes and its ICRC, and the CRC of its start, for ``seal``."""
    key = (size << 9) | (opcode << 1) | solicited
    mixed = opcode + 7 * (size >> 2) + 3 * solicited
    place = number * SLOT_OF_TEMPLATES + (mixed & (SLOT_OF_TEMPLATES - 1))
    template = template_at(world, place)
    if template.key != key:
        ask(world, _TEMPLATE, number, opcode, 2 * size + solicited)
    shift = pair_at(world, number).shift
    frame = take(world, BODY_AT + shift + size + ICRC_SIZE)
    start = address(world, frame)
    copy(start, template_address(world, place) + _START, HEAD + shift)
    store32(start + HEAD + shift, psn | ACK_REQUEST if asks else psn)
    return frame, template.crc


@compiled
def seal(world: int, number: int, frame: int, crc: int) -> None:
    """Append the ICRC to a frame; ``crc`` is that of its start."""
    head = HEAD + pair_at(world, number).shift
    start = address(world, frame) + head
    size = length_at(world, frame).value - head - ICRC_SIZE
    store_little(start + size, crc_from(every(world).crc, crc, start, size))
