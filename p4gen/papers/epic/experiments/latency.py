"""What storing whole messages costs: the latency of Mode I above Mode III's (EPIC 5.2, F.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from p4gen.experiments.cells import Cell
from p4gen.experiments.experiment import Check, Experiment, Order, Report
from p4gen.host.transport.clock import SECOND, US
from p4gen.model import EngineName
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.simulation import simulate
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.vocabulary.topology import load_topology

LANES: Final = 64
PAYLOAD: Final = 4 * LANES
ON_THE_WIRE: Final = PAYLOAD + 58 + 24
"""U in bytes: headers and ICRC, preamble and gap included."""
TIERS: Final = {"star-4": 2, "tree-3-2": 3}
"""H of each topology: hosts are a tier."""
MESSAGES: Final = (1, 4, 16, 64)
"""M, packets of a message."""
MARGIN: Final = 0.1
RECIRCULATING: Final = (16, 64)
"""M of the runs whose cursors take a switch's latency for each pass; with fewer packets their start shows, too."""


@dataclass(frozen=True)
class Extra:
    """One message's AllReduce in both modes; times in ps."""

    topology: str
    message: int
    stored: int
    """Mode I: until the last result has arrived."""
    passed: int
    """Mode III."""
    delay: int = 0
    """From a cursor's pass to its next one."""

    @property
    def packet(self) -> float:
        """U/B: the time that a packet takes on a link."""
        return ON_THE_WIRE * 8 * SECOND / load_topology(self.topology).defaults.bandwidth

    @property
    def expected(self) -> float:
        """(2H - 3)(M - 1)U/B: a result passes 2H - 3 switches, each of which waits for the rest of a message.

        A cursor sends a packet in each pass, so if its passes take longer than a packet on a link, they replace U/B.
        """
        return (2 * TIERS[self.topology] - 3) * (self.message - 1) * max(self.packet, self.delay)

    @property
    def paper(self) -> float:
        """(2H - 1)(M - 1)U/B, as section F.1 prints it; a tree of H tiers has 2H - 2 hops."""
        return (2 * TIERS[self.topology] - 1) * (self.message - 1) * self.packet

    @property
    def ok(self) -> bool:
        """Whether the difference is the expected one."""
        return abs(self.stored - self.passed - self.expected) <= MARGIN * self.expected


def measured(topology: str, message: int, delay: int = 0, seed: int = 1, engine: EngineName = "jit") -> Extra:
    """Simulate an AllReduce of one message in Modes I and III. Raises ``RuntimeError`` if a run does not end right."""
    stored, passed = (_latency(topology, mode, message, delay, seed, engine) for mode in (Mode.I, Mode.III))
    return Extra(topology, message, stored, passed, delay)


def _latency(topology: str, mode: Mode, message: int, delay: int, seed: int, engine: EngineName) -> int:
    spec = EpicSpec(mode=mode, lanes=LANES, window=2, message=message, groups=1, fan_in=4, ports=8)
    size = PAYLOAD * message
    network = load_topology(topology).model_copy(update={"recirculation_delay": delay})
    result = simulate(SimConfig(network, spec, size=size, seed=seed, engine=engine, timeout=0))
    if not result.ok or result.last_result is None:
        raise RuntimeError(f"Mode {mode} on {topology} with messages of {message}: {result.errors or result.diagnosis}")
    return result.last_result


def _perform(order: Order) -> Report:
    delays = {name: load_topology(name).switch_latency for name in TIERS}
    asked = [(name, message, 0) for name in TIERS for message in MESSAGES]
    asked += [(name, message, delays[name]) for name in TIERS for message in RECIRCULATING]
    found = order.run(
        [
            Cell(f"{name}/{message}/{delay}", measured, (name, message, delay, order.seed, order.engine))
            for name, message, delay in asked
        ]
    ).values()
    return Report(
        columns=(
            "topology",
            "H",
            "M",
            "cursor's pass, us",
            "Mode I, us",
            "Mode III, us",
            "more, us",
            "expected, us",
            "paper: (2H-1)(M-1)U/B",
        ),
        rows=tuple(
            (
                each.topology,
                TIERS[each.topology],
                each.message,
                each.delay / US,
                *(time / US for time in (each.stored, each.passed, each.stored - each.passed)),
                each.expected / US,
                each.paper / US,
            )
            for each in found
        ),
        checks=tuple(
            Check(
                f"{each.topology}, M = {each.message}, passes of {each.delay / US:g} us: "
                f"Mode I takes {(each.stored - each.passed) / US:.3f} us more, expected {each.expected / US:.3f} us",
                each.ok,
            )
            for each in found
        ),
        assumptions=(
            f"an AllReduce of one message of M packets; payload {PAYLOAD} bytes, {ON_THE_WIRE} bytes on the wire (U)",
            "a tree of H tiers has 2H - 2 hops and 2H - 3 switches on the way of a result; F.1's formula has 2H - 1, "
            "its text 2H - 2 hops",
            "expected: (2H-3)(M-1)U/B, and where a cursor's passes take longer than a packet on a link, which F.1 "
            "leaves out, their time in place of U/B",
        ),
        files={},
    )


LATENCY: Final = Experiment(
    {"small": "a star and a tree of three tiers, messages of 1 to 64 packets: a minute"}, _perform, check="small"
)
