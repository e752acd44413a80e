"""A network whose events, links, switches and connections are compiled (``p4gen.compiled``).

The objects here are what Python sees of records: loop, links, switches, NICs and queue pairs have the interfaces of
their counterparts in Python, and carry out what the compiled code asks for.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, Protocol, cast

import numpy as np
from typing_extensions import override

from p4gen.compiled import events, frames, links, machine, nics, pairs, posting, requester, responder, run
from p4gen.compiled.cached import is_kept
from p4gen.compiled.freezing import State
from p4gen.compiled.memory import NEVER, NONE, PROBLEMS, SLOT_OF_TEMPLATES, Ask, Event, World, world
from p4gen.compiled.requester import RECOVERIES, STATUSES
from p4gen.host.transport.clock import SECOND, Action
from p4gen.host.transport.execution import Execution
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.requester import Requester, rate_of
from p4gen.host.transport.responder import Responder
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, Recovery, RecvWr, SendWr, Status
from p4gen.host.transport.wire import BODY_AT, OPCODE_AT, Writer
from p4gen.model import Model
from p4gen.net.world.faults import DirectionFaults, Faults
from p4gen.net.world.link import Deliver, Direction, LinkTraits, Passage
from p4gen.net.world.network import Addresses, Network
from p4gen.net.world.nodes import SwitchNode
from p4gen.p4 import ir
from p4gen.rocev2.headers import AETH, RETH
from p4gen.rocev2.opcodes import Ack, Nak, NakCode, Opcode, RnrNak
from p4gen.vocabulary.topology import Link, TopologySpec

_CALLBACK: Final = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * 4)
_COMPILED: Final = (Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT, Recovery.ORACLE)
Frame = bytes
_MASK: Final = (1 << 24) - 1
_HALF: Final = 1 << 23
_LISTS: Final = (
    "next_turn", "next_answering", "oldest", "newest", "current", "again", "last_again", "inside", "receive",
    "last_receive", "kept", "last_kept", "answer", "last_answer",
)  # fmt: skip
"""Columns of a pair's record that hold no record at first."""
_SENT_COUNTS: Final = {
    name: name for name in ("sent", "resent", "timeouts", "naks", "rnr_naks", "ghosts", "cnps", "bytes")
}
_RECEIVED_COUNTS: Final = {
    "received": "received", "duplicates": "duplicates", "out_of_order": "out_of_order", "naks": "naks_sent",
    "rnr_naks": "rnr_naks_sent", "cnps": "cnps_sent",
}  # fmt: skip
"""Columns of counters, by their names in ``SendStats`` and ``ReceiveStats``."""


class CompiledLoop:
    """The loop of a compiled world (``p4gen.net.world.loop.EventLoop``). An exception of an action ends the run."""

    STATE: ClassVar[tuple[str, ...]] = ("_actions", "_next")
    late = 0

    def __init__(self, of: World) -> None:
        self.world = of
        self._all = of.all[0]
        self._actions: dict[int, tuple[Action, Any]] = {}
        self._next = 0
        self.before_run: list[Callable[[], None]] = []
        """What has to be done before events are handled: switches take over new entries."""
        self.after_run: list[Callable[[], None]] = []
        """What has to be done afterwards: channels count."""
        self._error: BaseException | None = None

    @property
    def now(self) -> int:
        """The time, ps."""
        return int(self._all["now"])

    @property
    def handled(self) -> int:
        """Number of events handled so far."""
        return int(self._all["handled"])

    def at(self, time: int, action: Action, arg: Any = None) -> None:
        """Call ``action(arg)`` at ``time``, which is not before now."""
        self._actions[self._next] = action, arg
        events.at(self.world.place, time, int(Event.ACTION), self._next, 0)
        self._next += 1

    def fail(self, error: BaseException) -> None:
        """End the run with ``error``, after the event in which it happened."""
        self._error = self._error or error
        self._all["error"] = 1

    def act(self, number: int) -> None:
        """Carry out an action."""
        action, arg = self._actions.pop(number)
        action(arg)

    @property
    def idle(self) -> bool:
        """Whether no event is pending."""
        return not self._all["events"]

    @property
    def latest(self) -> int:
        """The time of the last pending event; now if there is none."""
        count = int(self._all["events"])
        return int(self.world.heap["time"][:count].max()) if count else self.now

    def run(self, until: int | None = None, count: int | None = None) -> None:
        """Handle events until none is left, at most ``count`` of them. With ``until``, handle those that are not later,
        and advance the time to it."""
        for prepare in self.before_run:
            prepare()
        handled = run.run(self.world.place, NEVER if until is None else until, NONE if count is None else count)
        for note in self.after_run:
            note()
        if self._error is not None:
            error, self._error = self._error, None
            self._all["error"] = 0
            raise error
        if until is not None and handled != count:
            self._all["now"] = max(self.now, until)


