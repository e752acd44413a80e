"""The interface of the runners of packets: the interpreter and the native engine of an architecture."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from p4gen.model.trace import Trace


class Runner(Protocol):
    """Runs packets through a program, on a switch's state."""

    @abstractmethod
    def process(self, port: int, packet: bytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process a packet. Returns the output as (port, packet), in order of transmission."""


@runtime_checkable
class HoldingRunner(Runner, Protocol):
    """A runner that can hold back the packets that recirculate."""

    @abstractmethod
    def hold(self, held: bool) -> None:
        """Hold packets back, or no longer, as ``Model.hold_recirculated`` says."""


@runtime_checkable
class GeneratingRunner(Runner, Protocol):
    """A runner of a switch that generates packets by itself."""

    @abstractmethod
    def generate(self, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process the packets that the switch has generated until now. Returns the output as (port, packet)."""
