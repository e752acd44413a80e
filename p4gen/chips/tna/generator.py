"""The packet generator: applications that make batches of packets, started by time, by a port that goes down, by a
recirculated packet, or by the ingress deparser (Tofino 2).

A generated packet arrives at the generator's port of its pipe. In front of the application's bytes it has the header
that the architecture declares for its trigger (``pktgen_timer_header_t`` and so on). Time is the switch's clock;
packets that are due are processed before and after each packet that arrives, or by ``TofinoModel.generate``.

A recirculated packet starts the applications of its pipe whose pattern its first 4 bytes (Tofino 2: 16) match under a
mask. On Tofino 1 the generated packets have the last 3 of these bytes in place of the batch's number, on Tofino 2 all
16 after the header. The bytes of ``Pktgen.emit`` are compared and passed on in the same way; the packet is then in the
generator's buffer, at the place that the metadata names. A port that went down starts applications once, until it is
armed again (``clear_port_down_enable`` in BF-Runtime). PFC starts none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from p4gen.chips.tna import PIPES
from p4gen.chips.tna.chip import Chip
from p4gen.model.errors import ControlError
from p4gen.model.state import Clock

Trigger = Literal["one shot", "periodic", "port down", "recirculation", "deparser"]
LINE = 16
"""Bytes of a line of the buffer, in which addresses count."""
BUFFER = 1024 * LINE
TIMED = ("one shot", "periodic")
MOST = 10_000
"""The most packets that the generator makes at a time; a clock that leaps makes no more."""


@dataclass(frozen=True)
class Application:
    """An application's configuration by the control plane."""

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
    pattern: int = 0
    """The pattern of the first bytes of a recirculated packet, or of what the deparser emits."""
    mask: int = 0


class Counts(NamedTuple):
    """Counters of an application since it was started."""

    triggers: int
    batches: int
    packets: int


@dataclass
class _Running:
    application: Application
    next: int
    """The time of the next start, in nanoseconds."""
    done: bool = False
    counts: Counts = field(default_factory=lambda: Counts(0, 0, 0))