class Counters:
    """Counters of a record, by the names that they have in Python."""

    def __init__(self, record: Any, names: dict[str, str]) -> None:
        self._record, self._names = record, names

    def __getattr__(self, name: str) -> int:
        try:
            return int(self._record[self._names[name]])
        except KeyError:
            raise AttributeError(name) from None


def column(name: str) -> Any:
    """A property that is a number of the object's record, ``_row``."""

    def get(of: Any) -> int:
        return int(of._row[name])

    def put(of: Any, value: int) -> None:
        of._row[name] = value

    return property(get, put)


class CompiledDirection(Direction):
    """A link's direction that is record ``number`` of a compiled world."""

    STATE: ClassVar[tuple[str, ...]] = ("marked", "_random")

    packets: int = column("packets")
    bytes: int = column("bytes")
    busy_until: int = column("busy_until")
    busy: int = column("busy")

    def __init__(self, frames: Frames, number: int, *rest: Any) -> None:
        self._frames, self.number = frames, number
        self._row = frames.world.directions[number]
        super().__init__(*rest)
        row, traits = self._row, self.traits
        row["bandwidth"], row["delay"], row["room"] = traits.bandwidth, traits.delay, self._room
        ecn = traits.ecn
        row["marks_from"] = NEVER if ecn is None else (ecn.low + 1) * 8 * SECOND // traits.bandwidth

    def join(self, to: int, port: int | None) -> None:
        """The direction ends at host ``to``, or at a port of switch ``to``."""
        self._row["to_switch"], self._row["to"] = port is not None, to
        self._row["port"] = port or 0

    def prepare(self) -> None:
        """Tell compiled code what it has to ask for."""
        self._row["faults"] = self.faults is not None
        self._row["watched"] = self.watcher is not None
        self._row["shared"] = self.buffer is not None

    @override
    def transmit(self, frame: Frame, at: int) -> int:
        return links.transmit(self._frames.world.place, self.number, self._frames.put(frame), at)

    # --- what compiled code asks for ---

    def pass_frame(self, frame: int, sent: int) -> int:
        """Apply the direction's faults to a frame, and deliver what arrives."""
        assert self.faults is not None
        arrival = self.busy_until + self.traits.delay
        contents = self._frames.get(frame)
        fate = self.faults.fate(contents, sent)
        if not fate.copies:
            self._lose(contents, sent, fate.reason)
        for extra, copy in fate.copies:
            if self.watcher is not None:
                self.watcher(Passage(self.src, self.dst, sent, arrival + extra, copy))
            links.deliver(self._frames.world.place, self.number, self._frames.put(copy), arrival + extra)
        return 0

    def lose(self, frame: int, at: int) -> int:
        """A frame has found the queue full."""
        self._lose(self._frames.get(frame), at, "queue_full")
        return 0

    def mark(self, frame: int, waits: int) -> int:
        """Mark a frame that waits for ``waits`` ps, as ECN says."""
        assert self.traits.ecn is not None
        before = self._frames.get(frame)
        after = self._mark(before, waits, self.traits.ecn)
        if after is not before:
            self._frames.change(frame, after)
        return 0

    def has_room(self, at: int, _: int) -> int:
        """Whether the memory that the queue shares takes one more frame."""
        assert self.buffer is not None
        self.buffer.latest = max(queue.busy_until for queue in self.buffer.queues)
        return self.buffer.takes(self, at)

    def show(self, frame: int, sent: int) -> int:
        """Show a frame that is sent to the watcher."""
        if self.watcher is not None:
            arrival = self.busy_until + self.traits.delay
            self.watcher(Passage(self.src, self.dst, sent, arrival, self._frames.get(frame)))
        return 0


