"""The sending half of a reliable connection (InfiniBand volume 1, 9.7.2 and 9.7.5).

Packets have a number that never wraps (``seq``). The PSN on the wire is the initial PSN + seq modulo 2^24.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from p4gen.compiled.cached import compiled
from p4gen.compiled.channels import on_sent
from p4gen.compiled.elements import copy_elements
from p4gen.compiled.events import at
from p4gen.compiled.frames import address, ask
from p4gen.compiled.lists import add, drop_before, holds
from p4gen.compiled.machine import copy, load32, store32, store64, store64_network
from p4gen.compiled.memory import NONE, PAIR, Ask, Event, Pool, column_at
from p4gen.compiled.missing import SELECTIVE, SEQUENCE, await_rest, misses
from p4gen.compiled.pairs import BODY_AT, HALF, ICRC_SIZE, MASK, begin, kick, seal
from p4gen.compiled.pools import give_record
from p4gen.compiled.rates import on_cnp as cut_rate
from p4gen.compiled.rates import on_nack, pace
from p4gen.compiled.records import (
    every,
    length_at,
    link_at,
    message_at,
    moment_at,
    pair_address,
    pair_at,
    rate_address,
    trips_at,
)
from p4gen.compiled.resending import find, forget_again, outstanding, resend, resend_if_due, take_again
from p4gen.compiled.roundtrips import acknowledged, expired
from p4gen.host.transport.clock import US
from p4gen.host.transport.verbs import Recovery, Status
from p4gen.host.transport.wire import OVERHEAD
from p4gen.rocev2.headers import AETH, RETH, AtomicETH, ImmDt
from p4gen.rocev2.opcodes import FIRST_NAK, Nak, NakCode, Opcode, RnrNak, decode_syndrome

RECOVERIES: Final = tuple(Recovery)
"""A recovery's number is its position."""
STATUSES: Final = tuple(Status)
_GO_BACK_N, _SELECTIVE_REPEAT, _IDEAL = (
    RECOVERIES.index(each) for each in (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT, Recovery.IDEAL)
)
_TIMER, _QUIET = int(Event.TIMER), int(Event.QUIET)
_SENT, _FAIL = int(Ask.SENT), int(Ask.FAIL)
_FIRST, _MIDDLE, _LAST, _ONLY = (
    int(opcode) for opcode in (Opcode.SEND_FIRST, Opcode.SEND_MIDDLE, Opcode.SEND_LAST, Opcode.SEND_ONLY)
)
_WRITE = int(Opcode.WRITE_FIRST)
_READ, _ATOMIC_ACKNOWLEDGE, _READ_RESPONSE_MIDDLE = (
    int(opcode) for opcode in (Opcode.READ_REQUEST, Opcode.ATOMIC_ACKNOWLEDGE, Opcode.READ_RESPONSE_MIDDLE)
)
_RETH, _IMMEDIATE, _ATOMIC, _AETH = RETH.SIZE, ImmDt.SIZE, AtomicETH.SIZE, AETH.SIZE
_FIRST_NAK = FIRST_NAK
_FATAL: Final = {
    NakCode.INVALID_REQUEST: Status.REMOTE_INVALID_REQUEST,
    NakCode.REMOTE_ACCESS_ERROR: Status.REMOTE_ACCESS_ERROR,
    NakCode.REMOTE_OPERATIONAL_ERROR: Status.REMOTE_OPERATION_ERROR,
}
_ERRORS = tuple((Nak(code).syndrome, STATUSES.index(status)) for code, status in _FATAL.items())
_BAD_RESPONSE, _RETRY_EXCEEDED, _RNR_RETRY_EXCEEDED = (
    STATUSES.index(each) for each in (Status.BAD_RESPONSE, Status.RETRY_EXCEEDED, Status.RNR_RETRY_EXCEEDED)
)


def _delay(syndrome: int) -> int:
    """How long an RNR NAK asks to wait, ps; ``NONE`` if the syndrome is that of no RNR NAK."""
    found = decode_syndrome(syndrome)
    return round(found.delay_us * US) if isinstance(found, RnrNak) else NONE


