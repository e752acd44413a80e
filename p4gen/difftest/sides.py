"""The two switches of a comparison, both driven through P4Runtime and frame by frame."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from p4gen.difftest.events import Event, Mirroring, Packet, Replication, Request
from p4gen.model import EngineName
from p4gen.model.entries import CounterValue
from p4gen.model.errors import ControlError
from p4gen.p4.compile import compile_text
from p4gen.p4rt.client import Client
from p4gen.p4rt.server import serve
from p4gen.switch.bm_thrift import LIMIT
from p4gen.switch.bmv2 import running_bmv2
from p4gen.switch.dataplane import open_dataplane
from p4gen.switch.device import Device
from p4gen.switch.running import WRITES_FILE, Program

BATCH = 16
"""Number of frames between two checks of the outputs; at most what ``Dataplane`` may have outstanding."""

Outputs = dict[int, list[bytes]]
"""Output frames by port, in order."""


@dataclass(frozen=True)
class Readout:
    """The contents of all counters and registers, by name."""

    counters: dict[str, list[CounterValue]]
    registers: dict[str, list[int]]


@dataclass
class Side:
    """One switch. ``exchange`` sends it frames and returns the output, once it has handled them all."""

    name: str
    client: Client
    exchange: Callable[[Sequence[Packet]], Outputs]
    has_registers: bool = True
    register_limit: int | None = None
    """The largest register value that can be read; larger ones are read as this value. None: no limit."""

    def request(self, event: Request | Replication | Mirroring) -> bool:
        """Send a request. Returns whether the switch accepted it."""
        try:
            match event:
                case Request(verb="insert", entry=entry):
                    self.client.insert(entry)
                case Request(verb="modify", entry=entry):
                    self.client.modify(entry)
                case Request(entry=entry):
                    self.client.delete(entry)
                case Replication(group=group):
                    self.client.set_multicast_group(group)
                case Mirroring(session=session):
                    self.client.set_clone_session(session)
        except ControlError:
            return False
        return True

    def setup(self, events: Sequence[Event]) -> None:
        """Send requests that must all succeed, the insertions in one batch. Raises ``ControlError``."""
        self.client.insert(*(e.entry for e in events if isinstance(e, Request)))
        for event in events:
            if isinstance(event, Replication):
                self.client.set_multicast_group(event.group)
            elif isinstance(event, Mirroring):
                self.client.set_clone_session(event.session)

    def state(self) -> Readout:
        """All counters and, if the switch lets them be read, registers."""
        schema = self.client.schema
        counters = {c.name: self.client.counters(c.name) for c in schema.counters.values()}
        names = [r.name for r in schema.registers.values()] if self.has_registers else []
        return Readout(counters, {name: self.client.registers(name) for name in names})


@contextlib.contextmanager
def embedded_side(program: Program, directory: Path, ports: int, engine: EngineName = "interp") -> Iterator[Side]:
    """The embedded switch in this process, controlled through its own P4Runtime server."""
    directory.mkdir(parents=True, exist_ok=True)
    device = Device(ports=range(ports), engine=engine)

    def exchange(packets: Sequence[Packet]) -> Outputs:
        outputs: Outputs = {}
        for packet in packets:
            for port, frame in device.send(packet.port, packet.frame):
                outputs.setdefault(port, []).append(frame)
        return outputs

    with (
        serve(device, f"unix:{directory / 'p4rt.sock'}") as server,
        Client(server.address, record=directory / WRITES_FILE) as client,
    ):
        client.set_pipeline(program.read_p4info(), program.p4.read_bytes())
        yield Side("embedded", client, exchange)


@contextlib.contextmanager
def bmv2_side(
    program: Program, directory: Path, ports: int, goes_round: Callable[[bytes], bool] = lambda _: False
) -> Iterator[Side]:
    """BMv2 in its own process. Frames that ``goes_round`` selects are finished before the next frame is sent."""
    received: Outputs = {}

    def collect(port: int, frame: bytes) -> None:
        received.setdefault(port, []).append(frame)

    with running_bmv2(program, directory, range(ports)) as running, running.connect() as client:
        running.load(client)
        with open_dataplane(running.platform_args, collect) as dataplane:

            def exchange(packets: Sequence[Packet]) -> Outputs:
                for packet in packets:
                    dataplane.send(packet.port, packet.frame)
                    if goes_round(packet.frame):
                        dataplane.settle()
                dataplane.settle()
                taken = dict(received)
                received.clear()
                return taken

            yield Side("bmv2", client, exchange, running.thrift_port != 0, LIMIT)


def checked(text: str, name: str, directory: Path, *, for_bmv2: bool, faulty: bool) -> Program:
    """A program's files, compiled by p4gen and, for BMv2, by p4c. Warnings of p4c are accepted if the program is
    ``faulty``.

    Raises ``P4genError`` when one of them rejects it.
    """
    from p4gen.p4 import p4c  # noqa: PLC0415 - the embedded switch alone needs no p4c

    directory.mkdir(parents=True, exist_ok=True)
    program = Program.of_text(text, directory, name, compile_text(text, f"{name}.p4"))
    if not for_bmv2:
        return program
    compiler = p4c.find()
    assert compiler is not None
    output = p4c.compile_for_bmv2(compiler, program.p4, directory, warnings=faulty)
    return Program(program.p4, program.p4info, output.json)