class CompiledNode(SwitchNode):
    """A switch that is record ``number`` of a compiled world. Python gives it its packets if there is an observer, or
    if the program keeps lengths of queues."""

    STATE: ClassVar[tuple[str, ...]] = ()

    received: int = column("received")
    lost_ports: int = column("lost_ports")

    def __init__(self, frames: Frames, number: int, switch: Model, latency: int, loop: Any) -> None:
        self._frames, self._record = frames, number
        self._row = frames.world.switches[number]
        self._engine = switch.native
        super().__init__(switch, latency, loop)
        row = self._row
        row["latency"], row["wake_at"] = latency, NONE
        row["exchange"], row["temporary"], row["batch"] = self._engine.places
        self._state = 0

    def prepare(self) -> None:
        """Tell compiled code what Python has to do, and where the program's memory is."""
        self._row["by_python"] = bool(self._lengths) or self.observer is not None
        self.flush()

    def flush(self) -> None:
        """Write new entries into the program's memory, which may move."""
        state = self._engine.state
        state.flush()
        if state.block.address != self._state:
            self._state = self._row["state"] = state.block.address

    @override
    def port(self, number: int) -> Deliver:
        frames, record = self._frames, self._record

        def deliver(arrival: int, frame: bytes) -> None:
            links.arrive(frames.world.place, record, number, frames.put(frame), arrival)

        return deliver

    def process(self, count: int, _: int) -> int:
        """Process the packets in ``World.work``."""
        work = self._frames.world.work[:count]
        batch = [
            (int(time), int(number), int(port), self._frames.get(int(frame))) for time, number, port, frame in work
        ]
        self._give(batch)
        return 0

    def take_events(self, *_: int) -> int:
        """Take over digests and messages. Raises ``Trap`` if the program has trapped."""
        self._engine.take_events()
        return 0


class Frames:
    """The frames of a compiled world, as Python reads and writes them."""

    def __init__(self, of: World) -> None:
        self.world = of
        self._pool, self._lengths = of.pool.data, of.lengths["value"]
        self._slot = int(of.all["slot"][0])

    def get(self, frame: int) -> bytes:
        """A frame's bytes."""
        start = frame * self._slot
        return bytes(self._pool[start : start + int(self._lengths[frame])])

    def put(self, contents: bytes) -> int:
        """A new frame."""
        frame: int = frames.take(self.world.place, len(contents))
        self.change(frame, contents)
        return frame

    def change(self, frame: int, contents: bytes) -> None:
        """Replace a frame by one of the same size."""
        start = frame * self._slot
        self._pool[start : start + len(contents)] = contents


class Runs(Protocol):
    """What runs phases of collectives on a pair (``p4gen.net.world.channels.CompiledChannel``)."""

    def end(self, place: int) -> None:
        """A run is complete: the number of its record."""

    def refuse(self, place: int, immediate: int) -> None:
        """A message of a run has arrived with other immediate data, or with none (``NONE``)."""

    def count(self) -> None:
        """Take over the counts of all runs."""

    def find_memory(self) -> None:
        """Set the addresses in all records of runs, messages and receives."""


class _Sending:
    """A compiled requester (``p4gen.host.transport.requester.Requester``)."""

    STATE: ClassVar[tuple[str, ...]] = ("rate",)

    una: int = column("una")
    next: int = column("next")
    high: int = column("high")
    end: int = column("end")
    free_at: int = column("free_at")

    def __init__(self, pair: CompiledPair) -> None:
        self._pair: CompiledPair = pair
        self._row: Any = pair.row
        self.rate = rate_of(pair.config)
        self.stats = Counters(pair.row, _SENT_COUNTS)

    @property
    def idle(self) -> bool:
        """Whether nothing is outstanding."""
        return bool(self._row["oldest"] == NONE)

    def psn(self, seq: int) -> int:
        """The PSN of a packet, from its number."""
        return (self._pair.config.initial_psn + seq) & _MASK

    def outstanding(self, seq: int) -> bool:
        """Whether a packet is sent and not acknowledged."""
        return self.una <= seq < self.high

    def move(self, psn: int) -> None:
        """Give the next packet the PSN ``psn``. Raises ``ValueError`` (``QueuePair.set_sq_psn``)."""
        ahead = (psn - self.psn(self.end)) & _MASK
        if not self.idle or ahead >= _HALF:
            raise ValueError(f"PSN {psn:#08x} cannot be set: " + ("used" if self.idle else "sends are outstanding"))
        self.una = self.next = self.high = self.end = self.end + ahead

    def on_loss(self, psn: int) -> None:
        """The network has dropped a packet of this end."""
        seq = self.una + ((psn - self._pair.config.initial_psn - self.una) & _MASK)
        if self.outstanding(seq):
            if self.rate is not None:
                self.rate.on_nack(self._pair.clock.now)
            requester.resend(self._pair.world.place, self._pair.record, seq)
            self._pair.kick()

    def on_cnp(self) -> None:
        """Handle a CNP: reduce the rate."""
        self._row["cnps"] += 1
        if self.rate is not None:
            self.rate.on_cnp(self._pair.clock.now)

    def on_response(self, *_: object) -> None:
        """Ignore a response: no READ is outstanding."""
        self._row["ghosts"] += 1