_DELAYS = np.array([_delay(syndrome) for syndrome in range(256)])
_MESSAGES = int(Pool.MESSAGES)
_NAMED: Final = column_at(PAIR, "named")


@compiled
def ready(world: int, number: int, when: int) -> bool:
    """Whether a pair has a packet to send at the time ``when``."""
    pair = pair_at(world, number)
    if when < pair.quiet_until:
        return False
    if pair.again != NONE:
        return True
    if pair.next >= pair.end or pair.next - pair.una >= pair.allowed:
        return False
    return not pair.responses or _may_execute(world, number)


@compiled
def _may_execute(world: int, number: int) -> bool:
    """Whether the next packet is allowed by ``max_rd_atomic``."""
    pair = pair_at(world, number)
    before, place = 0, pair.oldest
    while place != NONE and message_at(world, place).first <= pair.next:
        message = message_at(world, place)
        if message.operation != NONE:
            before += 1
            if message.end > pair.next and before > pair.max_rd_atomic:
                return False
        place = message.following
    return True


@compiled
def send(world: int, number: int, when: int) -> int:
    """The frame of the next packet; retransmissions come first."""
    pair = pair_at(world, number)
    if pair.again != NONE:
        seq = take_again(world, number)
        place = find(world, pair.oldest, seq)
    else:
        seq = pair.next
        pair.next += 1
        place = pair.current
        if place == NONE or not message_at(world, place).first <= seq < message_at(world, place).end:
            following = NONE if place == NONE else message_at(world, place).following
            if following != NONE and message_at(world, following).first == seq:
                place = following
            else:
                place = find(world, pair.oldest, seq)
            pair.current = place
        if message_at(world, place).operation != NONE:
            pair.next = message_at(world, place).end  # one request, whose PSNs are those of its responses
    if pair.moments != NONE:
        moment_at(world, pair.moments + (seq & pair.mask)).value = when
    executes = message_at(world, place).operation != NONE
    pair.sent += 1
    again = seq < pair.high
    if executes:
        seq = max(seq, pair.una)
    if again:
        pair.resent += 1
    else:
        pair.high = message_at(world, place).end if executes else seq + 1
    if pair.trips != NONE:
        trips = trips_at(world, pair.trips)
        if again and trips.seq == seq:
            trips.seq = NONE
        elif not again and trips.seq == NONE:
            trips.seq = seq
            trips.since = when
    frame = _request(world, number, place, seq) if executes else _frame(world, number, place, seq, again)
    pair.bytes += length_at(world, frame).value + OVERHEAD
    if not pair.timer_set:
        _set_timer(world, number, when)
    if pair.rated:
        pair.free_at = when + pace(rate_address(world, number), when, length_at(world, frame).value + OVERHEAD)
    return frame


@compiled
def _frame(world: int, number: int, place: int, seq: int, again: bool) -> int:
    pair, message = pair_at(world, number), message_at(world, place)
    index = seq - message.first
    start = index * pair.mtu
    size = min(message.length - start, pair.mtu)
    last = seq + 1 == message.end
    opcode = (_FIRST if index == 0 else _MIDDLE) if not last else (_ONLY if index == 0 else _LAST)
    # Nothing more may be sent before an ACK, and none of the outstanding packets asks for one.
    fills = pair.allowed < pair.ack_every and pair.next - pair.una >= pair.allowed
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
    body = address(world, frame) + BODY_AT + pair.shift
    if writes and index == 0:
        store64_network(body, message.remote)
        store32(body + 8, message.rkey)
        store32(body + 12, message.length)
        body += _RETH
    if immediate:
        store32(body, message.immediate)
        body += _IMMEDIATE
    if size > 0:
        copy_elements(body, message.data + start, size, message.width)
    seal(world, number, frame, crc)
    return frame


