"""Work requests of a queue pair (``p4gen.host.transport.rc.QueuePair``)."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.memory import NONE, Pool
from p4gen.compiled.pairs import kick
from p4gen.compiled.pools import give_record, take_record
from p4gen.compiled.records import message_at, pair_at, receive_at

_MESSAGES = int(Pool.MESSAGES)
_RECEIVES = int(Pool.RECEIVES)


@compiled
def post_send(
    world: int, number: int, data: int, length: int, width: int, has_immediate: bool, immediate: int, rkey: int,
    remote: int, solicited: bool,
) -> None:  # fmt: skip
    """Queue a SEND of ``length`` bytes at the address ``data``, elements of ``width`` bytes, or with an ``rkey`` a
    WRITE."""
    message = message_at(world, _add(world, number, data, length))
    message.width = width
    message.has_immediate = has_immediate
    message.immediate = immediate
    message.rkey = rkey
    message.remote = remote
    message.solicited = solicited
    message.operation = NONE
    kick(world, number)


@compiled
def post_operation(
    world: int, number: int, operation: int, data: int, length: int, rkey: int, remote: int, swap_or_add: int,
    compare: int,
) -> None:  # fmt: skip
    """Queue a READ or an atomic operation, ``operation`` is the opcode of its request: the response fills ``length``
    bytes at the address ``data``."""
    message = message_at(world, _add(world, number, data, length))
    message.width = 1
    message.has_immediate = False
    message.immediate = 0
    message.rkey = rkey
    message.remote = remote
    message.solicited = False
    message.operation = operation
    message.swap_or_add = swap_or_add
    message.compare = compare
    pair_at(world, number).responses += 1
    kick(world, number)


@compiled
def _add(world: int, number: int, data: int, length: int) -> int:
    """A new message behind the others of a pair. Returns its record's number."""
    pair = pair_at(world, number)
    place = take_record(world, _MESSAGES)
    message = message_at(world, place)
    message.first = pair.end
    message.end = pair.end + max(1, (length + pair.mtu - 1) // pair.mtu)
    message.data = data
    message.length = length
    message.following = NONE
    pair.end = message.end
    if pair.oldest == NONE:
        pair.oldest = place
    else:
        message_at(world, pair.newest).following = place
    pair.newest = place
    return place


@compiled
def post_receive(world: int, number: int, room: int, size: int, width: int) -> None:
    """Add a buffer of ``size`` bytes at the address ``room`` for a message of elements of ``width`` bytes."""
    pair = pair_at(world, number)
    place = take_record(world, _RECEIVES)
    entry = receive_at(world, place)
    entry.room = room
    entry.size = size
    entry.width = width
    entry.following = NONE
    if pair.receive == NONE:
        pair.receive = place
    else:
        receive_at(world, pair.last_receive).following = place
    pair.last_receive = place
    pair.posted += 1


@compiled
def forget_receives(world: int, number: int) -> None:
    """Forget all receives that are posted."""
    pair = pair_at(world, number)
    while pair.receive != NONE:
        place = pair.receive
        entry = receive_at(world, place)
        pair.receive = entry.following
        give_record(world, _RECEIVES, place)
    pair.last_receive = NONE
    pair.posted = 0
