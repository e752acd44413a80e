"""The switches of a compiled network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from typing_extensions import override

from p4gen.compiled import links
from p4gen.compiled.memory import NONE
from p4gen.host.compiled.records import Frames, column
from p4gen.model import Model
from p4gen.model.names import find
from p4gen.model.passes import HELD
from p4gen.net.compiled.links import CompiledDirection
from p4gen.net.world.link import Deliver
from p4gen.net.world.nodes import SwitchNode

_BYTES: Final = 4
"""Bytes of a register that holds the length of a queue."""


class CompiledNode(SwitchNode):
    """A switch that is record ``number`` of a compiled world. Python gives it its packets if the interpreter runs its
    program, or if there is an observer."""

    STATE: ClassVar[tuple[str, ...]] = ()

    received: int = column("received")
    lost_ports: int = column("lost_ports")

    def __init__(self, frames: Frames, number: int, switch: Model, latency: int, loop: Any, delay: int) -> None:
        """``delay`` is the time after which a packet that recirculates arrives again."""
        self._frames, self._record = frames, number
        self._row = frames.world.switches[number]
        super().__init__(switch, latency, loop, delay)
        row = self._row
        row["latency"], row["recirculation"], row["wake_at"] = latency, delay, NONE
        self._engine = switch.native if switch.engine == "jit" else None
        if self._engine is not None:
            row["exchange"], row["temporary"], row["batch"] = self._engine.places

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

    @override
    def keep_lengths(self, registers: Mapping[str, int]) -> None:
        super().keep_lengths(registers)
        if self._engine is None:
            return
        queues, row = self._frames.world.queues, self._row
        row["queues"], row["queues_used"] = row["outputs"], len(registers)
        for i, (register, port) in enumerate(registers.items(), int(row["outputs"])):
            item, direction = find("register", register, self._engine.state.layout.registers), self.outputs[port]
            assert item.bytes == _BYTES
            assert isinstance(direction, CompiledDirection)
            queues[i] = item.offset, item.width, direction.number

    @override
    def port(self, number: int) -> Deliver:
        frames, record = self._frames, self._record

        def deliver(arrival: int, frame: bytes) -> None:
            links.arrive(frames.world.place, record, number, frames.put(frame), arrival)

        return deliver

    @override
    def _hold(self, packet: bytes, until: int) -> None:
        links.enter(self._frames.world.place, self._record, HELD, self._frames.put(packet), until)

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
        assert self._engine is not None
        self._engine.take_events()
        return 0
