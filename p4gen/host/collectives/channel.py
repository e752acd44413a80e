"""A channel: a queue pair of a group. It runs phases one after the other, with a window of W messages.

Receives are posted when a collective is called, not only when its turn comes, because a neighbour may be one collective
ahead. The exception is refined synchronisation in Mode II. There, the ACK of a Broadcast's result could overtake an
AllReduce contribution that is not yet acknowledged. ACKs are cumulative, so that contribution would never be
acknowledged. So the receiver answers "not ready" until everything before is complete.

Message 0 of a phase is its control message, the others have M packets each.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import ClassVar, Protocol

from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import ChannelKey, Flow, GroupConfig, Phase, PsnSync
from p4gen.host.transport.nic import Nic
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status


@dataclass(eq=False)
class PhaseRun:
    """A phase that has been prepared or is running. Counts are messages."""

    phase: Phase
    invocation: Invocation
    messages: int
    """Messages in each direction that the phase uses."""
    begun: bool = False
    rooms: int = 0
    """Number of receives posted."""
    received: int = 0
    posted: int = 0
    """Number of sends posted."""
    sent: int = 0
    control: int = field(init=False)
    """The immediate value of message 0."""
    left: int = field(init=False)
    """Messages still to be sent or received. At 0 everything has arrived and everything sent is acknowledged."""

    def __post_init__(self) -> None:
        self.control = self.phase.control.encode()
        self.left = self.messages * (2 - (self.phase.send, self.phase.receive).count(None))


class Owner(Protocol):
    """The object that runs phases on a channel."""

    def run_ended(self, run: PhaseRun) -> None:
        """A phase is complete: everything is sent, acknowledged and received."""

    def channel_failed(self, error: Status | str) -> None:
        """The channel has failed and cannot be used again."""


class Channel:
    """A channel (see the module's docstring); ``pair`` is its queue pair."""

    STATE: ClassVar[tuple[str, ...]] = ("_rooms", "_receiving", "_open", "_sending")

    def __init__(self, nic: Nic, config: GroupConfig, key: ChannelKey, owner: Owner) -> None:
        connection = config.channels[key]
        self.pair: QueuePair = nic.create_pair(connection.qp, connection.peer, connection.qp_config, self._completed)
        self._nic = nic
        self._owner = owner
        self._window = config.window
        self._size = config.packet * config.message
        self._flow = config.flow
        self._ahead: int | None = 2 * config.window if config.flow is Flow.RESULTS else None
        self._early = config.sync is not PsnSync.REFINED or config.hop_by_hop
        """Whether receives are posted before a phase's turn comes."""
        self._rooms: deque[PhaseRun] = deque()
        """Phases for which more receives are to be posted, in order."""
        self._receiving: deque[PhaseRun] = deque()
        """Phases that have not received all, in order."""
        self._open = 0
        """Number of receives that are posted and not used."""
        self._sending: PhaseRun | None = None

    @property
    def awaits(self) -> bool:
        """Whether a running phase still has messages to receive."""
        return bool(self._receiving) and self._receiving[0].begun

    def prepare(self, phase: Phase, invocation: Invocation) -> PhaseRun:
        """Prepare a phase that runs after those prepared before: post receives for it, as far as is useful."""
        size = len(phase.send if phase.send is not None else phase.receive or b"")
        run = PhaseRun(phase, invocation, 1 + -(-size // self._size))
        if phase.receive is not None:
            self._receiving.append(run)
            if self._early:
                self._make_room(run)
        return run

    def begin(self, run: PhaseRun) -> None:
        """Start a phase, which ``prepare`` has returned: send its messages, up to the window."""
        run.begun = True
        self._sending = run
        if run.phase.receive is not None and not self._early:
            self._make_room(run)
        self._post_sends()
        if not run.left:
            self._end()

    def stop(self) -> None:
        """Send nothing more."""
        self._sending = None

    def _make_room(self, run: PhaseRun) -> None:
        self._rooms.append(run)
        self._post_rooms()

    def _post_rooms(self) -> None:
        while self._rooms and (self._ahead is None or self._open < self._ahead):
            run = self._rooms[0]
            assert run.phase.receive is not None
            number = run.rooms
            run.rooms += 1
            if run.rooms == run.messages:
                self._rooms.popleft()
            self._open += 1
            self.pair.post_recv(RecvWr(number, run.phase.receive[self._part(number)]))

    def _post_sends(self) -> None:
        """Post sends while fewer than W messages are outstanding."""
        run = self._sending
        if run is None or run.phase.send is None:
            return
        waits = run.phase.receive is not None and self._flow is Flow.RESULTS
        while run is self._sending and run.posted < run.messages:
            through = min(run.sent, run.received) if waits else run.sent
            if run.posted - through >= self._window:
                return
            number = run.posted
            run.posted += 1
            announced = run.control if number == 0 else None
            self.pair.post_send(SendWr(number, run.phase.send[self._part(number)], announced))

    def _part(self, number: int) -> slice:
        return slice((number - 1) * self._size, number * self._size) if number else slice(0)

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            self._sending = None
            # A flush says only that the pair is in error. If no send was outstanding, no completion gives the cause.
            self._owner.channel_failed(self.pair.broken or completion.status)
            return
        if completion.receive:
            self._received(completion)
        else:
            run = self._sending
            assert run is not None
            run.sent += 1
            run.left -= 1
            run.invocation.messages_sent += 1
        run = self._sending
        if run is None:
            return
        if not run.left:
            self._end()
        elif run.posted < run.messages:
            self._post_sends()

    def _received(self, completion: Completion) -> None:
        run = self._receiving[0]
        run.received += 1
        run.left -= 1
        self._open -= 1
        run.invocation.messages_received += 1
        if not run.phase.added:
            run.invocation.last_result = self._nic.clock.now
        if run.received == run.messages:
            self._receiving.popleft()
        if completion.immediate != (run.control if completion.wr_id == 0 else None):
            self._sending = None
            self._owner.channel_failed(unexpected(run.phase, completion))
        elif self._rooms:
            self._post_rooms()

    def _end(self) -> None:
        run = self._sending
        assert run is not None
        self._sending = None
        self._owner.run_ended(run)


def unexpected(phase: Phase, completion: Completion) -> str:
    """Why a received message is not the expected one; "" if it is."""
    if completion.wr_id == 0:
        return f"a control message announces {completion.immediate}, not {phase.control}"
    return "a control message came instead of data"