@compiled
def _request(world: int, number: int, place: int, seq: int) -> int:
    """The request of a READ, or of its missing part from packet ``seq`` on; or of an atomic operation."""
    pair, message = pair_at(world, number), message_at(world, place)
    reads = message.operation == _READ
    psn = (pair.first_psn + seq) & MASK
    frame, crc = begin(world, number, message.operation, psn, True, False, _RETH if reads else _ATOMIC)
    body = address(world, frame) + BODY_AT + pair.shift
    start = (seq - message.first) * pair.mtu if reads else 0
    store64_network(body, message.remote + start)
    store32(body + 8, 0 if message.rkey == NONE else message.rkey)
    if reads:
        store32(body + 12, message.length - start)
    else:
        store64_network(body + 12, message.swap_or_add)
        store64_network(body + 20, message.compare)
    seal(world, number, frame, crc)
    return frame


# --- acknowledgements ---


@compiled
def on_ack(world: int, number: int, psn: int, syndrome: int, msn: int) -> None:
    """Handle an ACK or NAK (InfiniBand 9.7.5.1, 9.7.5.2)."""
    pair = pair_at(world, number)
    ahead = (psn - pair.first_psn - pair.una) & MASK
    if syndrome == SELECTIVE and pair.recovery == _IDEAL:
        _missing(world, number, pair.una + (ahead if ahead < HALF else ahead - MASK - 1), msn)
        return
    seq = pair.una + ahead
    if ahead >= HALF or seq >= pair.high:
        pair.ghosts += 1
        if pair.moments != NONE and ahead == MASK:  # something has arrived, and the oldest has not
            resend_if_due(world, number, pair.una)
        return
    if syndrome < _FIRST_NAK:
        _acknowledged(world, number, seq + 1)
    elif _DELAYS[syndrome] != NONE:
        _acknowledged(world, number, seq)
        _not_ready(world, number, seq, _DELAYS[syndrome])
    elif syndrome == SEQUENCE:
        pair.naks += 1
        if pair.rated:
            on_nack(rate_address(world, number), every(world).now)
        _acknowledged(world, number, seq)
        _sequence_error(world, number, seq)
    else:
        status = _BAD_RESPONSE
        for code, found in _ERRORS:
            if code == syndrome:
                status = found
        if status != _BAD_RESPONSE:
            _acknowledged(world, number, seq)
        ask(world, _FAIL, number, status, 0)


@compiled
def on_response(world: int, number: int, opcode: int, psn: int, frame: int) -> None:
    """Handle a response to a READ or an atomic operation: data in order is stored, a gap is requested again
    (9.7.5.1.3). A READ's responses may have any of its opcodes: what counts is the PSN."""
    pair = pair_at(world, number)
    seq = pair.una + ((psn - pair.first_psn - pair.una) & MASK)
    if not outstanding(world, number, seq):
        pair.ghosts += 1
        return
    message = message_at(world, find(world, pair.oldest, seq))
    atomic = opcode == _ATOMIC_ACKNOWLEDGE
    if message.operation == NONE or (message.operation != _READ) != atomic:
        pair.ghosts += 1
        return
    _acknowledged(world, number, seq)  # as an ACK of everything before it, up to the first missing response
    if pair.una != seq or pair.broken:
        return
    start = (seq - message.first) * pair.mtu
    body = BODY_AT + pair.shift + (0 if opcode == _READ_RESPONSE_MIDDLE else _AETH)
    size = max(0, length_at(world, frame).value - body - ICRC_SIZE)
    if size != min(pair.mtu, message.length - start):
        ask(world, _FAIL, number, _BAD_RESPONSE, 0)
        return
    data = address(world, frame) + body
    if atomic:
        store64(message.data, load32(data) << 32 | load32(data + 4))
    elif size > 0:
        copy(message.data + start, data, size)
    _complete(world, number, seq + 1)


@compiled
def on_cnp(world: int, number: int) -> None:
    """Handle a congestion notification packet: the rate is reduced."""
    pair = pair_at(world, number)
    pair.cnps += 1
    if pair.rated:
        cut_rate(rate_address(world, number), every(world).now)


