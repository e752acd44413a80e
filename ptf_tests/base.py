"""What every test of the suite stands on: a switch's ports and control plane, and a fence that ends waiting.

PTF keeps the classes that define ``runTest``; the classes here must not.
"""

from __future__ import annotations

import functools
import hashlib
import random
import select
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import ptf

from p4gen.manager.config import NextHop, Route, SwitchConfig, configure
from p4gen.ptf.testcase import ReportedTest, parameter
from p4gen.rocev2.headers import UDP, Ethernet, IPv4
from p4gen.spec import Mode, ProgramSpec
from p4gen.switch.api import ControlPlane
from p4gen.switch.running import Running

FENCE_TIMEOUT_S = 10.0
MANY = 32  # frames, far fewer than fill a socket's buffer
FENCE_ADDRESS = 0x7F7E7D7C  # 127.126.125.124: no host has it
FENCE_HOP = 65535


@functools.cache
def control_plane() -> ControlPlane:
    """The control plane of the switch under test; one connection for all tests."""
    return Running.from_dict(parameter("switch")).connect()


@dataclass(frozen=True)
class Output:
    """A frame that left the switch."""

    port: int
    frame: bytes


class P4genTest(ReportedTest):
    """A test on a freshly reset switch."""

    mode: ClassVar[Mode | None] = None
    """The mode whose programs it is for; None for any."""

    def setUp(self) -> None:
        super().setUp()
        self.spec = ProgramSpec(**parameter("spec"))
        seed = parameter("seed")
        # Each test gets numbers of its own, whichever tests run before it.
        self.random = random.Random(hashlib.sha256(f"{seed} {self}".encode()).digest())
        print(f"{self}: seed {seed}")  # noqa: T201  # PTF shows a test's output with its name
        if (reason := self.misfit(self.spec)) is not None:
            self.skipTest(reason)
        self.fence_port = self.spec.ports - 1
        self._fences = 0
        self.dataplane = ptf.dataplane_instance
        self._control = control_plane()
        self._unfenced = False
        self._pending: list[Output] = []
        # The first fence waits for what an earlier test may have left under way; it must not outlive the reset.
        for _ in range(2):
            self._control.reset()
            self.install(self.fence_config())
            self.outputs()

    def misfit(self, spec: ProgramSpec) -> str | None:
        """Why a program has nothing to do with this scenario; None when it has."""
        self.spec = spec
        return self.unfit() if self.mode in (None, spec.mode) else f"the program is of mode {spec.mode}"

    def unfit(self) -> str | None:
        """Why the program under test has nothing to do with this scenario; None when it has."""
        return None

    def fence_config(self) -> SwitchConfig:
        """What the fence needs of the switch: a host route out of its own port, by p4gen's own table names."""
        hop = NextHop(FENCE_HOP, self.fence_port, src_mac=0x02F0, dst_mac=0x02F1)
        return configure(self.spec, [], [Route("127.126.125.124/32", FENCE_HOP)], [hop])

    @property
    def control(self) -> ControlPlane:
        """The switch's control plane, once the switch has handled every frame sent so far."""
        if self._unfenced:
            self._pending += self._fence()
        return self._control

    def install(self, config: SwitchConfig) -> None:
        """Add a configuration to what the switch has."""
        self.control.insert(*config.entries)
        for group in config.multicast_groups:
            self.control.set_multicast_group(group)
        for session in config.clone_sessions:
            self.control.set_clone_session(session)

    # --- frames ---

    def send(self, port: int, *frames: bytes) -> None:
        """Hand frames to the switch; it takes them in the order of these calls, whatever their ports."""
        for frame in frames:
            self.dataplane.send(0, port, frame)
            self._unfenced = True

    def outputs(self) -> list[Output]:
        """All that the switch sent since the last call; per port in order, over ports by time of arrival."""
        self._pending += self._fence()
        taken, self._pending = self._pending, []
        return taken

    def _fence(self) -> list[Output]:
        """What has come out once the switch has handled everything; nothing is waited for that is not coming.

        Ports that can ``settle`` know when that is. For a switch that handles frames in order, it is when a marker,
        sent now, comes out. AssertionError when the marker does not come.
        """
        settle = getattr(next(iter(self.dataplane.ports.values())), "settle", None)
        if settle is not None:
            settle()
            return [output for _, output in sorted(self._collect(lambda _: True), key=lambda entry: entry[0])]
        return self._fence_by_marker()

    def _fence_by_marker(self) -> list[Output]:
        self._fences += 1
        token = hashlib.sha256(f"{self} fence {self._fences}".encode()).digest()
        self.send(self.fence_port, self._marker(token))
        taken = self._collect(lambda outputs: any(output.frame.endswith(token) for _, output in outputs))
        outputs = [output for _, output in sorted(taken, key=lambda entry: entry[0])]
        marker = next(output for output in outputs if output.frame.endswith(token))
        outputs.remove(marker)
        # What a full socket did not take, the switch kept back: now there is room for it.
        return outputs + self._fence() if len(outputs) > MANY else outputs

    def _collect(self, complete: Callable[[list[tuple[float, Output]]], bool]) -> list[tuple[float, Output]]:
        """What PTF has received, with its times, once ``complete`` says that nothing more is under way."""
        taken: list[tuple[float, Output]] = []
        deadline = time.monotonic() + FENCE_TIMEOUT_S
        fenced = False
        with self.dataplane.cvar:
            while True:
                for (_, port), queue in self.dataplane.packet_queues.items():
                    taken += [(when, Output(port, frame)) for frame, when in queue]
                    queue.clear()
                fenced = fenced or complete(taken)
                # PTF's thread enqueues under this lock: what is not readable now has been taken.
                if fenced and not select.select(list(self.dataplane.ports.values()), [], [], 0)[0]:
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    raise AssertionError(f"the switch did not forward the fence's marker within {FENCE_TIMEOUT_S} s")
                self.dataplane.cvar.wait(left)
        self._unfenced = False
        return taken

    def expect(self, outputs: Iterable[Output]) -> None:
        """The switch has sent exactly these frames, in this order at each port."""
        self.equal("frames sent", _by_port(self.outputs()), _by_port(outputs))

    def expect_nothing(self) -> None:
        """The switch has sent no frame at all."""
        self.equal("frames sent", self.outputs(), [])

    def _marker(self, token: bytes) -> bytes:
        udp = UDP(9, 9, length=UDP.SIZE + len(token))
        ip = IPv4(0x7F000001, FENCE_ADDRESS, total_length=20 + udp.length)
        ip = IPv4(ip.src, ip.dst, total_length=ip.total_length, checksum=ip.right_checksum())
        return Ethernet(0x02F2, 0x02F3).pack() + ip.pack() + udp.pack() + token

    # --- state ---

    def counts(self, counter: str) -> Counter[int]:
        """The packets counted at each index of a counter, zeros left out."""
        return Counter({i: value.packets for i, value in enumerate(self.control.counters(counter)) if value.packets})


def _by_port(outputs: Iterable[Output]) -> dict[int, list[str]]:
    grouped: dict[int, list[str]] = {}
    for output in outputs:
        grouped.setdefault(output.port, []).append(output.frame.hex())
    return grouped
