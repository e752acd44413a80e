"""The queue pairs of compiled hosts."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Protocol, cast

import numpy as np

from p4gen.compiled import frames, lists, pairs, pools, posting, requester, resending, responder
from p4gen.compiled.memory import NEVER, NONE, PAIR, REMEMBERED, SLOT_OF_TEMPLATES, Pool, column_at
from p4gen.compiled.requester import RECOVERIES, STATUSES
from p4gen.compiled.roundtrips import CALM, MOST
from p4gen.host.compiled.rates import Rate
from p4gen.host.compiled.records import Counters, Frames, address_of, address_words, column
from p4gen.host.transport.clock import Clock
from p4gen.host.transport.execution import Execution
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.rc import ReceiveStats, SendStats
from p4gen.host.transport.verbs import Completion, Operation, Peer, QpConfig, Recovery, RecvWr, SendWr, Status
from p4gen.host.transport.wire import Writer
from p4gen.rocev2.headers import AETH, RETH
from p4gen.rocev2.opcodes import FIRST_NAK, Ack, Nak, NakCode, Opcode, RnrNak, is_response
from p4gen.rocev2.places import places_for

_MASK: Final = (1 << 24) - 1
_HALF: Final = 1 << 23
_RESPONSES: Final = frozenset(int(opcode) for opcode in Opcode if is_response(opcode))
_REQUESTS: Final = {
    Operation.READ: int(Opcode.READ_REQUEST),
    Operation.FETCH_ADD: int(Opcode.FETCH_ADD),
    Operation.COMPARE_SWAP: int(Opcode.COMPARE_SWAP),
}
"""The opcodes of requests."""
_LISTS: Final = (
    "next_turn", "next_answering", "oldest", "newest", "current", "again", "last_again", "named", "last_named",
    "moments", "trips", "inside", "receive", "last_receive", "kept", "last_kept", "hole", "last_hole", "waits_since",
    "answer", "last_answer", "run", "last_run", "sending", "receiving", "last_receiving", "rooming", "last_rooming",
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


class Home(Protocol):
    """The NIC of a pair."""

    mac: int
    ip: int
    clock: Clock
    domain: ProtectionDomain

    @property
    def frames(self) -> Frames:
        """The frames of the network."""
        ...

    @property
    def number(self) -> int:
        """The number of the host's record."""
        ...


class Runs(Protocol):
    """What runs phases of collectives on a pair (``p4gen.host.collectives.compiled.Channel``)."""

    def end(self) -> None:
        """The oldest run is complete."""

    def refuse(self, place: int, immediate: int) -> None:
        """A message of a run has arrived with other immediate data, or with none (``NONE``)."""

    def count(self) -> None:
        """Take over the counts of all runs."""

    def find_memory(self) -> None:
        """Set the addresses in all records of runs, messages and receives."""


class Requester:
    """The sending half (``p4gen.host.transport.rc.Sending``)."""

    una: int = column("una")
    next: int = column("next")
    high: int = column("high")
    end: int = column("end")
    free_at: int = column("free_at")

    def __init__(self, pair: CompiledPair) -> None:
        self._pair: CompiledPair = pair
        self._row: Any = pair.row
        limits = pair.config.dcqcn or pair.config.pace
        self.rate = None if limits is None else Rate(limits, pair.world.rates[pair.record : pair.record + 1])
        """None if the line's rate is the only limit."""
        self.stats = cast(SendStats, Counters(pair.row, _SENT_COUNTS))

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
            resending.resend(self._pair.world.place, self._pair.record, seq)
            pairs.kick(self._pair.world.place, self._pair.record)


class Responder:
    """The receiving half (``p4gen.host.transport.rc.Receiving``)."""

    expected: int = column("expected")
    msn: int = column("msn")
    posted: int = column("posted")

    def __init__(self, pair: CompiledPair) -> None:
        self._pair: CompiledPair = pair
        self._row: Any = pair.row
        self.stats = cast(ReceiveStats, Counters(pair.row, _RECEIVED_COUNTS))

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


