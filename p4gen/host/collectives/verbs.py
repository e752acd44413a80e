"""A channel on any NIC with verbs: phases by work requests and completions, as ``compiled`` runs them in machine code.

Receives are posted when a collective is called, not only when its turn comes, because a neighbour may be one collective
ahead. A phase of many messages has only as many receives posted at once as can be in use.

Results may be written to memory instead, a ring of R packets (``GroupConfig.ring``). Then receives have no buffers. A
message begins at the place of its first PSN modulo R, and its immediate data is the PSN of its last packet. As at most
2W receives are posted, it stays there until it is taken.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, Final

import numpy as np

from p4gen.host.collectives.channel import Owner, PhaseRun, unexpected
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import ChannelKey, Flow, GroupConfig, Phase
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Completion, RecvWr, SendWr, Status
from p4gen.rocev2 import psn

_NOTHING: Final = memoryview(b"")
_AHEAD: Final = 1024
"""Receives that are posted at once if results do not wait for this rank: more messages than switches keep."""


class VerbsChannel:
    """A channel (see the module's docstring); ``pair`` is its queue pair, and ``memory`` what results are written
    to."""

    STATE: ClassVar = ("_memory", "_next", "_rooms", "_receiving", "_open", "_sending", "_data")

    def __init__(
        self, nic: VerbsNic, config: GroupConfig, key: ChannelKey, owner: Owner, memory: memoryview = _NOTHING
    ) -> None:
        connection = config.channels[key]
        self.pair: VerbsPair = nic.create_pair(connection.qp, connection.peer, connection.qp_config, self._completed)
        self._clock, self._owner = nic.clock, owner
        self._window, self._size = config.window, config.packet * config.message
        self._packet, self._ring, self._memory = config.packet, config.ring, memory
        self._next = connection.qp_config.received_psn
        """The PSN of the next message; only where results are written to memory."""
        self._by_results = config.flow is Flow.RESULTS
        self._ahead = 2 * config.window if self._by_results or self._ring else _AHEAD
        self._rooms: deque[PhaseRun] = deque()
        """Phases for which more receives are to be posted, in order."""
        self._receiving: deque[PhaseRun] = deque()
        """Phases that have not received all, in order."""
        self._open = 0
        """Number of receives that are posted and not used."""
        self._sending: PhaseRun | None = None
        """The phase that is running."""
        self._data = _NOTHING
        """What it sends, as it is on the wire."""

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
            self._rooms.append(run)
            self._post_receives()
        return run

    def begin(self, run: PhaseRun) -> None:
        """Start a phase, which ``prepare`` has returned: send its messages, up to the window."""
        run.begun = True
        self._sending = run
        if run.phase.send is not None:
            self._data = _elements(run.phase, run.phase.send).byteswap().view(np.uint8).data
            self._post_sends(run)
        if not run.left:
            self._end(run)

    def stop(self) -> None:
        """Send nothing more."""
        self._sending = None

    def _post_receives(self) -> None:
        while self._rooms and self._open < self._ahead:
            run = self._rooms[0]
            assert run.phase.receive is not None
            number = run.rooms
            run.rooms += 1
            if run.rooms == run.messages:
                self._rooms.popleft()
            self._open += 1
            room = _NOTHING if self._ring else run.phase.receive[self._part(number)]
            self.pair.post_recv(RecvWr(number, room))

    def _post_sends(self, run: PhaseRun) -> None:
        """Post sends while fewer than W messages are outstanding."""
        waits = run.phase.receive is not None and self._by_results
        while run is self._sending and run.posted < run.messages:
            through = min(run.sent, run.received) if waits else run.sent
            if run.posted - through >= self._window:
                return
            number = run.posted
            run.posted += 1
            self.pair.post_send(SendWr(number, self._data[self._part(number)], None if number else run.control))

    def _part(self, number: int) -> slice:
        return slice((number - 1) * self._size, number * self._size) if number else slice(0)

    def _completed(self, completion: Completion) -> None:
        if completion.status is not Status.SUCCESS:
            self.stop()
            # A flush says only that the pair is in error. If no send was outstanding, no completion gives the cause.
            self._owner.channel_failed(self.pair.broken or completion.status)
            return
        run = self._sending
        if completion.receive:
            self._received(completion)
        else:
            assert run is not None
            run.sent += 1
            run.left -= 1
            run.invocation.messages_sent += 1
        if run is None or run is not self._sending:
            return
        if run.phase.send is not None:
            self._post_sends(run)
        if not run.left:
            self._end(run)

    def _received(self, completion: Completion) -> None:
        run = self._receiving[0]
        phase = run.phase
        run.received += 1
        run.left -= 1
        self._open -= 1
        run.invocation.messages_received += 1
        wanted = self._take(phase, completion.wr_id) if self._ring else None
        if not phase.added:
            run.invocation.last_result = self._clock.now
        if run.received == run.messages:
            self._receiving.popleft()
            if phase.receive and not self._ring:
                _elements(phase, phase.receive).byteswap(inplace=True)
        if completion.immediate != (wanted if completion.wr_id else run.control):
            self.stop()
            self._owner.channel_failed(unexpected(phase, completion, wanted))
        else:
            self._post_receives()

    def _take(self, phase: Phase, number: int) -> int:
        """Take the data of a message from memory. Returns the PSN of its last packet."""
        assert phase.receive is not None
        room = phase.receive[self._part(number)]
        if room:
            start = self._next % self._ring * self._packet
            data = self._memory[start : start + len(room)]
            room[:] = _elements(phase, data).byteswap().view(np.uint8).data
        last = psn.add(self._next, max(1, len(room) // self._packet) - 1)
        self._next = psn.add(last, 1)
        return last

    def _end(self, run: PhaseRun) -> None:
        self.stop()
        self._data = _NOTHING
        self._owner.run_ended(run)


def _elements(phase: Phase, memory: memoryview) -> np.ndarray[tuple[int], np.dtype[np.unsignedinteger]]:
    """Memory as elements, which have their most significant byte first on the wire, and last in arrays."""
    return np.frombuffer(memory, f"u{phase.control.dtype.number_format.bytes}")
