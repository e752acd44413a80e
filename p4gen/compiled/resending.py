"""The packets that a requester sends again."""

from __future__ import annotations

from typing import Final

from p4gen.compiled.cached import compiled
from p4gen.compiled.frames import ask
from p4gen.compiled.lists import add, drop_before, holds, take_first
from p4gen.compiled.memory import NONE, PAIR, Ask, column_at
from p4gen.compiled.pairs import kick
from p4gen.compiled.records import every, flag_at, link_at, message_at, moment_at, pair_address, pair_at

_PROBLEM = int(Ask.PROBLEM)
_AGAIN: Final = column_at(PAIR, "again")


@compiled
def find(world: int, place: int, seq: int) -> int:
    """The message of a packet, from the message ``place`` on."""
    while place != NONE and not message_at(world, place).first <= seq < message_at(world, place).end:
        place = message_at(world, place).following
    if place == NONE:
        ask(world, _PROBLEM, 0, 0, 0)
        return 0
    return place


@compiled
def outstanding(world: int, number: int, seq: int) -> bool:
    """Whether a packet is sent and not acknowledged."""
    pair = pair_at(world, number)
    return pair.una <= seq < pair.high


@compiled
def take_again(world: int, number: int) -> int:
    """The first packet that waits to be sent again."""
    pair = pair_at(world, number)
    seq = take_first(world, pair_address(world, number) + _AGAIN)
    flag_at(world, pair.flags + (seq & pair.mask)).value -= 1
    return seq


@compiled
def resend(world: int, number: int, seq: int) -> None:
    """Send a packet again, if it is outstanding and does not wait to be sent again."""
    pair, again = pair_at(world, number), pair_address(world, number) + _AGAIN
    if not outstanding(world, number, seq):
        return
    if pair.responses:
        message = message_at(world, find(world, pair.oldest, seq))
        if message.operation != NONE:
            seq = max(message.first, pair.una)  # one request asks for all missing responses
    flag = flag_at(world, pair.flags + (seq & pair.mask))
    # A READ has as many PSNs as responses, so beside it more packets may be outstanding than there are flags.
    if flag.value and (not pair.responses or holds(world, again, seq)):
        return
    flag.value += 1
    add(world, again, seq, NONE)


@compiled
def resend_if_due(world: int, number: int, seq: int) -> None:
    """Send a packet again; but if a loss can be reported several times, ignore reports while a retransmission is on its
    way."""
    pair = pair_at(world, number)
    if pair.moments != NONE:
        since = moment_at(world, pair.moments + (seq & pair.mask)).value
        if every(world).now - since < pair.least_timeout * 2 // 5:
            return
    resend(world, number, seq)


@compiled
def miss(world: int, number: int, seq: int) -> None:
    """The responder of this end lacks the result of a packet: send the packet again."""
    resend_if_due(world, number, seq)
    kick(world, number)


@compiled
def forget_again(world: int, number: int, upto: int) -> None:
    """Do not send packets before ``upto`` again."""
    pair = pair_at(world, number)
    place = pair.again
    while place != NONE:
        link = link_at(world, place)
        if link.value < upto:
            flag_at(world, pair.flags + (link.value & pair.mask)).value -= 1
        place = link.following
    drop_before(world, pair_address(world, number) + _AGAIN, upto)
