"""The sending half of a reliable connection (``p4gen.host.transport.requester``): SENDs and WRITEs."""

from __future__ import annotations

from typing import Final

import numpy as np

from p4gen.compiled.cached import compiled
from p4gen.compiled.channels import on_sent
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, ask
from p4gen.compiled.machine import copy, store32, store64_network
from p4gen.compiled.memory import NONE, Ask, Event, Pool
from p4gen.compiled.pairs import HALF, MASK, begin, kick, seal
from p4gen.compiled.pools import give_record, take_record
from p4gen.compiled.rates import on_nack, pace
from p4gen.compiled.records import every, flag_at, length_at, link_at, message_at, pair_at, rate_address
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery, Status
from p4gen.host.transport.wire import BODY_AT, OVERHEAD
from p4gen.rocev2.headers import RETH, ImmDt
from p4gen.rocev2.opcodes import FIRST_NAK, NakCode, Opcode, RnrNak, decode_syndrome
from p4gen.rocev2.opcodes import Nak as NakSyndrome

RECOVERIES: Final = tuple(Recovery)
"""A recovery's number is its position."""
STATUSES: Final = tuple(Status)
_GO_BACK_N, _SELECTIVE_REPEAT = (RECOVERIES.index(each) for each in (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT))
_TIMER, _QUIET = int(Event.TIMER), int(Event.QUIET)
_SENT, _FAIL, _PROBLEM = int(Ask.SENT), int(Ask.FAIL), int(Ask.PROBLEM)
_FIRST, _MIDDLE, _LAST, _ONLY = (
    int(opcode) for opcode in (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)
)
_WRITE = int(Opcode.WRITE_FIRST)
_RETH, _IMMEDIATE = RETH.SIZE, ImmDt.SIZE
_FIRST_NAK = FIRST_NAK
_SEQUENCE = NakSyndrome(NakCode.PSN_SEQUENCE_ERROR).syndrome
_FATAL: Final = {
    NakCode.INVALID_REQUEST: Status.REMOTE_INVALID_REQUEST,
    NakCode.REMOTE_ACCESS_ERROR: Status.REMOTE_ACCESS_ERROR,
    NakCode.REMOTE_OPERATIONAL_ERROR: Status.REMOTE_OPERATION_ERROR,
}
_ERRORS = tuple((NakSyndrome(code).syndrome, STATUSES.index(status)) for code, status in _FATAL.items())
_BAD_RESPONSE, _RETRY_EXCEEDED, _RNR_RETRY_EXCEEDED = (
    STATUSES.index(each) for each in (Status.BAD_RESPONSE, Status.RETRY_EXCEEDED, Status.RNR_RETRY_EXCEEDED)
)


def _delay(syndrome: int) -> int:
    """How long an RNR NAK asks to wait, ps; ``NONE`` if the syndrome is that of no RNR NAK."""
    found = decode_syndrome(syndrome)
    return round(found.delay_us * US) if isinstance(found, RnrNak) else NONE


_DELAYS = np.array([_delay(syndrome) for syndrome in range(256)])
_LINKS = int(Pool.LINKS)
_MESSAGES = int(Pool.MESSAGES)


@compiled
def ready(world: int, number: int, when: int) -> bool:
    """Whether a pair has a packet to send at the time ``when``."""
    pair = pair_at(world, number)
    if when < pair.quiet_until:
        return False
    return pair.again != NONE or (pair.next < pair.end and pair.next - pair.una < pair.most)


@compiled
def send(world: int, number: int, when: int) -> int:
    """The frame of the next packet; retransmissions come first."""
    pair = pair_at(world, number)
    if pair.again != NONE:
        seq = _take_again(world, number)
        place = _find(world, pair.oldest, seq)
    else:
        seq = pair.next
        pair.next += 1
        place = pair.current
        if place == NONE or not message_at(world, place).first <= seq < message_at(world, place).end:
            following = NONE if place == NONE else message_at(world, place).following
            if following != NONE and message_at(world, following).first == seq:
                place = following
            else:
                place = _find(world, pair.oldest, seq)
            pair.current = place
    pair.sent += 1
    again = seq < pair.high
    if again:
        pair.resent += 1
    else:
        pair.high = seq + 1
    frame = _frame(world, number, place, seq, again)
    pair.bytes += length_at(world, frame).value + OVERHEAD
    if not pair.timer_set:
        _set_timer(world, number, when)
    if pair.rated:
        pair.free_at = when + pace(rate_address(world, number), when, length_at(world, frame).value + OVERHEAD)
    return frame