class Generator:
    """The applications of all pipes."""

    def __init__(self, chip: Chip, clock: Clock, ports_down: Collection[int]) -> None:
        self._chip, self._clock, self._ports_down = chip, clock, ports_down
        self.applications: dict[tuple[int, int], _Running] = {}
        self._pending: list[tuple[int, int, int, bytes]] = []
        self._made = 0
        self._down: frozenset[int] = frozenset()
        self._spent: set[int] = set()
        """Ports that have started applications by going down, and are not armed."""
        self.buffer = bytearray(BUFFER)

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
        if application.trigger == "deparser" and not self._chip.deparser_starts:
            raise ControlError(f"{what}: only Tofino 2 has applications that the deparser starts")
        self.applications[application.pipe, application.number] = _Running(application, now + application.period)
        self._down = frozenset(self._ports_down)

    def stop(self, number: int, pipe: int = 0) -> None:
        """Stop an application; its pending packets are not made."""
        self.applications.pop((pipe, number), None)

    def reset(self) -> None:
        """Remove all applications, and everything that is still to be made."""
        self.applications.clear()
        self._pending.clear()
        self._made, self._down = 0, frozenset()
        self._spent.clear()
        self.buffer[:] = bytes(BUFFER)

    def arm(self, port: int) -> None:
        """Let a port start applications again by going down."""
        self._spent.discard(port)

    def counts(self, number: int, pipe: int = 0) -> Counts:
        """The counters of an application, all 0 if it does not run."""
        running = self.applications.get((pipe, number))
        return Counts(0, 0, 0) if running is None else running.counts

    def write(self, offset: int, data: bytes) -> None:
        """Write into the buffer. Raises ``ControlError``."""
        if not 0 <= offset <= BUFFER - len(data):
            raise ControlError(f"packet generator: the buffer has {BUFFER} bytes")
        self.buffer[offset : offset + len(data)] = data

    def freeze(self) -> tuple[Any, ...]:
        """Applications, buffer and pending packets as immutable data."""
        running = tuple((r.application, r.next, r.done, r.counts) for r in self.applications.values())
        pending = tuple(self._pending)
        return running, pending, self._made, self._down, tuple(sorted(self._spent)), bytes(self.buffer)

    def restore(self, frozen: tuple[Any, ...]) -> None:
        """Return to a state that ``freeze`` returned."""
        running, pending, self._made, self._down, spent, self.buffer[:] = frozen
        self._spent = set(spent)
        self.applications = {(each[0].pipe, each[0].number): _Running(*each) for each in running}
        self._pending = list(pending)

    def due(self) -> list[tuple[int, bytes]]:
        """The packets that are due now, as (port, packet), in the order of their times."""
        now = self._clock() * 1000
        down, before = frozenset(self._ports_down), self._down
        self._down = down
        fallen = sorted(down - before - self._spent)
        for running in self.applications.values():
            application = running.application
            if application.trigger == "port down":
                for port in fallen:
                    if port >> 7 == application.pipe:
                        self._spent.add(port)
                        # the port in the lower bits of three bytes
                        self._begin(running, now, port.to_bytes(3))
                continue
            starts = 0
            while application.trigger in TIMED and not running.done and running.next <= now and starts < MOST:
                starts += 1
                self._begin(running, running.next)
                running.next += application.period
                running.done = application.trigger == "one shot"
        self._pending.sort()
        ready = [each for each in self._pending if each[0] <= now]
        self._pending = self._pending[len(ready) :]
        return [(port, packet) for _, _, port, packet in ready]

    def recirculated(self, pipe: int, packet: bytes) -> None:
        """Start the applications of a pipe whose pattern a recirculated packet matches."""
        if self.applications:
            self._match("recirculation", pipe, packet[: self._chip.pattern], None)

    def emitted(self, pipe: int, context: bytes, address: int, length: int) -> None:
        """Start the applications of a pipe that the ingress deparser starts, by its context; the packet is in the
        buffer's line."""
        start = address * LINE
        self._match(
            "deparser", pipe, context.ljust(self._chip.pattern, b"\0"), bytes(self.buffer[start : start + length])
        )

    def _match(self, trigger: Trigger, pipe: int, found: bytes, packet: bytes | None) -> None:
        if len(found) < self._chip.pattern:
            return
        number, now = int.from_bytes(found), self._clock() * 1000
        for running in self.applications.values():
            application = running.application
            if application.trigger != trigger or application.pipe != pipe:
                continue
            if (number ^ application.pattern) & application.mask == 0:
                self._begin(running, now, found, packet)

    def _begin(self, running: _Running, time: int, by: bytes = b"", packet: bytes | None = None) -> None:
        """Make the packets of a start. ``by`` is the part of the packets that depends on the trigger: 3 or 4 bytes in
        the header, the last ones in place of the batch's number; further ones after the header."""
        application = running.application
        at = self._chip.generator | application.pipe << 7
        front = application.pipe << self._chip.application_bits | application.number
        data = application.packet if packet is None else packet
        for batch, number, offset in _offsets(application):
            inside, behind = (by[-3:], b"") if 0 < len(by) <= 4 else (b"\0" + batch.to_bytes(2), by)
            self._made += 1
            made = bytes((front,)) + inside + number.to_bytes(2) + behind + data
            self._pending.append((time + offset, self._made, at, made))
        triggers, batches, packets = running.counts
        more = application.batches * application.packets
        running.counts = Counts(triggers + 1, batches + application.batches, packets + more)


def _offsets(application: Application) -> Iterator[tuple[int, int, int]]:
    """Batch, packet, and nanoseconds since the start."""
    for batch in range(application.batches):
        for number in range(application.packets):
            yield batch, number, batch * application.between_batches + number * application.between_packets
