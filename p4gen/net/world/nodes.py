"""The nodes at the ends of links: hosts with a NIC, and switches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from itertools import pairwise
from typing import ClassVar

from p4gen.host.transport.clock import Clock
from p4gen.host.transport.nic import Nic
from p4gen.model import Model
from p4gen.model.passes import HELD
from p4gen.net.world.link import Deliver, Direction

_Arrived = tuple[int, int, int, bytes]
"""Time of arrival, running number, port, frame."""
Observer = Callable[[int, bytes, Sequence[bytes]], None]
"""Takes the time at which a frame arrived, the frame, and what a switch sends for it."""


class HostNode:
    """A host: a NIC and its link."""

    def __init__(self, nic: Nic, loop: Clock) -> None:
        self.nic = nic
        self._loop = loop

    def deliver(self, arrival: int, frame: bytes) -> None:
        """Take a frame that arrives at time ``arrival``."""
        self._loop.at(arrival, self.nic.receive, frame)


class SwitchNode:
    """A switch: a packet enters the queue of its output port ``latency`` after its arrival. A packet that recirculates
    arrives again ``recirculation`` after its last arrival; 0: at once.

    Packets are given to the program in batches, in order of arrival. This affects only the speed: an output cannot
    leave before ``latency`` has passed, and by then all earlier arrivals are known. No batch reaches beyond the time at
    which its first packet may arrive again.
    """

    STATE: ClassVar[tuple[str, ...]] = ("received", "lost_ports", "_inbox", "_number", "_wake_at")

    def __init__(self, switch: Model, latency: int, loop: Clock, recirculation: int = 0) -> None:
        self.switch = switch
        self.outputs: dict[int, Direction] = {}
        """The outgoing direction of the link, by port."""
        self.received = 0
        self.lost_ports = 0
        """Number of packets sent to ports without a link."""
        self._latency = latency
        self._recirculation = recirculation
        if recirculation:
            switch.hold_recirculated()
        self._loop = loop
        self._inbox: list[_Arrived] = []
        self._number = 0
        self._wake_at: int | None = None
        self.observer: Observer | None = None
        """Called for every packet; packets are then processed one by one."""
        self._lengths: list[tuple[MutableSequence[int], Direction]] = []

    def keep_lengths(self, registers: Mapping[str, int]) -> None:
        """Keep the lengths of queues, in bytes, in registers of the program, each with its port.

        A register has the length that the queue will have when the packet that is processed joins it.
        """
        cells = self.switch.register_cells
        self._lengths = [(cells(register), self.outputs[port]) for register, port in registers.items()]

    def port(self, number: int) -> Deliver:
        """The function to which a link delivers frames for this port."""

        def deliver(arrival: int, frame: bytes) -> None:
            self._number += 1
            self._inbox.append((arrival, self._number, number, frame))
            due = arrival + self._latency
            if self._wake_at is None or due < self._wake_at:
                self._wake_at = due
                self._loop.at(due, self._wake)

        return deliver

    def _wake(self, _: object) -> None:
        now = self._loop.now
        if self._wake_at != now:
            return  # an earlier call has handled it
        self._wake_at = None
        inbox = self._inbox
        inbox.sort()
        until = min(now, inbox[0][0] + self._recirculation) if self._recirculation else now
        count = bisect_right(inbox, until, key=_arrival)
        batch = inbox[:count]
        del inbox[:count]
        self.received += sum(port != HELD for _, _, port, _ in batch)
        self._give(batch)
        if inbox and self._wake_at is None:
            self._wake_at = max(min(inbox)[0] + self._latency, now)
            self._loop.at(self._wake_at, self._wake)

    def _give(self, batch: list[_Arrived]) -> None:
        """Give packets to the program, and send the output."""
        if self._lengths or self.observer is not None:
            # A packet's way depends on the queues that those before it have joined.
            for entry in batch:
                self._refresh(entry[0] + self._latency)
                self._send([entry])
        else:
            self._send(batch)

    def _refresh(self, at: int) -> None:
        for cells, direction in self._lengths:
            cells[0] = direction.backlog(at) if direction.busy_until > at else 0

    def _send(self, batch: list[_Arrived]) -> None:
        """Process packets, and send the output."""
        outputs, latency = self.outputs, self._latency
        sent = self._process(batch)
        if self.observer is not None:
            sent = list(sent)
            ((arrival, _, port, frame),) = batch
            if port != HELD:
                self.observer(arrival, frame, [packet for _, out, packet in sent if out != HELD])
        for source, out, packet in sent:
            direction = outputs.get(out)
            if out == HELD:
                self._hold(packet, batch[source][0] + self._recirculation)
            elif direction is None:
                self.lost_ports += 1
            else:
                direction.transmit(packet, batch[source][0] + latency)

    def _hold(self, packet: bytes, until: int) -> None:
        """A packet recirculates."""
        self._number += 1
        self._inbox.append((until, self._number, HELD, packet))

    def _process(self, batch: list[_Arrived]) -> Iterable[tuple[int, int, bytes]]:
        """The output in order: the position of the input packet in the batch, port, frame."""
        if len(batch) == 1 or self.switch.engine == "interp":
            process = self.switch.process
            return [(i, *out) for i, (_, _, port, frame) in enumerate(batch) for out in process(port, frame)]
        # llvmlite takes a while to load, and only this engine needs it.
        from p4gen.model.jit import Batch  # noqa: PLC0415

        out = self.switch.process_batch(Batch.of([(port, frame) for _, _, port, frame in batch]))
        assert out.sources is not None
        whole, at = out.data.tobytes(), out.offsets.tolist()
        frames = [whole[start:end] for start, end in pairwise(at)]
        return zip(out.sources.tolist(), out.ports.tolist(), frames, strict=True)


def _arrival(entry: _Arrived) -> int:
    return entry[0]
