"""Channels: runs of messages with a window, as phases have them (``p4gen.host.collectives.compiled``)."""

from __future__ import annotations

from p4gen.compiled.cached import compiled
from p4gen.compiled.frames import ask
from p4gen.compiled.memory import NONE, Ask, Pool
from p4gen.compiled.pools import give_record, take_record
from p4gen.compiled.posting import post_receive, post_send
from p4gen.compiled.records import every, pair_at, run_at

_ENDED, _UNEXPECTED = int(Ask.ENDED), int(Ask.UNEXPECTED)
_RUNS = int(Pool.RUNS)


@compiled
def prepare(
    world: int, number: int, send: int, send_length: int, receive: int, receive_length: int, width: int, control: int,
    waits: bool, added: bool,
) -> int:  # fmt: skip
    """A new run of a pair: of what it sends and receives, in elements of ``width`` bytes, ``NONE`` is
    the address of nothing. Posts receives for it as
    far as is useful before it begins. Returns the number of its record."""
    pair = pair_at(world, number)
    place = take_record(world, _RUNS)
    run = run_at(world, place)
    run.send = send
    run.send_length = send_length
    run.receive = receive
    run.receive_length = receive_length
    run.width = width
    length = receive_length if send == NONE else send_length
    run.messages = 1 + (length + pair.part - 1) // pair.part
    run.control = control
    run.waits = waits
    run.added = added
    run.begun = False
    run.rooms = 0
    run.received = 0
    run.posted = 0
    run.sent = 0
    run.left = run.messages * ((send != NONE) + (receive != NONE))
    run.last_result = NONE
    run.next_receiving = NONE
    run.next_room = NONE
    run.following = NONE
    if pair.run == NONE:
        pair.run = place
    else:
        run_at(world, pair.last_run).following = place
    pair.last_run = place
    if receive != NONE:
        if pair.receiving == NONE:
            pair.receiving = place
        else:
            run_at(world, pair.last_receiving).next_receiving = place
        pair.last_receiving = place
        if pair.early:
            _make_room(world, number, place)
    return place


@compiled
def begin(world: int, number: int, place: int) -> None:
    """Start a run: send its messages, up to the window."""
    pair, run = pair_at(world, number), run_at(world, place)
    run.begun = True
    pair.sending = place
    if run.receive != NONE and not pair.early:
        _make_room(world, number, place)
    _post_sends(world, number)
    if not run.left:
        ask(world, _ENDED, number, 0, 0)


@compiled
def give_run(world: int, number: int) -> None:
    """The record of a pair's oldest run, which has ended, is free."""
    pair = pair_at(world, number)
    place = pair.run
    pair.run = run_at(world, place).following
    give_record(world, _RUNS, place)


@compiled
def _make_room(world: int, number: int, place: int) -> None:
    pair = pair_at(world, number)
    if pair.rooming == NONE:
        pair.rooming = place
    else:
        run_at(world, pair.last_rooming).next_room = place
    pair.last_rooming = place
    _post_rooms(world, number)


@compiled
def _post_rooms(world: int, number: int) -> None:
    """Post receives, as far ahead as the channel does."""
    pair = pair_at(world, number)
    while pair.rooming != NONE and (pair.ahead == NONE or pair.open < pair.ahead):
        run = run_at(world, pair.rooming)
        message = run.rooms
        run.rooms += 1
        if run.rooms == run.messages:
            pair.rooming = run.next_room
        pair.open += 1
        start, size = _stretch(message, pair.part, run.receive_length)
        post_receive(world, number, run.receive + start, size, run.width)


@compiled
def _post_sends(world: int, number: int) -> None:
    """Post sends while fewer than a window of messages are outstanding."""
    pair = pair_at(world, number)
    run = run_at(world, pair.sending)
    if run.send == NONE:
        return
    while run.posted < run.messages:
        through = min(run.sent, run.received) if run.waits else run.sent
        if run.posted - through >= pair.window:
            return
        message = run.posted
        run.posted += 1
        start, size = _stretch(message, pair.part, run.send_length)
        post_send(world, number, run.send + start, size, run.width, message == 0, run.control, NONE, 0, False)


@compiled
def _stretch(message: int, part: int, length: int) -> tuple[int, int]:
    """Where a message begins in the data, and its size; message 0 has no data."""
    if message == 0:
        return 0, 0
    start = (message - 1) * part
    return start, min(part, length - start)


@compiled
def on_sent(world: int, number: int) -> None:
    """The oldest message has been acknowledged."""
    run = run_at(world, pair_at(world, number).sending)
    run.sent += 1
    run.left -= 1
    _go_on(world, number)


@compiled
def on_received(world: int, number: int, immediate: int) -> None:
    """The oldest message has arrived. ``immediate`` is its immediate data, or ``NONE``."""
    pair = pair_at(world, number)
    run = run_at(world, pair.receiving)
    message = run.received
    run.received += 1
    run.left -= 1
    pair.open -= 1
    if not run.added:
        run.last_result = every(world).now
    place = pair.receiving
    if run.received == run.messages:
        pair.receiving = run.next_receiving
    if immediate != (run.control if message == 0 else NONE):
        ask(world, _UNEXPECTED, number, place, immediate)
    elif pair.rooming != NONE:
        _post_rooms(world, number)
    _go_on(world, number)


@compiled
def _go_on(world: int, number: int) -> None:
    pair = pair_at(world, number)
    place = pair.sending
    if place == NONE:
        return
    run = run_at(world, place)
    if not run.left:
        ask(world, _ENDED, number, 0, 0)
    elif run.posted < run.messages:
        _post_sends(world, number)
