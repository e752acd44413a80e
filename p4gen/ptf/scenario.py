"""What the scenarios of every family stand on: a switch's ports and control plane, and a fence in place of time-outs.

The fence is the ports' ``settle`` (p4gen.ptf.platform): it returns once the switch has handled everything sent before,
and needs nothing of the program under test.

PTF keeps the classes that define ``runTest``; the class here must not.
"""

from __future__ import annotations

import functools
import hashlib
import random
import select
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from p4gen.families import parse_spec
from p4gen.groups import SwitchConfig
from p4gen.model.control_plane import ControlPlane
from p4gen.model.recirculation import GO, HOLD, REFUSED, ROUND, SETTLE
from p4gen.program import Composition, compose
from p4gen.ptf import markers
from p4gen.ptf.family import conformance_of
from p4gen.ptf.framework import ptf
from p4gen.ptf.testcase import ReportedTest, parameter, parameters
from p4gen.records import from_plain
from p4gen.rocev2.headers import Ethernet, IPv4, IPv6, ip_from, ip_header
from p4gen.rocev2.places import places_for
from p4gen.switch.running import RunningSwitch
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.program import part_of

IPV6_NETWORK: Final = ip_from("fd00::")
"""The addresses of endpoints in scenarios over IPv6."""


@functools.lru_cache(maxsize=4)
def composed(spec: ProgramSpec) -> Composition:
    """The modules of the program under test, or of its part of one family. Scenarios only read them, some each time
    they look at the registers, so they are composed once."""
    return compose(spec)


def control_plane() -> ControlPlane:
    """The control plane of the switch under test: the one in this process, or one connection for all tests."""
    control: ControlPlane | None = parameters().get("control")
    return control if control is not None else _connection()


@functools.cache
def _connection() -> ControlPlane:
    running = from_plain(RunningSwitch, parameter("switch"))
    ports = running.platform_args["interfaces"] if running.platform_args.get("marked") else ()
    return running.control(markers.routes(map(int, ports)))


@dataclass(frozen=True)
class Output:
    """A frame that left the switch."""

    port: int
    frame: bytes


