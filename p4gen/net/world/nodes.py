"""The switches at the ends of links: packets are given to a program in batches (``p4gen.compiled.switches``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableSequence
from itertools import pairwise
from typing import ClassVar, Final

from p4gen.compiled import links, pausing
from p4gen.compiled.memory import NONE, Ask
from p4gen.host.compiled.hosts import Method
from p4gen.host.compiled.records import Frames, column
from p4gen.model import Model
from p4gen.model.names import find
from p4gen.model.passes import HELD
from p4gen.net.world.link import Direction
from p4gen.net.world.watching import Observer

_Arrived = tuple[int, int, bytes, int]
"""Time of arrival, port, frame, and the number of the frame."""
Deliver = Callable[[int, bytes], None]
"""A function that takes the time of arrival, which may be in the future, and the frame."""
_BYTES: Final = 4
"""Bytes of a register that holds the length of a queue."""


class SwitchNode:
    """A switch, record ``number`` of a world: a packet enters the queue of its output port ``latency`` after its
    arrival. A packet that recirculates arrives again ``recirculation`` after its last arrival; 0: at once.

    Packets are given to the program in batches, in order of arrival. This affects only the speed: an output cannot
    leave before ``latency`` has passed, and by then all earlier arrivals are known. No batch reaches beyond the time at
    which its first packet may arrive again. Python gives the program its packets if the interpreter runs it, or if
    there is an observer.
    """

    STATE: ClassVar[tuple[str, ...]] = ()

    received: int = column("received")
    lost_ports: int = column("lost_ports")
    """Number of packets sent to ports without a link."""

    def __init__(self, frames: Frames, number: int, switch: Model, latency: int, recirculation: int = 0) -> None:
        self.switch = switch
        self.outputs: dict[int, Direction] = {}
        """The outgoing direction of the link, by port."""
        self.observer: Observer | None = None
        """Called for every packet; packets are then processed one by one."""
        self._frames, self._record = frames, number
        self._latency, self._recirculation = latency, recirculation
        if recirculation:
            switch.hold_recirculated()
        self._lengths: list[tuple[MutableSequence[int], Direction]] = []
        self._engine = switch.native if switch.engine == "jit" else None
        self._row = row = frames.world.switches[number]
        row["latency"], row["recirculation"], row["wake_at"] = latency, recirculation, NONE
        if self._engine is not None:
            row["exchange"], row["temporary"], row["batch"] = self._engine.places

    def keep_lengths(self, registers: Mapping[str, int]) -> None:
        """Keep the lengths of queues, in bytes, in registers of the program, each with its port.

        A register has the length that the queue will have when the packet that is processed joins it.
        """
        cells = self.switch.register_cells
        self._lengths = [(cells(register), self.outputs[port]) for register, port in registers.items()]
        if self._engine is None:
            return
        queues, row = self._frames.world.queues, self._row
        row["queues"], row["queues_used"] = row["outputs"], len(registers)
        for i, (register, port) in enumerate(registers.items(), int(row["outputs"])):
            item = find("register", register, self._engine.state.layout.registers)
            assert item.bytes == _BYTES
            queues[i] = item.offset, item.width, self.outputs[port].number

    def prepare(self) -> None:
        """Tell compiled code what Python has to do, and where the program's memory is."""
        self._row["by_python"] = self._engine is None or self.observer is not None
        self.flush()

    def flush(self) -> None:
        """Write new entries into the program's memory, which may move."""
        if self._engine is not None:
            state = self._engine.state
            state.flush()
            self._row["state"] = state.block.address

    def port(self, number: int) -> Deliver:
        """The function to which frames for this port are delivered."""

        def deliver(arrival: int, frame: bytes) -> None:
            links.arrive(self._frames.world.place, self._record, number, self._frames.put(frame), arrival)

        return deliver

    # --- what compiled code asks for ---

    def process(self, count: int, _: int) -> int:
        """Give the packets in ``World.work`` to the program, and send the output."""
        work = self._frames.world.work[:count]
        batch = [(int(time), int(port), self._frames.get(int(frame)), int(frame)) for time, _, port, frame in work]
        if self._lengths or self.observer is not None:
            # A packet's way depends on the queues that those before it have joined.
            for entry in batch:
                self._refresh(entry[0] + self._latency)
                self._send([entry])
        else:
            self._send(batch)
        return 0

    def take_events(self, *_: int) -> int:
        """Take over digests and messages. Raises ``Trap`` if the program has trapped."""
        assert self._engine is not None
        self._engine.take_events()
        return 0

    def _refresh(self, at: int) -> None:
        for cells, direction in self._lengths:
            cells[0] = direction.backlog(at) if direction.busy_until > at else 0

    def _send(self, batch: list[_Arrived]) -> None:
        """Process packets, and send the output."""
        sent = self._process(batch)
        if self.observer is not None:
            sent = list(sent)
            ((arrival, port, frame, _),) = batch
            if port != HELD:
                self.observer(arrival, frame, [packet for _, out, packet in sent if out != HELD])
        before, charge, place = NONE, NONE, self._frames.world.place
        for source, out, packet in sent:
            arrival, direction = batch[source][0], self.outputs.get(out)
            if out == HELD:
                held = self._frames.put(packet)
                links.enter(place, self._record, HELD, held, arrival + self._recirculation)
            elif direction is None:
                self.lost_ports += 1
            elif not direction.controlled:
                direction.transmit(packet, arrival + self._latency)
            else:
                if source != before:
                    before, (_, port, _, number) = source, batch[source]
                    charge = pausing.charge_for(place, self._record, port, number)
                pausing.offer(place, direction.number, self._frames.put(packet), charge, arrival + self._latency)

    def _process(self, batch: list[_Arrived]) -> Iterable[tuple[int, int, bytes]]:
        """The output in order: the position of the input packet in the batch, port, frame."""
        if len(batch) == 1 or self._engine is None:
            process = self.switch.process
            return [(i, *out) for i, (_, port, frame, _) in enumerate(batch) for out in process(port, frame)]
        # llvmlite takes a while to load, and only this engine needs it.
        from p4gen.model.jit import Batch  # noqa: PLC0415

        out = self.switch.process_batch(Batch.of([(port, frame) for _, port, frame, _ in batch]))
        assert out.sources is not None
        whole, at = out.data.tobytes(), out.offsets.tolist()
        frames = [whole[start:end] for start, end in pairwise(at)]
        return zip(out.sources.tolist(), out.ports.tolist(), frames, strict=True)


ANSWERS: Final[dict[Ask, Method]] = {Ask.BATCH: SwitchNode.process, Ask.EVENTS: SwitchNode.take_events}
"""What compiled code asks of switches."""
