"""Confirmation on BMv2, which repeats every step of the switches in a search.

Registers that are wider than 64 bits cannot be written through BMv2's Thrift server, so packets lead to each state.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from p4gen.difftest.sides import checked
from p4gen.groups.group import SwitchConfig
from p4gen.p4rt.client import Client
from p4gen.scratch import scratch
from p4gen.switch.bm_thrift import LIMIT, ThriftRegisters
from p4gen.switch.bmv2 import check_tools, running_bmv2
from p4gen.switch.dataplane import Dataplane, open_dataplane
from p4gen.switch.veth import VethDataplane
from p4gen.verification.family import verification_of
from p4gen.verification.findings.confirm import Confirmation, LocalStep, local_steps
from p4gen.verification.parts.switches import SwitchPart, Words
from p4gen.verification.parts.walks import walks
from p4gen.verification.search.knowledge import Knowledge
from p4gen.vocabulary import ProgramSpec

UNDEFINED = "undefined behaviour, or a port without a link"
NO_THRIFT = "ticks, because this BMv2 has no Thrift server to reset timers"
UNREACHED = "no packets lead there from a switch's first state"
UNWRITABLE = "the first state has numbers that cannot be written into BMv2's registers"


@dataclass
class Bmv2:
    """A BMv2 with a switch's program. ``received`` are the frames that it has sent since they were last taken.

    Without ``registers`` it has no Thrift server.
    """

    client: Client
    dataplane: Dataplane | VethDataplane
    registers: ThriftRegisters | None
    received: dict[int, list[bytes]]

    def configure(self, config: SwitchConfig) -> None:
        """Remove all state, and write a configuration."""
        self.client.reset()
        config.install(self.client)

    def process(self, port: int, frames: tuple[bytes, ...]) -> dict[int, list[bytes]]:
        """Send frames to a port, each after the one before has been handled. Returns the output by port."""
        for frame in frames:
            self.dataplane.send(port, frame)
            self.dataplane.settle()
        taken = dict(self.received)
        self.received.clear()
        return taken


@contextlib.contextmanager
def start_bmv2(text: str, spec: ProgramSpec, folder: Path) -> Iterator[Bmv2]:
    """A BMv2 with a program. Raises ``P4genError`` when p4c rejects it, or BMv2 does not start."""
    program = checked(text, spec.program, folder, for_bmv2=True, faulty=True)
    received: dict[int, list[bytes]] = {}
    ports = {*spec.architecture.front_ports(spec.ports), spec.architecture.cpu_port}
    with running_bmv2(program, folder, ports) as running, running.connect() as client, contextlib.ExitStack() as stack:
        running.load(client)
        registers = ThriftRegisters(running.thrift_port) if running.thrift_port else None
        if registers is not None:
            stack.callback(registers.close)

        def collect(port: int, frame: bytes) -> None:
            received.setdefault(port, []).append(frame)

        with open_dataplane(running.platform_args, collect) as dataplane:
            yield Bmv2(client, dataplane, registers, received)


def confirm_on_bmv2(knowledge: Knowledge) -> Confirmation:
    """Repeat every step of the switches on BMv2. The same frames must leave, and registers must be the same as far as
    Thrift can read them. Raises ``MissingToolError`` without BMv2 or p4c."""
    check_tools()
    system = knowledge.system
    world = system.scope.world()
    steps = local_steps(knowledge)
    count, left_out = 0, Counter[str]()
    with scratch() as place:
        for number, text in enumerate(dict.fromkeys(world.texts[part.name] for part in system.switches)):
            alike = [at for at, part in enumerate(system.switches) if world.texts[part.name] == text]
            spec = world.specs[system.switches[alike[0]].name]
            with start_bmv2(text, spec, place / str(number)) as bmv2:
                for at in alike:
                    part = system.switches[at]
                    bmv2.configure(world.configs[part.name])
                    mine = [step for step in steps if step.switch == at]
                    repeat = _Repeat(bmv2, part, world.configs[part.name], spec, system.ports[at])
                    found = repeat.run(mine)
                    count += found.steps
                    left_out.update(found.left_out)
                    if found.difference:
                        return Confirmation(count, found.difference, left_out)
    return Confirmation(count, left_out=left_out)


class _Repeat:
    """Repeats the steps of one switch."""

    def __init__(
        self, bmv2: Bmv2, part: SwitchPart, config: SwitchConfig, spec: ProgramSpec, ports: Mapping[int, int]
    ) -> None:
        self._bmv2, self._part, self._config = bmv2, part, config
        self._links = dict(ports)
        self._clocks = [clock for clock in verification_of(spec).clocks if clock in part.registers]
        self._cpu_port = spec.architecture.cpu_port

    def run(self, steps: list[LocalStep]) -> Confirmation:
        """Repeat steps on BMv2, each from the state that it had in the search."""
        left_out = Counter[str]()
        first = self._part.words(self._part.first)
        if not self._writable(first):
            return Confirmation(0, left_out={UNWRITABLE: len(steps)} if steps else {})
        automaton: dict[int, list[tuple[LocalStep, int]]] = {}
        for step in steps:
            if step.wrong:
                left_out[UNDEFINED] += 1
            elif self._bmv2.registers is None and self._clocks and step.port == self._cpu_port:
                left_out[NO_THRIFT] += 1
            else:
                automaton.setdefault(step.state, []).append((step, step.after))
        done: set[LocalStep] = set()
        for walk in walks(automaton, self._part.first):
            self._begin(first)
            for step in walk:
                done.add(step)
                if difference := self._differs(step):
                    return Confirmation(len(done), difference, left_out)
        if unreached := sum(map(len, automaton.values())) - len(done):
            left_out[UNREACHED] += unreached
        return Confirmation(len(done), left_out=left_out)

    def _writable(self, words: Words) -> bool:
        """Whether BMv2's registers can be set to these words: zeros always, others through Thrift if they are small."""
        most = LIMIT if self._bmv2.registers is not None else 0
        return all(word <= most for cells in words for word in cells)

    def _begin(self, words: Words) -> None:
        """Set all registers of BMv2 to a state."""
        registers = self._bmv2.registers
        if registers is None:
            self._bmv2.configure(self._config)
            return
        for name, cells in zip(self._part.registers, words, strict=True):
            registers.reset(name)
            for index, word in enumerate(cells):
                if word:
                    registers.write(name, index, word)

    def _differs(self, step: LocalStep) -> str:
        """Repeat a step in the state that has been reached. Returns the difference, "" if there is none."""
        bmv2, name = self._bmv2, self._part.name
        if bmv2.registers is not None:
            for clock in self._clocks:
                bmv2.registers.reset(clock)
        sent = bmv2.process(step.port, step.frames)
        expected = {link: list(frames) for link, frames in step.sent}
        if {self._links.get(port, -1 - port): frames for port, frames in sent.items()} != expected:
            return f"{name}: bmv2 sends other frames for a frame at port {step.port}"
        if bmv2.registers is not None:
            for register, cells in zip(self._part.registers, self._part.words(step.after), strict=True):
                if register not in self._clocks and bmv2.registers.registers(register) != [
                    min(word, LIMIT) for word in cells
                ]:
                    return f"{name}: on bmv2 {register} differs after a frame at port {step.port}"
        return ""