class SwitchTest(ReportedTest):
    """A test on a freshly reset switch."""

    spec: Any
    """The spec of the program under test, of the family whose scenario it is."""
    program: ProgramSpec
    """The spec of the program under test."""
    kind: ClassVar[type[ProgramSpec]] = ProgramSpec
    """The spec of the family whose scenario it is, which may be beside the program's own."""
    over_ipv6: ClassVar[bool | None] = None
    """Whether its endpoints have IPv6 addresses; None: either kind will do, and is drawn if the program takes both."""

    def setUp(self) -> None:
        """Resets the switch, or skips the scenario."""
        super().setUp()
        self.program = parse_spec(parameter("spec"))
        seed = parameter("seed")
        # Each test has its own random numbers, whichever tests run before it.
        self.random = random.Random(hashlib.sha256(f"{seed} {self}".encode()).digest())  # noqa: S311 - tests are to be repeated
        print(f"{self}: seed {seed}")  # noqa: T201  # PTF shows a test's output with its name
        if (reason := self.misfit_of(self.program)) is not None:
            self.skipTest(reason)
        self.ipv6 = self.spec.roce_ipv6 if self.over_ipv6 is None else self.over_ipv6
        if self.over_ipv6 is None and self.spec.ipv4 and self.spec.roce_ipv6:
            self.ipv6 = self.random.random() < 0.5
        self._most_passes = conformance_of(self.program).passes(self.program)
        self.dataplane = ptf.dataplane_instance
        self._unfenced = False
        self._pending: list[Output] = []
        self._control = control_plane()
        self.outputs()  # packets of an earlier test must be handled before the reset
        self._control.reset()

    def misfit_of(self, program: ProgramSpec) -> str | None:
        """Why a program, perhaps one of two families, has nothing to do with this scenario; None when it has."""
        self.program = program
        spec = part_of(program, self.kind)
        if spec is None:
            return f"the program is of the family {program.family}"
        return self.misfit(spec) or self._unknown_kind(spec)

    def _unknown_kind(self, spec: ProgramSpec) -> str | None:
        if self.over_ipv6 is True and not spec.roce_ipv6:
            return "it is about RoCEv2 over IPv6"
        if self.over_ipv6 is False and not spec.ipv4:
            return "it is about IPv4, which the program does not know"
        return None

    def misfit(self, spec: Any) -> str | None:
        """Why a program has nothing to do with this scenario; None when it has."""
        self.spec = spec
        return self.unfit()

    def unfit(self) -> str | None:
        """Why this scenario does not apply to the program under test; None if it does."""
        return None

    @property
    def control(self) -> ControlPlane:
        """The switch's control plane, once the switch has handled every frame sent so far."""
        self.settle()
        return self._control

    def install(self, config: SwitchConfig) -> None:
        """Add a configuration to what the switch has."""
        config.install(self.control)

    # --- addresses ---

    def address(self, last: int, *, ipv6: bool | None = None) -> int:
        """An IP address with these last 32 bits, of the scenario's kind or of a given one."""
        return last | IPV6_NETWORK if (self.ipv6 if ipv6 is None else ipv6) else last

    def ip(self, src: int, dst: int, *, ttl: int = 64, tos: int = 0) -> IPv4 | IPv6:
        """The IP header of what a host sends. What a sender may choose is drawn: identification or flow label."""
        header = ip_header(src, dst, ttl=ttl, tos=tos)
        if isinstance(header, IPv4):
            return replace(header, identification=self.random.getrandbits(16))
        return replace(header, flow_label=self.random.getrandbits(20))

    def translated(self, header: IPv4 | IPv6, src: int, dst: int) -> IPv4 | IPv6:
        """The IP header of what a switch makes of a packet with ``header``, from its own end of a connection."""
        header = replace(header, src=src, dst=dst, ttl=64)
        return header if isinstance(header, IPv4) else replace(header, flow_label=0)

    def framed(self, sender: int, receiver: int, ip: int) -> Ethernet:
        """The Ethernet header of a packet between addresses of the kind of ``ip``; both others are MAC addresses."""
        return Ethernet(receiver, sender, places_for(ip).ether_type)

    # --- frames ---

    def send(self, port: int, *frames: bytes) -> None:
        """Send frames to the switch, which handles them in the order of these calls, whatever their ports."""
        for frame in frames:
            self.dataplane.send(0, port, frame)
            self._unfenced = True

    def settle(self) -> None:
        """Wait until the switch has handled every frame sent so far; ``outputs`` has what it sends, later."""
        if self._unfenced:
            self._pending += self._fence()

    def outputs(self) -> list[Output]:
        """Everything that the switch sent since the last call; in order per port, by time of arrival across ports."""
        self._pending += self._fence()
        taken, self._pending = self._pending, []
        return taken

    def hold(self) -> None:
        """From now on what recirculates waits between two passes, until the scenario ends or says ``go``. Skips the
        scenario where the switch cannot do so."""
        self._pending += self._fence(HOLD)
        self.addCleanup(self._fence, GO)

    def one_pass(self) -> None:
        """All that waits goes through one more pass."""
        self._pending += self._fence(ROUND)

    def go(self) -> None:
        """All that waits goes on, and nothing waits any more."""
        self._pending += self._fence(GO)

    def _fence(self, request: bytes = SETTLE) -> list[Output]:
        """The output once the switch has handled everything that was sent, and the request."""
        passes = next(iter(self.dataplane.ports.values())).settle(request)
        if passes == REFUSED:
            self.skipTest("the switch holds nothing back between two passes")
        if passes > self._most_passes:
            raise AssertionError(f"a frame took {passes} passes, the program's most is {self._most_passes}")
        taken: list[tuple[float, Output]] = []
        with self.dataplane.cvar:
            while True:
                for (_, port), queue in self.dataplane.packet_queues.items():
                    taken += [(when, Output(port, frame)) for frame, when in queue]
                    queue.clear()
                # PTF's thread enqueues under this lock, so frames that are not readable now are in the queue.
                if not select.select(list(self.dataplane.ports.values()), [], [], 0)[0]:
                    break
                self.dataplane.cvar.wait()
        self._unfenced = False
        return [output for _, output in sorted(taken, key=lambda entry: entry[0])]

    def expect(self, outputs: Iterable[Output]) -> None:
        """Assert that the switch has sent exactly these frames, in this order at each port."""
        self.equal("frames sent", _by_port(self.outputs()), _by_port(outputs))

    def expect_nothing(self) -> None:
        """Assert that the switch has sent no frame."""
        self.equal("frames sent", self.outputs(), [])

    # --- state ---

    def only(self, outputs: Sequence[Output]) -> Output:
        """The one frame that has left."""
        self.equal("frames sent", len(outputs), 1)
        return outputs[0]

    def counts(self, counter: str) -> Counter[int]:
        """The number of packets at each index of a counter, without zeros."""
        return Counter({i: value.packets for i, value in enumerate(self.control.counters(counter)) if value.packets})


def _by_port(outputs: Iterable[Output]) -> dict[int, list[str]]:
    grouped: dict[int, list[str]] = {}
    for output in outputs:
        grouped.setdefault(output.port, []).append(output.frame.hex())
    return grouped