class _Receiving:
    """A compiled responder (``p4gen.host.transport.responder.Responder``)."""

    STATE: ClassVar[tuple[str, ...]] = ()

    expected: int = column("expected")
    msn: int = column("msn")
    posted: int = column("posted")
    misses = False

    def __init__(self, pair: CompiledPair) -> None:
        self._pair: CompiledPair = pair
        self._row: Any = pair.row
        self.stats = Counters(pair.row, _RECEIVED_COUNTS)
        self.execution = Execution()

    def psn(self, seq: int) -> int:
        """The PSN of a packet, from its number."""
        return (self._pair.config.received_psn + seq) & _MASK

    def move(self, psn: int) -> None:
        """Expect ``psn`` next. Raises ``ValueError`` (``QueuePair.set_rq_psn``)."""
        ahead = (psn - self.psn(self.expected)) & _MASK
        if self._row["inside"] != NONE or ahead >= _HALF:
            why = "received" if self._row["inside"] == NONE else "inside a message"
            raise ValueError(f"PSN {psn:#08x} cannot be set: {why}")
        self.expected += ahead
        self._row["nak_sent"] = False
        self._pair.forget_kept(self.expected)

    @property
    def kept(self) -> list[int]:
        """Packets that arrived out of order and are kept, in order."""
        kept, place, found = self._pair.world.kept, int(self._row["kept"]), []
        while place != NONE:
            found.append(int(kept["seq"][place]))
            place = int(kept["following"][place])
        return found

    def acknowledged(self) -> tuple[int, int]:
        """PSN and syndrome of an ACK for everything that has arrived in order."""
        return self.psn(self.expected - 1), Ack().syndrome


