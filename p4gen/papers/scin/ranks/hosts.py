"""What a rank does with SCIN: it says where its operand is, and waits for its flag.

A rank has three connections of a context: it arrives and is flagged over one, is read over the second, and written to
over the third. It posts nothing else: reading, pacing and repair are the switch's. With ordered completion the last
WRITE of its result is its flag, and over the first connection it gets the flags of calls without a result for it, and
of aborts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

from p4gen.host.transport.memory import MemoryRegion
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.rc import VerbsPair
from p4gen.host.transport.verbs import Completion, Peer, QpConfig, RecvWr, SendWr
from p4gen.host.transport.verbs import Status as Completed
from p4gen.papers.scin.codes import NUMBERS, Status
from p4gen.papers.scin.control import Role
from p4gen.papers.scin.headers import ANNOUNCED, BUFFERS, FLAG
from p4gen.papers.scin.spec import ScinSpec
from p4gen.rocev2 import psn as serial
from p4gen.rocev2.layouts import PSN_BITS


@dataclass(frozen=True)
class Buffer:
    """A part of registered memory, from byte ``offset`` on."""

    region: MemoryRegion
    offset: int = 0

    @property
    def address(self) -> int:
        """The virtual address of the first byte."""
        return self.region.address + self.offset


class Member:
    """A rank in a context. ``flag`` is the memory that it polls, from byte ``offset`` on."""

    STATE: ClassVar = ("flag", "problems", "calls", "statuses", "flagged", "_abort")

    def __init__(
        self, nic: VerbsNic, spec: ScinSpec, first_psn: int, flag: MemoryRegion | None = None, offset: int = 0
    ) -> None:
        self._nic, self._spec, self._first_psn = nic, spec, first_psn
        self.flag = flag or nic.domain.register(bytearray(FLAG.size))
        self._offset = offset
        self.pairs: list[VerbsPair] = []
        self.problems: list[str] = []
        self.calls = 0
        """Calls that it has arrived at."""
        self.statuses: list[Status] = []
        """How those have ended for which it has its flag."""
        self.flagged = 0
        """When it got the newest flag, ps."""
        self.on_flag: Callable[[], None] = lambda: None
        """What is called at each flag."""
        self.troubled: Callable[[], None] = lambda: None
        """What is called when there is a problem."""
        self._abort: Status | None = None
        """Why the context was aborted when the rank waited for nothing: its next call ends so."""

    def connect(self, ends: dict[Role, tuple[int, Peer]], config: QpConfig) -> None:
        """Create the connections: the QP and the switch's end of each."""
        whole = replace(config, mtu=max(config.mtu, BUFFERS.size))  # an arrival is one packet, data may be shorter
        for role, (number, peer) in ends.items():
            completed = self._written if role is Role.WRITE else self._completed
            its = {Role.SYNC: whole, Role.WRITE: replace(config, mtu=self._spec.written_mtu)}.get(role, config)
            pair = self._nic.create_pair(number, peer, its, completed)
            self.pairs.append(pair)
            if role is Role.SYNC:
                self._sync = pair
                pair.post_recv(RecvWr(0))
            elif role is Role.WRITE and self._spec.ordered:
                self._results = pair
                pair.post_recv(RecvWr(0))

    def disconnect(self) -> None:
        """Destroy the connections; what is outstanding on them completes as flushed."""
        for pair in self.pairs:
            pair.fail(Completed.FLUSHED)
            self._nic.destroy_pair(pair)
        self.pairs.clear()

    def arrive(
        self, packets: int, source: Buffer | None = None, result: Buffer | None = None, numbers: str = ""
    ) -> None:
        """Arrive at the next call, of ``packets`` packets of ``numbers``, of the program's if it does not say which. A
        rank that is no source needs no operand, one that is no destination no room for a result. Raises
        ``RuntimeError`` if it has no flag of the call before."""
        if not self.done:
            raise RuntimeError(f"the flag of call {self.calls} has not come")
        if self._abort is not None:
            self.calls += 1
            self._nic.clock.at(self._nic.clock.now, self._aborted)
            return
        where = BUFFERS.word.pack(
            source=source.address if source else 0,
            source_key=source.region.rkey if source else 0,
            result=result.address if result else 0,
            result_key=result.region.rkey if result else 0,
        )
        said = ANNOUNCED.pack(numbers=NUMBERS[numbers or self._spec.dtype], packets=packets)
        self.calls += 1
        self._sync.post_send(SendWr(self.calls, where.to_bytes(BUFFERS.size), said))

    @property
    def done(self) -> bool:
        """Whether it has the flags of all its calls."""
        return len(self.statuses) == self.calls

    def _completed(self, completion: Completion) -> None:
        """Something has happened on the connections for flags and for READs."""
        if completion.status is not Completed.SUCCESS:
            self._failed(completion.status)
        elif completion.receive:
            said = FLAG.word.unpack(int.from_bytes(self.flag.buffer[self._offset : self._offset + FLAG.size]))
            self._sync.post_recv(RecvWr(0))
            self._flagged(said["call"], Status(said["status"]))

    def _written(self, completion: Completion) -> None:
        """The same on the connection for WRITEs."""
        if completion.status is not Completed.SUCCESS:
            self._failed(completion.status)
        elif completion.receive:
            assert completion.immediate is not None
            self._results.post_recv(RecvWr(0))
            self._flagged(completion.immediate & serial.PSN_MASK, Status(completion.immediate >> PSN_BITS))

    def _flagged(self, call: int, status: Status) -> None:
        """A flag has come. That of an abort ends the call that the rank waits for, whichever it is about: the rank may
        not have got the result of the call before, or not have arrived at that one."""
        if status is not Status.SUCCESS:
            if self.done:
                self._abort = status
            else:
                self._end(status)
            return
        wanted = serial.add(self._first_psn, self.calls - 1)
        if not self.done and call == wanted:
            self._end(status)
        elif not self.statuses or self.statuses[-1] is Status.SUCCESS:
            self._trouble(f"a flag of call {call}, not {wanted}")

    def _failed(self, status: Completed) -> None:
        """A connection is broken. What is flushed with it has failed before."""
        refused = status is Completed.REMOTE_INVALID_REQUEST
        why = ": the switch refuses the arrival: ranks call different things, or a call was aborted" if refused else ""
        if status is not Completed.FLUSHED:
            self._trouble(f"call {self.calls}: {status}{why}")

    def _trouble(self, problem: str) -> None:
        self.problems.append(problem)
        self.troubled()

    def _aborted(self, _: object) -> None:
        """A call ends because the context was aborted before."""
        if not self.done:
            assert self._abort is not None
            self._end(self._abort)

    def _end(self, status: Status) -> None:
        self.statuses.append(status)
        self.flagged = self._nic.clock.now
        self.on_flag()
