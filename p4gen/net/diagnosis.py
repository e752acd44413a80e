"""Why a run does not end: which rank waits for which PSN, what the switch holds for it, what was lost on the way.

The switch's part is read from the registers of the generated program, as a person would read them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from p4gen.host.clock import duration_text
from p4gen.rocev2.opcodes import Opcode

if TYPE_CHECKING:
    from p4gen.net.simulation import Simulation


@dataclass(frozen=True)
class RankState:
    """Where a rank stands. PSNs are 24 bits."""

    rank: int
    host: str
    done: bool
    unacknowledged: int | None
    """The oldest PSN that it has sent and not seen acknowledged; None when there is none."""
    expects: int
    """The PSN of the result that it waits for."""

    def __str__(self) -> str:
        if self.done:
            return f"rank {self.rank} ({self.host}) is done"
        if self.unacknowledged is None:
            return f"rank {self.rank} ({self.host}) has nothing unacknowledged; it expects PSN {self.expects:#08x}"
        return (
            f"rank {self.rank} ({self.host}) waits for the ACK of PSN {self.unacknowledged:#08x} "
            f"and for the result of PSN {self.expects:#08x}"
        )


@dataclass(frozen=True)
class SlotState:
    """What a switch holds in the slot of a PSN."""

    switch: str
    psn: int
    holds: int | None
    """The PSN that the slot serves; None when it has never been used in this epoch."""
    opcode: int
    arrived: tuple[int, ...]
    missing: tuple[int, ...]
    """Ranks whose contribution the slot has, and has not."""

    def __str__(self) -> str:
        at = f"{self.switch}, slot of PSN {self.psn:#08x}"
        if self.holds is None:
            return f"{at}: empty; no rank's contribution has arrived"
        if self.holds != self.psn:
            return f"{at}: still serves PSN {self.holds:#08x}; no contribution to this one has arrived"
        what = _opcode_name(self.opcode)
        if not self.missing:
            return f"{at}: complete ({what}); the result was sent, and is lost to whoever waits for it"
        return f"{at}: {what} of rank {_ranks(self.arrived)} is there; waits for rank {_ranks(self.missing)}"


@dataclass(frozen=True)
class Diagnosis:
    """The findings, most telling first."""

    deadlocked: bool
    """Nothing will ever happen again; otherwise packets still fly, and nothing comes of it."""
    time: int
    ranks: tuple[RankState, ...]
    slots: tuple[SlotState, ...]
    causes: tuple[str, ...]

    def lines(self) -> list[str]:
        """As text, one finding a line."""
        what = "deadlock: no packet is under way and no timer runs" if self.deadlocked else "no progress any more"
        return [
            f"{what}, at {duration_text(self.time)}",
            *(str(slot) for slot in self.slots),
            *(f"cause: {cause}" for cause in self.causes),
            *(str(rank) for rank in self.ranks),
        ]


def diagnose(simulation: Simulation, *, deadlocked: bool) -> Diagnosis:
    """Why ``simulation`` does not end."""
    ranks = tuple(_rank_state(simulation, rank) for rank in range(len(simulation.communicators)))
    waited = sorted({state.expects for state in ranks if not state.done})
    waited += sorted({s.unacknowledged for s in ranks if not s.done and s.unacknowledged is not None} - set(waited))
    slots = tuple(_slot_state(simulation, psn) for psn in waited[:4])
    causes = [*_lost(simulation, set(waited)), *_refused(simulation)]
    if not simulation.config.timeout:
        causes.append("the retransmission timer is off: what is lost stays lost unless a NAK asks for it")
    return Diagnosis(deadlocked, simulation.network.loop.now, ranks, slots, tuple(causes))


def _rank_state(simulation: Simulation, rank: int) -> RankState:
    requester = simulation.communicators[rank].pair.requester
    responder = simulation.communicators[rank].pair.responder
    mine = simulation.invocations[rank]
    return RankState(
        rank,
        simulation.config.topology.rank_hosts[rank],
        bool(mine) and all(i.done for i in mine),
        requester.psn(requester.una) if requester.una < requester.high else None,
        responder.psn(responder.expected),
    )


def _slot_state(simulation: Simulation, psn: int) -> SlotState:
    root, group = simulation.placement.root, simulation.placement.group
    index = group.base + (psn & (group.slots - 1))
    word = simulation.network.switches[root].register("slots", index)
    epoch, held, opcode, bitmap = word >> 96, word >> 72 & 0xFFFFFF, word >> 64 & 0x7F, word & 0xFFFFFFFF
    everyone = range(len(group.edges))
    if epoch != group.epoch:
        return SlotState(root, psn, None, 0, (), tuple(everyone))
    if held != psn:
        return SlotState(root, psn, held, opcode, (), tuple(everyone))
    arrived = tuple(rank for rank in everyone if bitmap >> rank & 1)
    return SlotState(root, psn, held, opcode, arrived, tuple(rank for rank in everyone if not bitmap >> rank & 1))


def _lost(simulation: Simulation, psns: set[int]) -> list[str]:
    """What links did to packets of the PSNs that are waited for."""
    found: Counter[tuple[str, int | None, int, str, str]] = Counter()
    for passage in simulation.network.recent_drops:
        label = simulation.network.kinds.of(passage.frame)
        if label is not None and label.psn in psns:
            found[label.kind, label.rank, label.psn, f"{passage.src}>{passage.dst}", passage.reason] += 1
    return [
        f"{kind} of rank {rank}, PSN {psn:#08x}, was lost on {place} {count} time{'s' if count > 1 else ''} ({reason})"
        for (kind, rank, psn, place, reason), count in found.most_common(8)
    ]


def _refused(simulation: Simulation) -> list[str]:
    """What the root's program keeps refusing for a reason that resending does not mend."""
    telling = ("mixed", "not_served", "not_a_source", "unknown", "bad_length", "bad_opcode", "stale")
    drops = simulation.switch_drops(simulation.placement.root)
    return [
        f"{simulation.placement.root} dropped {count} packets as {reason}"
        for reason, count in drops.most_common()
        if any(word in reason for word in telling)
    ]


def _opcode_name(opcode: int) -> str:
    try:
        return Opcode(opcode).name
    except ValueError:
        return f"opcode {opcode:#x}"


def _ranks(ranks: tuple[int, ...]) -> str:
    return ", ".join(map(str, ranks))