class CompiledPair(QueuePair):
    """A queue pair that is record ``record`` of a compiled world. It sends and receives SENDs and WRITEs."""

    STATE: ClassVar[tuple[str, ...]] = ("_sends", "_receives", "_room", "_responses")

    in_turn: bool = column("in_turn")

    def __init__(
        self, nic: CompiledNic, record: int, number: int, peer: Peer, config: QpConfig, on_completion: Any
    ) -> None:
        self.number, self.peer, self.config = number, peer, config
        self.record = record
        self.world = nic.frames.world
        self.row: Any = self.world.pairs[record]
        self._row = self.row
        self.clock, self.domain = nic.clock, nic.domain
        self.writer = Writer(nic.mac, nic.ip, peer, ecn=config.dcqcn is not None)
        self._frames = nic.frames
        self._on_completion = on_completion
        self._sends: deque[SendWr] = deque()
        self._receives: deque[RecvWr] = deque()
        """Those that are posted, the one of the message that is arriving first."""
        self._room = memoryview(b"")
        """The memory that the WRITE that is arriving fills."""
        self._responses: deque[tuple[int, int, int | None, memoryview | bytes]] = deque()
        """Response packets that wait to be sent: opcode, PSN, MSN, data."""
        self.channel: Runs | None = None
        """What runs phases on this pair, if anything does."""
        self._set_up(nic.number)
        self.requester = cast(Requester, _Sending(self))
        self.responder = cast(Responder, _Receiving(self))

    def _set_up(self, host: int) -> None:
        config, row, every = self.config, self.row, self.world.all[0]
        row["cnp_interval"] = 0 if config.dcqcn is None else config.dcqcn.cnp_interval
        row["rated"] = config.dcqcn is not None or config.pace is not None
        size = 1 << (config.max_outstanding - 1).bit_length()
        for name in _LISTS:
            row[name] = NONE
        for name, value in {
            "host": host, "number": self.number, "peer_ip": self.peer.ip, "mtu": config.mtu,
            "recovery": RECOVERIES.index(config.recovery), "most": config.max_outstanding,
            "ack_every": config.ack_every, "timeout": config.timeout_ps, "retry_count": _count(config.retry_count),
            "rnr_retry": _count(config.rnr_retry), "rnr_syndrome": RnrNak(config.rnr_timer).syndrome,
            "first_psn": config.initial_psn, "received_psn": config.received_psn,
            "flags": every["flags_used"], "mask": size - 1,
        }.items():  # fmt: skip
            row[name] = value
        every["flags_used"] += size
        every["pairs_used"] += 1

    def find_memory(self) -> None:
        """Set the addresses of messages and receives, whose memory has been made again."""
        if self.channel is not None:
            self.channel.find_memory()
            return
        of, row = self.world, self.row
        place = int(row["oldest"])
        for wr in self._sends:
            of.messages["data"][place] = _address(memoryview(wr.data))
            place = int(of.messages["following"][place])
        waiting = list(self._receives)
        if row["has_receive"]:
            row["taken_room"] = _address(memoryview(waiting.pop(0).buffer))
        if row["inside"] != NONE:
            row["room"] = row["taken_room"] if row["inside"] else _address(self._room)
        place = int(row["receive"])
        for posted in waiting:
            of.receives["room"][place] = _address(memoryview(posted.buffer))
            place = int(of.receives["following"][place])

    # --- the application's side ---

    @property
    def broken(self) -> Status | None:  # type: ignore[override]
        """The error that broke the pair; None while it works."""
        number = int(self.row["broken"])
        return STATUSES[number - 1] if number else None

    @override
    def post_send(self, wr: SendWr) -> None:
        if self.broken is not None:
            self.complete(Completion(wr.wr_id, Status.FLUSHED))
            return
        if wr.operation is not None:
            raise ValueError(f"compiled queue pairs do not send a {wr.operation}")
        data = memoryview(wr.data)
        self._sends.append(wr)
        immediate, rkey = wr.immediate or 0, NONE if wr.rkey is None else wr.rkey
        posting.post_send(
            self.world.place, self.record, _address(data), data.nbytes, wr.immediate is not None, immediate, rkey,
            wr.remote_address, wr.solicited,
        )  # fmt: skip

    @override
    def post_recv(self, wr: RecvWr) -> None:
        if self.broken is not None:
            self.complete(Completion(wr.wr_id, Status.FLUSHED, True))
            return
        room = memoryview(wr.buffer)
        self._receives.append(wr)
        posting.post_receive(self.world.place, self.record, _address(room), room.nbytes)

    @override
    def fail(self, status: Status) -> None:
        if self.broken is not None:
            return
        row = self.row
        row["broken"] = STATUSES.index(status) + 1
        while row["oldest"] != NONE:
            requester.drop_oldest(self.world.place, self.record)
            self.complete(Completion(self._sends.popleft().wr_id if self._sends else 0, status))
            status = Status.FLUSHED
        requester.forget_again(self.world.place, self.record, int(row["end"]))
        row["next"] = row["una"] = row["high"] = row["end"]
        posted = int(row["posted"]) + int(row["has_receive"])
        row["has_receive"] = False
        posting.forget_receives(self.world.place, self.record)
        for _ in range(posted):
            number = self._receives.popleft().wr_id if self._receives else 0
            self.complete(Completion(number, Status.FLUSHED, True))
        self.forget_kept(None)

    def be_silent(self) -> None:
        """Send nothing more: neither packets nor answers."""
        row = self.row
        requester.forget_again(self.world.place, self.record, int(row["high"]))
        row["next"] = row["end"]
        row["ack_due"] = row["cnp_due"] = False
        self._responses.clear()
        pairs.forget_answers(self.world.place, self.record)

    def forget_kept(self, before: int | None) -> None:
        """Forget the kept packets before a number; all of them if it is None."""
        while (place := int(self.row["kept"])) != NONE:
            if before is not None and self.world.kept["seq"][place] >= before:
                return
            frames.give(self.world.place, responder.take_first_kept(self.world.place, self.record))

    @override
    def acknowledge(self) -> None:
        pairs.acknowledge(self.world.place, self.record)

    @override
    def answer(self, psn: int, syndrome: int, msn: int | None = None) -> None:
        pairs.answer(self.world.place, self.record, psn, syndrome, NONE if msn is None else msn)

    @override
    def notify_congestion(self) -> None:
        pairs.notify_congestion(self.world.place, self.record)

    @override
    def kick(self) -> None:
        pairs.kick(self.world.place, self.record)

    # --- what compiled code asks for ---

    def sent(self, *_: int) -> int:
        """The oldest send is complete."""
        self.complete(Completion(self._sends.popleft().wr_id, Status.SUCCESS))
        return 0

    def received(self, size: int, immediate: int) -> int:
        """The oldest receive is complete."""
        wr = self._receives.popleft()
        known = None if immediate == NONE else immediate
        self.complete(Completion(wr.wr_id, Status.SUCCESS, True, size, known))
        return 0

    def overrun(self, *_: int) -> int:
        """The oldest receive is too short."""
        self.complete(Completion(self._receives.popleft().wr_id, Status.LOCAL_LENGTH_ERROR, True))
        return 0

    def end_run(self, place: int, _: int) -> int:
        """A run of the channel is complete."""
        assert self.channel is not None
        self.channel.end(place)
        return 0

    def refuse_run(self, place: int, immediate: int) -> int:
        """A message of a run of the channel is not the expected one."""
        assert self.channel is not None
        self.channel.refuse(place, immediate)
        return 0

    def break_off(self, status: int, _: int) -> int:
        """Break the pair."""
        self.fail(STATUSES[status])
        return 0

    def fill_template(self, opcode: int, kind: int) -> int:
        """Make the start of frames of a kind: twice the size of the body, plus 1 with a solicited event."""
        size, solicited = divmod(kind, 2)
        start, crc = self.writer.begin(opcode, size, bool(solicited))
        mixed = opcode + 7 * (size >> 2) + 3 * solicited
        row = self.world.templates[self.record * SLOT_OF_TEMPLATES + mixed % SLOT_OF_TEMPLATES]
        row["key"], row["crc"] = size << 9 | opcode << 1 | solicited, crc
        row["start"][: len(start)] = np.frombuffer(start, np.uint8)
        return 0

    def begin_write(self, frame: int, size: int) -> int:
        """The address that a WRITE fills; minus a NAK's syndrome if it is refused."""
        contents = self._frames.get(frame)
        reth, only = RETH.unpack(contents, BODY_AT), contents[OPCODE_AT] in (Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM)
        whole = reth.dma_length <= self.config.mtu
        if only is not whole or (whole and size != reth.dma_length):
            return -Nak(NakCode.INVALID_REQUEST).syndrome
        if not reth.dma_length:
            return 0
        room = self.domain.for_write(reth.rkey, reth.address, reth.dma_length)
        if room is None:
            return -Nak(NakCode.REMOTE_ACCESS_ERROR).syndrome
        self._room = room
        return _address(room)

    def execute(self, frame: int, _: int) -> int:
        """Execute a READ or an atomic operation. Returns the number of its PSNs; minus a syndrome if it is refused."""
        contents, responder = self._frames.get(frame), self.responder
        msn = (responder.msn + 1) & _MASK
        found = self.responder.execution.execute(self, contents[OPCODE_AT], responder.expected, contents, msn)
        return -Nak(found).syndrome if isinstance(found, NakCode) else found

    def repeat(self, frame: int, seq: int) -> int:
        """Answer a READ or an atomic operation again."""
        contents, responder = self._frames.get(frame), self.responder
        responder.execution.repeat(self, contents[OPCODE_AT], seq, contents, responder.msn)
        return 0

    @override
    def respond(self, opcode: int, psn: int, msn: int | None, data: memoryview | bytes) -> None:
        self._responses.append((opcode, psn, msn, data))
        pairs.answer_by_python(self.world.place, self.record)

    def pace(self, now: int, size: int) -> int:
        """How long ``size`` bytes that are sent now take at the pair's rate, ps."""
        rate = self.requester.rate
        return 0 if rate is None else rate.pace(now, size)

    def slow_down(self, *_: int) -> int:
        """A NAK has arrived."""
        rate = self.requester.rate
        if rate is not None:
            rate.on_nack(self.clock.now)
        return 0

    def next_cnp(self, *_: int) -> int:
        """The frame of a congestion notification packet."""
        return self._frames.put(self.writer.cnp())

    def next_response(self, *_: int) -> int:
        """The frame of the next response packet."""
        opcode, psn, msn, data = self._responses.popleft()
        head = b"" if msn is None else AETH(Ack().syndrome, msn).pack()
        return self._frames.put(self.writer.frame(opcode, psn, body=head + bytes(data)))