class CompiledPair:
    """A queue pair (``p4gen.host.transport.rc.QueuePair``), record ``record`` of a compiled world."""

    STATE: ClassVar[tuple[str, ...]] = ("_sends", "_receives", "room", "_responses")

    def __init__(self, nic: Home, record: int, number: int, peer: Peer, config: QpConfig, on_completion: Any) -> None:
        self.number, self.peer, self.config = number, peer, config
        self.record = record
        self.world = nic.frames.world
        self.row: Any = self.world.pairs[record]
        self._row = self.row
        self.clock, self.domain = nic.clock, nic.domain
        self.places = places_for(nic.ip)
        self.writer = Writer(nic.mac, nic.ip, peer, ecn=config.dcqcn is not None, priority=config.priority)
        self._frames = nic.frames
        self._on_completion = on_completion
        self._sends: deque[SendWr] = deque()
        self._receives: deque[RecvWr] = deque()
        """Those that are posted, the one of the message that is arriving first."""
        self._room = memoryview(b"")
        self._responses: deque[tuple[int, int, int | None, memoryview | bytes]] = deque()
        """Response packets that wait to be sent: opcode, PSN, MSN, data."""
        self._refused: Status | None = None
        """Why the pair will break, if it is known; only while a packet is handled."""
        self.channel: Runs | None = None
        """What runs phases on this pair, if anything does."""
        self._set_up(nic.number)
        self.requester = Requester(self)
        self.row["rated"] = self.requester.rate is not None
        self.responder = Responder(self)
        self.execution = Execution()

    def _set_up(self, host: int) -> None:
        address = address_words(self.peer.ip)
        config, row, every = self.config, self.row, self.world.all[0]
        row["cnp_interval"] = 0 if config.dcqcn is None else config.dcqcn.cnp_interval
        size = 1 << (config.max_outstanding - 1).bit_length()
        careful = config.selective_naks and config.recovery is Recovery.IDEAL
        room = int(every["flags_used"]), int(every["moments_used"])
        if room[0] + size > len(self.world.flags) or (careful and room[1] + size > len(self.world.moments)):
            raise ValueError(
                f"QP {self.number:#x}: no memory is left for {size:,} packets that may be outstanding, beside those of"
                f" the {int(every['pairs_used']):,} other queue pairs"
            )
        for name in _LISTS:
            row[name] = NONE
        for name, value in {
            "host": host, "number": self.number, "peer_ip": address[0], "peer_ip_rest": address[1],
            "shift": self.places.shift, "mtu": config.mtu,
            "recovery": RECOVERIES.index(config.recovery), "most": config.max_outstanding,
            "allowed": config.max_outstanding, "max_rd_atomic": config.max_rd_atomic,
            "selective": config.selective_naks,
            "ack_every": config.ack_every, "least_timeout": config.timeout_ps, "timeout": config.timeout_ps,
            "retry_count": _count(config.retry_count),
            "rnr_retry": _count(config.rnr_retry), "rnr_syndrome": RnrNak(config.rnr_timer).syndrome,
            "first_psn": config.initial_psn, "received_psn": config.received_psn, "priority": config.priority,
            "flags": room[0], "mask": size - 1,
        }.items():  # fmt: skip
            row[name] = value
        every["flags_used"] += size
        if careful:
            row["moments"] = room[1]
            every["moments_used"] += size
        if config.adaptive and config.timeout_ps:
            self._measure_trips()
        every["pairs_used"] += 1

    def _measure_trips(self) -> None:
        row = self.row
        place = row["trips"] = pools.take_record(self.world.place, int(Pool.TRIPS))
        trips = self.world.trips[place]
        trips["seq"], trips["estimate"], trips["patient"] = NONE, row["timeout"], CALM
        for i in range(REMEMBERED):
            trips[f"took_{i}"] = NEVER
        row["timeout"] *= MOST

    @property
    def room(self) -> memoryview:
        """The memory that the WRITE that is arriving fills; empty if none is."""
        return self._room if self.row["inside"] == 0 else memoryview(b"")

    @room.setter
    def room(self, memory: memoryview) -> None:
        self._room = memory

    def find_memory(self) -> None:
        """Set the addresses of messages and receives, whose memory has been made again."""
        if self.channel is not None:
            self.channel.find_memory()
            return
        of, row = self.world, self.row
        place = int(row["oldest"])
        for wr in self._sends:
            of.messages["data"][place] = address_of(memoryview(wr.data))
            place = int(of.messages["following"][place])
        waiting = list(self._receives)
        if row["has_receive"]:
            row["taken_room"] = address_of(memoryview(waiting.pop(0).buffer))
        if row["inside"] != NONE:
            row["room"] = row["taken_room"] if row["inside"] else address_of(self._room)
        place = int(row["receive"])
        for posted in waiting:
            of.receives["room"][place] = address_of(memoryview(posted.buffer))
            place = int(of.receives["following"][place])

    # --- the application's side ---

    @property
    def broken(self) -> Status | None:
        """The error that broke the pair; None while it works."""
        number = int(self.row["broken"])
        return STATUSES[number - 1] if number else None

    def counts(self) -> Mapping[str, int]:
        """What has been ``sent``, ``resent``, and so on (``VerbsPair.counts``)."""
        stats = self.requester.stats
        return {name: getattr(stats, name) for name in ("sent", "resent", "timeouts", "naks", "cnps")}

    def post_send(self, wr: SendWr) -> None:
        """Post a SEND, a WRITE, a READ or an atomic operation. It completes when it is acknowledged, or its response is
        there. Raises ``ValueError`` for data that a response cannot fill."""
        if self.broken is not None:
            self.complete(Completion(wr.wr_id, Status.FLUSHED))
            return
        data = memoryview(wr.data)
        rkey, remote = NONE if wr.rkey is None else wr.rkey, _signed(wr.remote_address)
        if wr.operation is not None:
            if data.readonly or (wr.operation is not Operation.READ and len(data) != 8):
                raise ValueError(f"a response to {wr.operation} cannot be stored in what is given as data")
            self._sends.append(wr)
            posting.post_operation(
                self.world.place, self.record, _REQUESTS[wr.operation], address_of(data), data.nbytes, rkey, remote,
                _signed(wr.swap_or_add), _signed(wr.compare),
            )  # fmt: skip
            return
        self._sends.append(wr)
        immediate = wr.immediate or 0
        posting.post_send(
            self.world.place, self.record, address_of(data), data.nbytes, 1, wr.immediate is not None, immediate,
            rkey, remote, wr.solicited,
        )  # fmt: skip

    def post_recv(self, wr: RecvWr) -> None:
        """Post a buffer for a message."""
        if self.broken is not None:
            self.complete(Completion(wr.wr_id, Status.FLUSHED, True))
            return
        room = memoryview(wr.buffer)
        self._receives.append(wr)
        posting.post_receive(self.world.place, self.record, address_of(room), room.nbytes, 1)

    def set_sq_psn(self, psn: int) -> None:
        """Give the next packet the PSN ``psn``. Raises ``ValueError`` (``QueuePair.set_sq_psn``)."""
        self.requester.move(psn)

    def set_rq_psn(self, psn: int) -> None:
        """Expect ``psn`` next. Raises ``ValueError`` (``QueuePair.set_rq_psn``)."""
        self.responder.move(psn)

    def complete(self, completion: Completion) -> None:
        """Give a completion to the application."""
        self._on_completion(completion)

    def fail(self, status: Status, cause: Status | None = None) -> None:
        """Break the pair: its oldest send ends with ``status``, everything else is flushed. ``cause``: why, if it is
        another reason."""
        if self.broken is not None:
            return
        row = self.row
        row["broken"] = STATUSES.index(cause or status) + 1
        while row["oldest"] != NONE:
            requester.drop_oldest(self.world.place, self.record)
            self.complete(Completion(self._sends.popleft().wr_id if self._sends else 0, status))
            status = Status.FLUSHED
        self._resend_nothing(int(row["end"]))
        row["next"] = row["una"] = row["high"] = row["end"]
        posted = int(row["posted"]) + int(row["has_receive"])
        row["has_receive"] = False
        posting.forget_receives(self.world.place, self.record)
        for _ in range(posted):
            number = self._receives.popleft().wr_id if self._receives else 0
            self.complete(Completion(number, Status.FLUSHED, True))
        self.forget_kept(None)

    def _resend_nothing(self, upto: int) -> None:
        """Send no packet before ``upto`` again."""
        resending.forget_again(self.world.place, self.record, upto)
        named = self.world.pairs.ctypes.data + self.record * PAIR.itemsize + column_at(PAIR, "named")
        lists.drop_before(self.world.place, named, upto)

    def be_silent(self) -> None:
        """Send nothing more: neither packets nor answers."""
        row = self.row
        self._resend_nothing(int(row["high"]))
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

    def acknowledge(self) -> None:
        """Queue an ACK for everything that has arrived in order. Several queued ACKs become one."""
        pairs.acknowledge(self.world.place, self.record)

    def on_loss(self, frame: bytes) -> None:
        """The network has dropped a frame that this end has sent: with recovery ``oracle`` it is sent again."""
        if self.config.recovery is not Recovery.ORACLE or self.broken is not None:
            return
        places = self.places
        opcode, psn, syndrome = frame[places.opcode_at], int.from_bytes(frame[places.psn]), frame[places.syndrome_at]
        if opcode == Opcode.CNP or opcode in _RESPONSES:
            return  # the NIC that waits for a response requests it again
        if opcode != Opcode.ACKNOWLEDGE:
            self.requester.on_loss(psn)
        elif syndrome < FIRST_NAK:
            self.acknowledge()
        else:
            pairs.answer(self.world.place, self.record, psn, syndrome, int.from_bytes(frame[places.msn]))

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

    def end_run(self, *_: int) -> int:
        """The oldest run of the channel is complete."""
        assert self.channel is not None
        self.channel.end()
        return 0

    def refuse_run(self, place: int, immediate: int) -> int:
        """A message of a run of the channel is not the expected one."""
        assert self.channel is not None
        self.channel.refuse(place, immediate)
        return 0

    def break_off(self, status: int, _: int) -> int:
        """Break the pair."""
        cause, self._refused = self._refused, None
        self.fail(STATUSES[status], cause)
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
        contents, places = self._frames.get(frame), self.places
        reth = RETH.unpack(contents, places.body)
        only = contents[places.opcode_at] in (Opcode.WRITE_ONLY, Opcode.WRITE_ONLY_IMM)
        whole = reth.dma_length <= self.config.mtu
        if only is not whole or (whole and size != reth.dma_length):
            return -Nak(NakCode.INVALID_REQUEST).syndrome
        if not reth.dma_length:
            return 0
        room = self.domain.for_write(reth.rkey, reth.address, reth.dma_length)
        if room is None:
            self._refused = Status.ACCESS_VIOLATION  # it breaks at once
            return -Nak(NakCode.REMOTE_ACCESS_ERROR).syndrome
        self._room = room
        return address_of(room)

    def execute(self, frame: int, _: int) -> int:
        """Execute a READ or an atomic operation. Returns the number of its PSNs; minus a syndrome if it is refused."""
        contents, responder = self._frames.get(frame), self.responder
        msn = (responder.msn + 1) & _MASK
        found = self.execution.execute(self, contents[self.places.opcode_at], responder.expected, contents, msn)
        return -Nak(found).syndrome if isinstance(found, NakCode) else found

    def repeat(self, frame: int, seq: int) -> int:
        """Answer a READ or an atomic operation again."""
        contents = self._frames.get(frame)
        self.execution.repeat(self, contents[self.places.opcode_at], seq, contents, self.responder.msn)
        return 0

    def respond(self, opcode: int, psn: int, msn: int | None, data: memoryview | bytes) -> None:
        """Queue a response packet of a READ or an atomic operation; one without MSN has no AETH."""
        self._responses.append((opcode, psn, msn, data))
        pairs.answer_by_python(self.world.place, self.record)

    def next_cnp(self, *_: int) -> int:
        """The frame of a congestion notification packet."""
        return self._frames.put(self.writer.cnp())

    def next_response(self, *_: int) -> int:
        """The frame of the next response packet."""
        opcode, psn, msn, data = self._responses.popleft()
        head = b"" if msn is None else AETH(Ack().syndrome, msn).pack()
        return self._frames.put(self.writer.frame(opcode, psn, body=head + bytes(data)))


def _signed(number: int) -> int:
    """A number of 64 bits as a signed one of the same bits."""
    return number - (1 << 64) if number >> 63 else number


def _count(most: int | None) -> int:
    return NONE if most is None else most