@compiled
def _acknowledged(world: int, number: int, upto: int) -> None:
    """All packets before ``upto`` are acknowledged. Only a response acknowledges a READ or an atomic operation: if
    ``upto`` passes one of them over, a response was lost (an implied NAK)."""
    pair = pair_at(world, number)
    if pair.responses:
        place = pair.oldest
        while place != NONE and message_at(world, place).operation == NONE:
            place = message_at(world, place).following
        if place != NONE and message_at(world, place).first < upto:
            missing = max(message_at(world, place).first, pair.una)
            if missing < upto:
                _complete(world, number, missing)
                _sequence_error(world, number, missing)
                return
    _complete(world, number, upto)


@compiled
def _complete(world: int, number: int, upto: int) -> None:
    """All packets before ``upto`` are acknowledged, and all responses to them are there."""
    of, pair = every(world), pair_at(world, number)
    if upto <= pair.una:
        return
    if pair.moments != NONE:
        for seq in range(pair.una, upto):
            moment_at(world, pair.moments + (seq & pair.mask)).value = 0
    pair.una = upto
    pair.next = max(pair.next, upto)
    pair.retries = 0
    pair.rnr_retries = 0
    pair.went_back = False
    if pair.trips != NONE:
        acknowledged(world, number, upto)
        pair.allowed = min(2 * pair.allowed, pair.most)
    if pair.timeout:
        pair.deadline = of.now + pair.timeout
    if pair.again != NONE:
        forget_again(world, number, upto)
    if pair.named != NONE:
        drop_before(world, pair_address(world, number) + _NAMED, upto)
    if pair.moments != NONE and upto == pair.high:
        await_rest(world, number)
    while pair.oldest != NONE and message_at(world, pair.oldest).end <= upto:
        drop_oldest(world, number)
        if pair.has_channel:
            on_sent(world, number)
        else:
            ask(world, _SENT, number, 0, 0)


@compiled
def _missing(world: int, number: int, first: int, count: int) -> None:
    """Handle a selective NAK: ``count`` packets from ``first`` on are missing. It acknowledges nothing."""
    pair, named = pair_at(world, number), pair_address(world, number) + _NAMED
    pair.naks += 1
    start, end = max(first, pair.una), min(first + count, pair.high)
    for seq in range(start, end):
        if holds(world, named, seq):
            resend_if_due(world, number, seq)
        else:
            resend(world, number, seq)
            add(world, named, seq, NONE)
    if start < end and pair.timeout:
        pair.deadline = every(world).now + pair.timeout


@compiled
def _sequence_error(world: int, number: int, seq: int) -> None:
    """Packet ``seq`` is missing at the other end."""
    pair = pair_at(world, number)
    if pair.recovery != _GO_BACK_N:
        resend(world, number, seq)
    elif not pair.went_back:  # once for a gap: the same NAK would report packets sent since then again
        pair.went_back = True
        pair.next = pair.una


@compiled
def drop_oldest(world: int, number: int) -> None:
    """Remove the oldest message of a pair."""
    pair = pair_at(world, number)
    place = pair.oldest
    message = message_at(world, place)
    pair.oldest = message.following
    pair.responses -= message.operation != NONE
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
    if pair.trips != NONE:
        # Other ranks may take long, and whole windows would be refused repeatedly: one packet probes first.
        pair.allowed = 1
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
    if pair.trips != NONE:
        expired(world, number)
    pair.went_back = False
    if pair.recovery == _GO_BACK_N:
        pair.next = pair.una
    elif pair.recovery == _SELECTIVE_REPEAT:
        for seq in range(pair.una, pair.high):
            resend(world, number, seq)
    elif pair.recovery != _IDEAL:
        resend(world, number, pair.una)
    elif pair.selective or not misses(world, number):
        resend(world, number, pair.una)
        if pair.selective:
            # A retransmission may be lost, too, and with it the newest packet, which shows the other end every gap.
            place = pair.named
            while place != NONE:
                resend(world, number, link_at(world, place).value)
                place = link_at(world, place).following
            resend(world, number, pair.high - 1)
    _set_timer(world, number, now)
    kick(world, number)
