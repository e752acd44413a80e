"""A channel: a queue pair of a group. It runs phases one after the other, with a window of W messages.

The runs are compiled (``p4gen.compiled.channels``): Python prepares them, and hears of their ends.

Receives are posted when a collective is called, not only when its turn comes, because a neighbour may be one collective
ahead. The exception is refined synchronisation in Mode II. There, the ACK of a Broadcast's result could overtake an
AllReduce contribution that is not yet acknowledged. ACKs are cumulative, so that contribution would never be
acknowledged. So the receiver answers "not ready" until everything before is complete.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar

from p4gen.compiled import channels
from p4gen.compiled.memory import NONE
from p4gen.host.collectives.channel import Owner, PhaseRun, unexpected
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.plan import ChannelKey, Flow, GroupConfig, Phase, PsnSync
from p4gen.host.compiled.pairs import CompiledPair
from p4gen.host.compiled.records import address_of
from p4gen.host.transport.nic import VerbsNic
from p4gen.host.transport.verbs import Completion, Status


class Channel:
    """A channel (see the module's docstring); ``pair`` is its queue pair."""

    STATE: ClassVar[tuple[str, ...]] = ("_runs",)

    def __init__(self, nic: VerbsNic, config: GroupConfig, key: ChannelKey, owner: Owner) -> None:
        connection = config.channels[key]
        pair = nic.create_pair(connection.qp, connection.peer, connection.qp_config, self._completed)
        assert isinstance(pair, CompiledPair)
        self.pair = pair
        self._owner = owner
        self._size = config.packet * config.message
        self._row, self._world, self._record = pair.row, pair.world, pair.record
        self._runs: deque[PhaseRun] = deque()
        """The runs that have not ended, in the order of their records' list."""
        self._row["has_channel"] = True
        self._row["early"] = config.sync is not PsnSync.REFINED or config.hop_by_hop
        self._row["part"], self._row["window"] = self._size, config.window
        self._row["ahead"] = 2 * config.window if config.flow is Flow.RESULTS else NONE
        pair.channel = self

    @property
    def awaits(self) -> bool:
        """Whether a running phase still has messages to receive."""
        place = int(self._row["receiving"])
        return place != NONE and bool(self._world.runs["begun"][place])

    def prepare(self, phase: Phase, invocation: Invocation) -> PhaseRun:
        """Prepare a phase that runs after those prepared before: post receives for it, as far as is useful."""
        size = len(phase.send if phase.send is not None else phase.receive or b"")
        run = PhaseRun(phase, invocation, 1 + -(-size // self._size))
        waits = phase.receive is not None and self._row["ahead"] != NONE
        channels.prepare(
            self._world.place, self._record, *_memory(phase.send), *_memory(phase.receive),
            phase.control.dtype.number_format.bytes, run.control, waits, phase.added,
        )  # fmt: skip
        self._runs.append(run)
        return run

    def begin(self, run: PhaseRun) -> None:
        """Start a phase, the oldest that ``prepare`` has returned and that has not ended: send its messages, up to the
        window."""
        assert run is self._runs[0]
        if self.pair.broken is not None:
            self._owner.channel_failed(self.pair.broken)
            return
        run.begun = True
        channels.begin(self._world.place, self._record, int(self._row["run"]))

    def stop(self) -> None:
        """Send nothing more."""
        self._row["sending"] = NONE

    def _completed(self, completion: Completion) -> None:
        """The pair has failed: what succeeds is counted by runs. A flush says only that the pair is in error. If no
        send was outstanding, no completion gives the cause."""
        self.stop()
        self._owner.channel_failed(self.pair.broken or completion.status)

    # --- what compiled code asks for ---

    def end(self) -> None:
        """The oldest run is complete."""
        self.stop()
        run = self._runs.popleft()
        self._count(int(self._row["run"]), run)
        channels.give_run(self._world.place, self._record)
        self._owner.run_ended(run)

    def refuse(self, place: int, immediate: int) -> None:
        """A message of a run has arrived with other immediate data."""
        self.count()
        run, known = self._runs[self._places().index(place)], None if immediate == NONE else immediate
        completion = Completion(run.received - 1, Status.SUCCESS, True, immediate=known)
        self.stop()
        self._owner.channel_failed(unexpected(run.phase, completion))

    def count(self) -> None:
        """Take over the counts of all runs."""
        for place, run in zip(self._places(), self._runs, strict=True):
            self._count(place, run)

    def _count(self, place: int, run: PhaseRun) -> None:
        """Take over a run's counts from its record."""
        row, invocation = self._world.runs[place], run.invocation
        sent, received = int(row["sent"]), int(row["received"])
        invocation.messages_sent += sent - run.sent
        invocation.messages_received += received - run.received
        run.posted, run.rooms, run.left = int(row["posted"]), int(row["rooms"]), int(row["left"])
        run.sent, run.received = sent, received
        if row["last_result"] != NONE:
            last = int(row["last_result"])
            invocation.last_result = max(last, invocation.last_result or last)

    def find_memory(self) -> None:
        """Set the addresses of runs, and of the messages and receives that are posted for them."""
        of, row = self._world, self._row
        for place, run in zip(self._places(), self._runs, strict=True):
            for name, memory in (("send", run.phase.send), ("receive", run.phase.receive)):
                of.runs[name][place] = _memory(memory)[0]
        place, run_of = int(row["oldest"]), int(row["sending"])
        number = int(of.runs["sent"][run_of]) if run_of != NONE else 0
        while place != NONE:
            of.messages["data"][place] = self._start(int(of.runs["send"][run_of]), number)
            place, number = int(of.messages["following"][place]), number + 1
        run_of = int(row["receiving"])
        number = int(of.runs["received"][run_of]) if run_of != NONE else 0
        if row["has_receive"]:
            row["taken_room"] = self._start(int(of.runs["receive"][run_of]), number)
            number += 1
        if row["inside"] != NONE:
            row["room"] = row["taken_room"]
        place = int(row["receive"])
        while place != NONE:
            if number == of.runs["messages"][run_of]:
                run_of, number = int(of.runs["next_receiving"][run_of]), 0
            of.receives["room"][place] = self._start(int(of.runs["receive"][run_of]), number)
            place, number = int(of.receives["following"][place]), number + 1

    def _places(self) -> list[int]:
        """The records of the runs that have not ended."""
        found, place = [], int(self._row["run"])
        while place != NONE:
            found.append(place)
            place = int(self._world.runs["following"][place])
        return found

    def _start(self, memory: int, number: int) -> int:
        """The address of a message's data."""
        return memory + max(0, number - 1) * self._size


def _memory(memory: memoryview | bytes | None) -> tuple[int, int]:
    """The address of data and its size; ``NONE`` and 0 for no data."""
    if memory is None:
        return NONE, 0
    return address_of(memoryview(memory)), len(memory)
