"""The ways to spread requests that Themis is compared with: none of them knows connections."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from leaf import ACK, FIRST_SPINE, SPINES, LeafTest

from p4gen.papers.themis.spec import Spread, ThemisSpec
from p4gen.rocev2.headers import AETH
from p4gen.rocev2.opcodes import Opcode


class SpreadTest(LeafTest):
    """A program with one of ``spreads``."""

    spreads: tuple[Spread, ...] = ()

    def misfit(self, spec: ThemisSpec) -> str | None:
        """Needs one of the spreads."""
        if spec.spread not in self.spreads:
            return f"the program spreads by {spec.spread}"
        return super().misfit(spec)

    def spines(self, psns: Iterable[int]) -> set[int]:
        """The spines, from 0, that a connection's requests take."""
        flow = self.outgoing()
        return {port - FIRST_SPINE for port in self.ports_taken(flow.request(psn) for psn in psns)}


class EveryPathIsTaken(SpreadTest):
    """64 requests of one connection, one after the other, leave by all next hops."""

    spreads = (Spread.RANDOM, Spread.ADAPTIVE)

    def runTest(self) -> None:
        self.equal("spines", self.spines(range(64)), set(range(SPINES)))
        self.equal("spines", self.spines([5] * 64), set(range(SPINES)))


class OnePathIsTaken(SpreadTest):
    """ECMP: a connection has one path."""

    spreads = (Spread.ECMP,)

    def runTest(self) -> None:
        self.equal("number of spines", len(self.spines(range(16))), 1)


class AnswersHaveOnePath(SpreadTest):
    """ACKs, READ responses and CNPs take the path of their hash."""

    spreads = (Spread.RANDOM, Spread.ADAPTIVE, Spread.FLOWLET, Spread.ECMP)

    def runTest(self) -> None:
        for opcode, changed in (
            (Opcode.ACKNOWLEDGE, {"aeth": AETH(ACK, 1), "payload": b""}),
            (0x0E, {}),
            (Opcode.CNP, {"payload": bytes(16)}),
        ):
            requests = [self.outgoing().request(psn) for psn in range(16)]
            packets = [replace(p, bth=replace(p.bth, opcode=opcode), **changed).sealed() for p in requests]
            self.equal(f"ports of {opcode:#x}", len(set(self.ports_taken(packets))), 1)
