"""The embedded switch as a device: programs are loaded into it; controllers and ports are connected to it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from p4gen.errors import InputError
from p4gen.model import Clock, Digest, EngineName, Model, Trace
from p4gen.model.recirculation import Recirculation
from p4gen.model.state import WallClock
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.info.text import differences
from p4gen.switch.turns import Turns

if TYPE_CHECKING:
    from p4gen.switch.batches import Batches

P4Info = Any
Outputs = list[tuple[int, bytes]]
_MAX_DIFFERENCES = 5


@dataclass
class PortCounts:
    """Counters of a port since the start."""

    in_packets: int = 0
    in_bytes: int = 0
    out_packets: int = 0
    out_bytes: int = 0


@dataclass(eq=False)
class _Subscribers:
    packet_in: Callable[[bytes], None] = field(default=lambda _frame: None)
    digests: Callable[[list[Digest]], None] = field(default=lambda _digests: None)


class Device:
    """A switch that starts without a program, behind the ``Target`` protocol of the P4Runtime server.

    ``send`` is its data plane: a frame in, frames out. Frames that the program sends to ``cpu_port`` go to controllers,
    and frames from controllers arrive there (0: no such port). ``load`` takes P4 text as device config, or BMv2's JSON
    or nothing if the P4Info is that of one of ``programs``, with which the switch was started. ``inject``, if set,
    passes frames from controllers to the thread that carries frames.
    """

    def __init__(
        self,
        device_id: int = 1,
        *,
        cpu_port: int = 0,
        ports: Iterable[int] | None = None,
        programs: Iterable[Compiled] = (),
        clock: Clock | None = None,
        seed: int = 0,
        engine: EngineName = "interp",
    ) -> None:
        self.device_id = device_id
        self.cpu_port = cpu_port
        self.ports = None if ports is None else frozenset(ports)
        self.lock = Turns()
        self._counts: dict[int, PortCounts] = {}
        self._batches: Batches | None = None
        """What carries frames in machine code, and counts them, if anything does."""
        self.inject: Callable[[int, bytes], None] | None = None
        self.trace: Callable[[Trace], None] | None = None
        """Called with the trace of every packet, if set."""
        self.log: Callable[[str], None] | None = None
        """Called with each message that the program logs (``log_msg``), if set."""
        self._programs = list(programs)
        self._clock, self._seed, self._engine = clock, seed, engine
        self._compiled: dict[bytes, Compiled] = {}
        self._model: Model | None = None
        self._recirculation: Recirculation | None = None
        self._subscribers = _Subscribers()
        self._down: set[int] = set()

    @property
    def model(self) -> Model | None:
        """The running program; hold ``lock`` while using it."""
        return self._model

    # --- Target ---

    def load(self, p4info: P4Info, device_config: bytes) -> Model:
        """A new instance of a program. Raises ``P4genError`` when it does not compile, or does not match the P4Info."""
        program = self._find(p4info, device_config).program
        model = Model(program, clock=self._clock, seed=self._seed, engine=self._engine)
        for port in self._down:
            model.set_link(port, False)
        return model

    def translated(self, p4info: P4Info, device_config: bytes) -> Mapping[str, int]:
        """The bits of each translated type in the program's data plane. Raises ``P4genError`` as ``load`` does."""
        return self._find(p4info, device_config).translated

    def commit(self, backend: Any) -> None:
        """Make a loaded program the running one."""
        assert isinstance(backend, Model)
        with self.lock:
            self._model, self._recirculation = backend, Recirculation(backend)

    def packet_out(self, frame: bytes) -> None:
        """Process a frame from a controller. Raises ``InputError`` without a CPU port."""
        if self.cpu_port == 0:
            raise InputError("the switch was started without a CPU port, so it takes no packets from controllers")
        if self.inject is not None:
            self.inject(self.cpu_port, frame)
        else:
            self.send(self.cpu_port, frame)

    def subscribe(self, packet_in: Callable[[bytes], None], digests: Callable[[list[Digest]], None]) -> None:
        """Set the functions that are called with frames for controllers, and with digests."""
        self._subscribers = _Subscribers(packet_in, digests)

    def _find(self, p4info: P4Info, device_config: bytes) -> Compiled:
        text = device_config.strip()
        if not text or text.startswith(b"{"):
            for program in self._programs:
                if not differences(program.p4info, p4info):
                    return program
            what = "BMv2's JSON" if text else "no device config"
            raise InputError(f"{what}, and the P4Info is not that of a program that the switch was started with")
        compiled = self._compile(device_config)
        found = differences(compiled.p4info, p4info)
        if found:
            raise InputError("the P4Info is not the program's: " + "; ".join(found[:_MAX_DIFFERENCES]))
        return compiled

    def _compile(self, device_config: bytes) -> Compiled:
        digest = hashlib.sha256(device_config).digest()
        if digest not in self._compiled:
            try:
                text = device_config.decode()
            except UnicodeDecodeError:
                raise InputError("the device config is neither P4 text nor JSON") from None
            self._compiled[digest] = compile_text(text)
        return self._compiled[digest]

    # --- the data plane ---

    def send(self, port: int, frame: bytes) -> Outputs:
        """Process a frame. Returns the output as (port, frame) in order; empty without a program."""
        with self.lock:
            model = self._model
            if model is None:
                return []
            trace = Trace() if self.trace is not None else None
            outputs = model.process(port, frame, trace)
            if self._recirculation is not None:
                outputs = self._recirculation.hold_back(outputs)
            digests, messages = model.digests(), model.log_messages()
            self._count(port, frame, outputs)
        # Without the lock: the callee may hold a lock of its own and wait for this one.
        if trace is not None and self.trace is not None:
            self.trace(trace)
        self._tell(digests, messages)
        if self.cpu_port == 0:
            return outputs
        for number, data in outputs:
            if number == self.cpu_port:
                self._subscribers.packet_in(data)
        return [output for output in outputs if output[0] != self.cpu_port]

    def fence(self, message: bytes) -> tuple[Outputs, int]:
        """``Recirculation.answer`` of the running program; without one there is no output and no pass."""
        with self.lock:
            return self._recirculation.answer(message) if self._recirculation is not None else ([], 0)

    def carry(self, batches: Batches, seconds: float) -> bool:
        """Have frames carried in machine code until there is something else to do, at most for so long.

        Returns False if frames must be given to ``send``: with the reference interpreter, while packets are traced, and
        without a program.
        """
        self.lock.let_others()
        with self.lock:
            model = self._model
            if self._engine == "interp" or self.trace is not None or model is None:
                return False
            engine = model.native
            if not isinstance(engine.state.clock, WallClock) or not engine.takes_batches(batches.ports):
                return False
            self._batches, self.lock.wake = batches, batches.wake
            if self.lock.wanted:  # by somebody who could not wake this thread yet
                return True
            frames = batches.carry(engine, self.cpu_port, seconds)
            digests, messages = model.digests(), model.log_messages()
        self._tell(digests, messages)
        for frame in frames:
            self._subscribers.packet_in(frame)
        return True

    def _tell(self, digests: list[Digest], messages: Iterable[str]) -> None:
        if self.log is not None:
            for message in messages:
                self.log(message)
        if digests:
            self._subscribers.digests(digests)

    def set_link(self, port: int, up: bool) -> None:
        """Record that a port has a link, or has lost it."""
        with self.lock:
            (self._down.discard if up else self._down.add)(port)
            if self._model is not None:
                self._model.set_link(port, up)

    def _count(self, port: int, frame: bytes, outputs: Outputs) -> None:
        counts = self._counts.setdefault(port, PortCounts())
        counts.in_packets += 1
        counts.in_bytes += len(frame)
        for number, data in outputs:
            counts = self._counts.setdefault(number, PortCounts())
            counts.out_packets += 1
            counts.out_bytes += len(data)

    @property
    def counts(self) -> dict[int, PortCounts]:
        """The counters of each port."""
        with self.lock:
            found = {port: replace(counts) for port, counts in self._counts.items()}
            for field_ in fields(PortCounts):
                carried = {} if self._batches is None else self._batches.counts(field_.name)
                for port, number in carried.items():
                    counts = found.setdefault(port, PortCounts())
                    setattr(counts, field_.name, getattr(counts, field_.name) + number)
            return found