@compiled
def _find(world: int, place: int, seq: int) -> int:
    """The message of a packet, from the message ``place`` on."""
    while place != NONE and not message_at(world, place).first <= seq < message_at(world, place).end:
        place = message_at(world, place).following
    if place == NONE:
        ask(world, _PROBLEM, 0, 0, 0)
        return 0
    return place


@compiled
def _frame(world: int, number: int, place: int, seq: int, again: bool) -> int:
    pair, message = pair_at(world, number), message_at(world, place)
    index = seq - message.first
    start = index * pair.mtu
    size = min(message.length - start, pair.mtu)
    last = seq + 1 == message.end
    opcode = (_FIRST if index == 0 else _MIDDLE) if not last else (_ONLY if index == 0 else _LAST)
    fills = pair.most < pair.ack_every and pair.next - pair.una >= pair.most
    asks = last or again or (index + 1) % pair.ack_every == 0 or fills
    head = 0
    writes = message.rkey != NONE
    immediate = last and message.has_immediate != 0
    if writes:
        opcode += _WRITE
        if index == 0:
            head = _RETH
    if immediate:
        opcode += 1
        head += _IMMEDIATE
    solicited = last and message.solicited != 0
    psn = (pair.first_psn + seq) & MASK
    frame, crc = begin(world, number, opcode, psn, asks, solicited, head + size)
    body = address(world, frame) + BODY_AT
    if writes and index == 0:
        store64_network(body, message.remote)
        store32(body + 8, message.rkey)
        store32(body + 12, message.length)
        body += _RETH
    if immediate:
        store32(body, message.immediate)
        body += _IMMEDIATE
    if size > 0:
        copy(body, message.data + start, size)
    seal(world, frame, crc)
    return frame


# --- packets to send again ---


@compiled
def _take_again(world: int, number: int) -> int:
    pair = pair_at(world, number)
    place = pair.again
    link = link_at(world, place)
    seq = link.value
    pair.again = link.following
    give_record(world, _LINKS, place)
    flag_at(world, pair.flags + (seq & pair.mask)).value = 0
    return seq


@compiled
def resend(world: int, number: int, seq: int) -> None:
    """Send a packet again, if it is outstanding and does not wait to be sent again."""
    pair = pair_at(world, number)
    if not pair.una <= seq < pair.high or flag_at(world, pair.flags + (seq & pair.mask)).value:
        return
    flag_at(world, pair.flags + (seq & pair.mask)).value = 1
    place = take_record(world, _LINKS)
    link_at(world, place).value = seq
    link_at(world, place).following = NONE
    if pair.again == NONE:
        pair.again = place
    else:
        link_at(world, pair.last_again).following = place
    pair.last_again = place


@compiled
def forget_again(world: int, number: int, upto: int) -> None:
    """Do not send packets before ``upto`` again."""
    pair = pair_at(world, number)
    place, before = pair.again, NONE
    while place != NONE:
        link = link_at(world, place)
        following = link.following
        if link.value < upto:
            flag_at(world, pair.flags + (link.value & pair.mask)).value = 0
            if before == NONE:
                pair.again = following
            else:
                link_at(world, before).following = following
            give_record(world, _LINKS, place)
        else:
            before = place
        place = following
    pair.last_again = before


# --- acknowledgements ---


