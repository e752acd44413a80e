"""The packet generator: applications that make batches of packets, started by time or by a port that goes down.

A generated packet arrives at the generator's port of its pipe, with the header that the architecture declares for what
started it (``pktgen_timer_header_t``, ``pktgen_port_down_header_t``) in front of the application's bytes. Time is the
switch's clock; packets that are due are processed before the next packet that arrives, or by ``TofinoModel.generate``.
Applications started by recirculated packets, by the deparser (T2NA) and by PFC are not modelled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from p4gen.arch.tna.chip import PIPES, Chip
from p4gen.model.errors import ControlError
from p4gen.model.state import Clock

Trigger = Literal["one shot", "periodic", "port down"]
MOST = 10_000
"""Packets that the generator makes at a time at most; a clock that leaps makes no more."""


@dataclass(frozen=True)
class Application:
    """What the control plane tells the generator."""

    number: int
    packet: bytes
    trigger: Trigger = "one shot"
    pipe: int = 0
    period: int = 0
    """Nanoseconds from one start to the next (periodic), or from ``start`` to the only one."""
    batches: int = 1
    packets: int = 1
    """Packets of a batch."""
    between_batches: int = 0
    """Nanoseconds."""
    between_packets: int = 0


@dataclass
class _Running:
    application: Application
    next: int
    """The time of the next start, in nanoseconds."""
    done: bool = False


class Generator:
    """The applications of all pipes."""

    def __init__(self, chip: Chip, clock: Clock, ports_down: Collection[int]) -> None:
        self._chip, self._clock, self._ports_down = chip, clock, ports_down
        self.applications: dict[tuple[int, int], _Running] = {}
        self._pending: list[tuple[int, int, int, bytes]] = []
        self._made = 0
        self._down: frozenset[int] = frozenset()

    def start(self, application: Application) -> None:
        """Run an application; one of the same number in the same pipe is replaced. Raises ``ControlError``."""
        what = f"packet generator, application {application.number}"
        most = 1 << self._chip.application_bits
        if not 0 <= application.number < most or not 0 <= application.pipe < PIPES:
            raise ControlError(f"{what}: there are {most} applications in each of {PIPES} pipes")
        if application.trigger == "periodic" and application.period <= 0:
            raise ControlError(f"{what}: a periodic application needs a period")
        if min(application.batches, application.packets) < 1 or max(application.batches, application.packets) > 1 << 16:
            raise ControlError(f"{what}: batches and packets are counted from 1 to 65536")
        now = self._clock() * 1000
        self.applications[application.pipe, application.number] = _Running(application, now + application.period)
        self._down = frozenset(self._ports_down)

    def stop(self, number: int, pipe: int = 0) -> None:
        """Stop an application."""
        self.applications.pop((pipe, number), None)

    def reset(self) -> None:
        """No applications, and nothing that is still to be made."""
        self.applications.clear()
        self._pending.clear()
        self._made, self._down = 0, frozenset()

    def freeze(self) -> tuple[Any, ...]:
        """The state as data."""
        running = tuple((r.application, r.next, r.done) for r in self.applications.values())
        return running, tuple(self._pending), self._made, self._down

    def restore(self, frozen: tuple[Any, ...]) -> None:
        """Return to a state."""
        running, pending, self._made, self._down = frozen
        self.applications = {(each[0].pipe, each[0].number): _Running(*each) for each in running}
        self._pending = list(pending)

    def due(self) -> list[tuple[int, bytes]]:
        """The packets that are due now, as (port, packet), in the order of their times."""
        now = self._clock() * 1000
        down, before = frozenset(self._ports_down), self._down
        self._down = down
        for running in self.applications.values():
            application = running.application
            if application.trigger == "port down":
                for port in sorted(down - before):
                    if port >> 7 == application.pipe:
                        self._begin(application, now, port)
                continue
            starts = 0
            while not running.done and running.next <= now and starts < MOST:
                starts += 1
                self._begin(application, running.next, None)
                running.next += application.period
                running.done = application.trigger == "one shot"
        self._pending.sort()
        ready = [each for each in self._pending if each[0] <= now]
        self._pending = self._pending[len(ready) :]
        return [(port, packet) for _, _, port, packet in ready]

    def _begin(self, application: Application, time: int, port: int | None) -> None:
        at = self._chip.generator | application.pipe << 7
        for batch, number, offset in _offsets(application):
            front = self._header(application, batch, number, port)
            self._made += 1
            self._pending.append((time + offset, self._made, at, front + application.packet))

    def _header(self, application: Application, batch: int, number: int, port: int | None) -> bytes:
        first = application.pipe << self._chip.application_bits | application.number
        if port is None:
            return bytes((first, 0)) + batch.to_bytes(2) + number.to_bytes(2)
        # pipe and number, then the port in the lower bits of three bytes, then the packet's number
        return bytes((first,)) + port.to_bytes(3) + number.to_bytes(2)


def _offsets(application: Application) -> Iterator[tuple[int, int, int]]:
    """Batch, packet, and nanoseconds since the start."""
    for batch in range(application.batches):
        for number in range(application.packets):
            yield batch, number, batch * application.between_batches + number * application.between_packets
