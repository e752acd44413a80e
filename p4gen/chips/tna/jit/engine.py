"""The native engine for Tofino: packets of the generator come first, and ports are checked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from typing_extensions import override

from p4gen.chips.tna.chip import PORTS
from p4gen.chips.tna.jit.program import generate
from p4gen.chips.tna.jit.state import NativeTofino
from p4gen.chips.tna.machine import TofinoModel
from p4gen.chips.tna.settings import Settings
from p4gen.model.errors import ControlError
from p4gen.model.jit import Batch, Bytes, Engine
from p4gen.model.runner import GeneratingRunner
from p4gen.model.state import Clock
from p4gen.model.trace import Trace
from p4gen.p4 import ir


class TofinoEngine(Engine, Settings, GeneratingRunner):
    """``Engine`` for the programs of TNA and T2NA."""

    state: NativeTofino

    def __init__(self, program: ir.Program, clock: Clock | None, seed: int, cache: Path | None) -> None:
        state = NativeTofino(program, clock, seed)
        self.chip = state.chip
        super().__init__(program, state, cache, generate, TofinoModel)

    @override
    def takes_batches(self, ports: Iterable[int]) -> bool:
        for port in ports:
            _check(port)
        return not self.state.generator.applications

    @override
    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Packets that the generator has made until now go first."""
        if trace is not None:
            return super().process(port, packet, trace)  # the interpreter asks the generator
        _check(port)
        if not self.state.generator.applications:
            return super().process(port, packet)
        return self.generate() + super().process(port, packet) + self.generate()

    @override
    def generate(self, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        if not self.state.generator.applications:
            return []
        made = self.state.generator.due()
        return [output for port, packet in made for output in super(TofinoEngine, self).process(port, packet, trace)]

    @override
    def run(
        self, data: Bytes, starts: Any, ends: Any, ports: Any, times: npt.NDArray[np.uint64] | None = None
    ) -> tuple[Any, Bytes]:
        """Packets that the generator has made go first, and count as caused by the first packet."""
        if len(ports):
            _check(int(np.min(ports)))
            _check(int(np.max(ports)))
        if not self.state.generator.applications or not (made := self.state.generator.due()):
            return super().run(data, starts, ends, ports, times)
        first = Batch.of(made)
        at = len(data)
        records, sent = super().run(
            np.concatenate((data, first.data)),
            np.concatenate((first.offsets[:-1] + at, starts)),
            np.concatenate((first.offsets[1:] + at, ends)),
            np.concatenate((first.ports, ports)),
            None if times is None else np.concatenate((np.full(len(made), self.state.clock(), np.uint64), times)),
        )
        records = records.copy()
        records["source"] = np.maximum(records["source"] - len(made), 0)
        return records, sent


def _check(port: int) -> None:
    if not 0 <= port < PORTS:
        raise ControlError(f"port {port}: ports are numbered from 0 to {PORTS - 1}")