class CompiledNic(Nic):
    """A NIC whose queue pairs are compiled."""

    STATE: ClassVar[tuple[str, ...]] = ()

    def __init__(self, network: CompiledNetwork, number: int, mac: int, ip: int) -> None:
        super().__init__(mac, ip, network.loop)
        self.frames, self.number = network.frames, number
        self._network = network
        row = self._row = network.frames.world.hosts[number]
        row["mac"], row["ip"], row["checks_icrc"] = mac, ip, True
        row["pump_at"] = row["turn"] = row["answering"] = NONE

    @property
    @override
    def checks_icrc(self) -> bool:
        return self._reader.checks_icrc

    @checks_icrc.setter
    def checks_icrc(self, value: bool) -> None:
        self._reader.checks_icrc = value
        self._row["checks_icrc"] = value

    @override
    def create_pair(
        self, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> QueuePair:
        if number in self.pairs:
            raise ValueError(f"QP {number:#x} is in use")
        if (why := not_compiled(config)) is not None:
            raise ValueError(f"compiled queue pairs have no {why}")
        pair = self._network.add_pair(self, number, peer, config, on_completion)
        self.pairs[number] = pair
        place = pair.row["cell"] = self._place(number)
        cell = self.frames.world.table[place]
        cell["key"], cell["value"] = (self.number << 24 | number) + 1, pair.record + 1
        return pair

    @override
    def destroy_pair(self, pair: QueuePair) -> None:
        del self.pairs[pair.number]
        self.frames.world.table["value"][self._place(pair.number)] = 0
        assert isinstance(pair, CompiledPair)
        pair.be_silent()

    def _place(self, number: int) -> int:
        """The place of a pair in the table."""
        place: int = nics.place_of(self.frames.world.place, self.number, number)
        return place

    @override
    def kick(self, pair: QueuePair) -> None:
        pair.kick()

    @override
    def receive(self, frame: bytes) -> None:
        nics.receive(self.frames.world.place, self.number, self.frames.put(frame))

    def refused(self, frame: int, _: int) -> int:
        """Read a frame that compiled code does not take."""
        super().receive(self.frames.get(frame))
        return 0


class CompiledNetwork(Network):
    """A network with a compiled world. ``frame`` is the most bytes of a frame."""

    loop: CompiledLoop

    def __init__(
        self,
        topology: TopologySpec,
        placement: Addresses,
        programs: Mapping[str, ir.Program],
        faults: Faults,
        seed: int,
        frame: int,
    ) -> None:
        self._ports = {
            name: 1 + max((placement.architectures[name].front_port(i) for i in range(len(links))), default=0)
            for name, links in topology.ports.items()
            if name in topology.switches
        }
        directions, outputs = 2 * len(topology.links), sum(self._ports.values())
        of = world(frame, directions, len(topology.switches), outputs, len(topology.hosts))
        self.frames = Frames(of)
        self._hosts: list[CompiledNic] = []
        self._nodes: list[CompiledNode] = []
        self._links: list[CompiledDirection] = []
        self._numbers = {name: i for names in (topology.hosts, topology.switches) for i, name in enumerate(names)}
        self._pairs: list[CompiledPair] = []
        self._answer = _CALLBACK(self._asked)
        of.all["ask"], of.all["crc"] = (
            ctypes.cast(self._answer, ctypes.c_void_p).value,
            machine.crc32().address("crc32_from"),
        )
        super().__init__(topology, placement, programs, faults, seed, "jit")
        self.loop.before_run = [*(node.prepare for node in self._nodes), *(link.prepare for link in self._links)]

    @override
    def _new_loop(self) -> CompiledLoop:
        return CompiledLoop(self.frames.world)

    @override
    def _new_nic(self, mac: int, ip: int) -> CompiledNic:
        self._hosts.append(CompiledNic(self, len(self._hosts), mac, ip))
        return self._hosts[-1]

    @override
    def _new_node(self, name: str) -> CompiledNode:
        number = len(self._nodes)
        node = CompiledNode(self.frames, number, self.switches[name], self.topology.switch_latency, self.loop)
        of = self.frames.world.switches[number]
        of["outputs"], of["ports"] = sum(list(self._ports.values())[:number]), self._ports[name]
        self._nodes.append(node)
        return node

    @override
    def _new_direction(
        self, src: str, dst: str, traits: LinkTraits, faults: DirectionFaults | None, seed: str
    ) -> CompiledDirection:
        self._links.append(CompiledDirection(self.frames, len(self._links), src, dst, traits, self.loop, faults, seed))
        return self._links[-1]

    @override
    def _connect(self, link: Link, src: str, dst: str, *rest: Any) -> None:
        super()._connect(link, src, dst, *rest)
        direction, of = self._links[-1], self.frames.world
        if src in self.nics:
            of.hosts["direction"][self._numbers[src]] = direction.number
        else:
            port = next(port for port, output in self.nodes[src].outputs.items() if output is direction)
            of.outputs["value"][int(of.switches["outputs"][self._numbers[src]]) + port] = direction.number
        if dst in self.nics:
            direction.join(self._numbers[dst], None)
        else:
            port = self._arch[dst].front_port(self.topology.ports[dst].index(link))
            direction.join(self._numbers[dst], port)

    def add_pair(
        self, nic: CompiledNic, number: int, peer: Peer, config: QpConfig, on_completion: Callable[[Completion], None]
    ) -> CompiledPair:
        """A new queue pair of ``nic``."""
        self._pairs.append(CompiledPair(nic, len(self._pairs), number, peer, config, on_completion))
        self.loop.after_run = [self._count]
        return self._pairs[-1]

    @override
    def parts(self) -> dict[str, object]:
        return {**super().parts(), "world": State(self.frames.world)}

    @property
    @override
    def waits_for(self) -> str:
        return "" if is_kept(run.run) else "compiling the network, once"

    @override
    def restored(self) -> None:
        for pair in self._pairs:
            pair.find_memory()

    def _count(self) -> None:
        for pair in self._pairs:
            if pair.channel is not None:
                pair.channel.count()

    def _asked(self, what: int, who: int, one: int, two: int) -> int:
        """Do what compiled code asks for. An exception ends the run: it must not pass through compiled code."""
        try:
            if what == Ask.ACTION:
                self.loop.act(who)
                for node in self._nodes:
                    node.flush()
                return 0
            if what == Ask.PROBLEM:
                raise AssertionError(PROBLEMS[who])
            whose, method = _SERVED[what]
            return method(getattr(self, whose)[who], one, two)
        except BaseException as error:
            self.loop.fail(error)
            return 0


_SERVED: Final[dict[int, tuple[str, Callable[[Any, int, int], int]]]] = {
    Ask.SENT: ("_pairs", CompiledPair.sent),
    Ask.RECEIVED: ("_pairs", CompiledPair.received),
    Ask.FAIL: ("_pairs", CompiledPair.break_off),
    Ask.TEMPLATE: ("_pairs", CompiledPair.fill_template),
    Ask.WRITE: ("_pairs", CompiledPair.begin_write),
    Ask.OVERRUN: ("_pairs", CompiledPair.overrun),
    Ask.EXECUTE: ("_pairs", CompiledPair.execute),
    Ask.REPEAT: ("_pairs", CompiledPair.repeat),
    Ask.PACE: ("_pairs", CompiledPair.pace),
    Ask.SLOW_DOWN: ("_pairs", CompiledPair.slow_down),
    Ask.CNP: ("_pairs", CompiledPair.next_cnp),
    Ask.ENDED: ("_pairs", CompiledPair.end_run),
    Ask.UNEXPECTED: ("_pairs", CompiledPair.refuse_run),
    Ask.ANSWER: ("_pairs", CompiledPair.next_response),
    Ask.REFUSED: ("_hosts", CompiledNic.refused),
    Ask.FATE: ("_links", CompiledDirection.pass_frame),
    Ask.LOST: ("_links", CompiledDirection.lose),
    Ask.MARK: ("_links", CompiledDirection.mark),
    Ask.ROOM: ("_links", CompiledDirection.has_room),
    Ask.WATCH: ("_links", CompiledDirection.show),
    Ask.BATCH: ("_nodes", CompiledNode.process),
    Ask.EVENTS: ("_nodes", CompiledNode.take_events),
}
"""Whose method answers what compiled code asks for; the first argument is the record's number."""


def not_compiled(config: QpConfig) -> str | None:
    """What a queue pair has that is not compiled; None if nothing is missing."""
    if config.recovery not in _COMPILED:
        return f"recovery {config.recovery}"
    return "adaptive timer" if config.adaptive else None


def _count(most: int | None) -> int:
    return NONE if most is None else most


def _address(memory: memoryview) -> int:
    return np.frombuffer(memory, np.uint8).ctypes.data if memory.nbytes else 0