@compiled
def on_ack(world: int, number: int, psn: int, syndrome: int) -> None:
    """Handle an ACK or NAK (InfiniBand 9.7.5.1, 9.7.5.2)."""
    pair = pair_at(world, number)
    ahead = (psn - pair.first_psn - pair.una) & MASK
    seq = pair.una + ahead
    if ahead >= HALF or seq >= pair.high:
        pair.ghosts += 1
        return
    if syndrome < _FIRST_NAK:
        _acknowledged(world, number, seq + 1)
    elif _DELAYS[syndrome] != NONE:
        _acknowledged(world, number, seq)
        _not_ready(world, number, seq, _DELAYS[syndrome])
    elif syndrome == _SEQUENCE:
        pair.naks += 1
        if pair.rated:
            on_nack(rate_address(world, number), every(world).now)
        _acknowledged(world, number, seq)
        if pair.recovery != _GO_BACK_N:
            resend(world, number, seq)
        elif not pair.went_back:  # once for a gap: the same NAK would report packets sent since then again
            pair.went_back = True
            pair.next = pair.una
    else:
        status = _BAD_RESPONSE
        for code, found in _ERRORS:
            if code == syndrome:
                status = found
        if status != _BAD_RESPONSE:
            _acknowledged(world, number, seq)
        ask(world, _FAIL, number, status, 0)


@compiled
def _acknowledged(world: int, number: int, upto: int) -> None:
    """All packets before ``upto`` are acknowledged."""
    of, pair = every(world), pair_at(world, number)
    if upto <= pair.una:
        return
    pair.una = upto
    pair.next = max(pair.next, upto)
    pair.retries = 0
    pair.rnr_retries = 0
    pair.went_back = False
    if pair.timeout:
        pair.deadline = of.now + pair.timeout
    if pair.again != NONE:
        forget_again(world, number, upto)
    while pair.oldest != NONE and message_at(world, pair.oldest).end <= upto:
        drop_oldest(world, number)
        if pair.has_channel:
            on_sent(world, number)
        else:
            ask(world, _SENT, number, 0, 0)


@compiled
def drop_oldest(world: int, number: int) -> None:
    """Remove the oldest message of a pair."""
    pair = pair_at(world, number)
    place = pair.oldest
    message = message_at(world, place)
    pair.oldest = message.following
    if pair.current == place:
        pair.current = NONE
    give_record(world, _MESSAGES, place)


@compiled
def _not_ready(world: int, number: int, seq: int, delay: int) -> None:
    of, pair = every(world), pair_at(world, number)
    pair.rnr_naks += 1
    if of.now < pair.quiet_until and pair.next == seq:
        return  # packets under way are refused, too: they count as one refusal
    if pair.rnr_retry != NONE and pair.rnr_retries >= pair.rnr_retry:
        ask(world, _FAIL, number, _RNR_RETRY_EXCEEDED, 0)
        return
    pair.rnr_retries += 1
    pair.next = seq
    pair.went_back = False
    forget_again(world, number, pair.high)
    pair.quiet_until = of.now + delay
    pair.deadline = pair.quiet_until + pair.timeout
    at(world, pair.quiet_until, _QUIET, number, 0)


# --- the timer ---


@compiled
def _set_timer(world: int, number: int, now: int) -> None:
    pair = pair_at(world, number)
    if pair.timeout:
        pair.timer_set = True
        pair.deadline = now + pair.timeout
        at(world, pair.deadline, _TIMER, number, 0)


@compiled
def timer(world: int, number: int) -> None:
    """The event of the retransmission timer, whose deadline may have moved since it was set."""
    pair = pair_at(world, number)
    pair.timer_set = False
    if pair.broken or pair.una == pair.high:
        return
    now = every(world).now
    if now < pair.deadline:
        pair.timer_set = True
        at(world, pair.deadline, _TIMER, number, 0)
        return
    pair.timeouts += 1
    if pair.retry_count != NONE and pair.retries >= pair.retry_count:
        ask(world, _FAIL, number, _RETRY_EXCEEDED, 0)
        return
    pair.retries += 1
    pair.went_back = False
    if pair.recovery == _GO_BACK_N:
        pair.next = pair.una
    elif pair.recovery == _SELECTIVE_REPEAT:
        for seq in range(pair.una, pair.high):
            resend(world, number, seq)
    else:
        resend(world, number, pair.una)
    _set_timer(world, number, now)
    kick(world, number)
