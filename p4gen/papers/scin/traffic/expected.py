"""What random traffic knows of a context: roughly what its ranks know, and what the switch has asked them for.

The switch is not asked. Packets that nothing is wrong with are reckoned to have arrived; what the switch then does
follows from section 3.4.1 of the paper: waves are read while slots are free, results leave in order. If elements have
scales, those of a wave are read first (section 3.4.4).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from p4gen.papers.scin.control import PullContext, PullEdge


@dataclass
class ExpectedContext:
    """A context and its newest call. Packets are counted from the context's first one, calls from its first call."""

    context: PullContext
    slots: int
    wave: int
    scaled: bool = False
    """Whether elements have scales."""
    exact: bool = False
    """Whether the call is one without scales, beside others."""
    number: int = -1
    """Of the call that runs, or that has run last."""
    packets: int = 0
    first: int = 0
    """The call's first packet."""
    arrived: int = 0
    """Ranks that have arrived at the call after it."""
    announced: int = 0
    """The packets of that one."""
    announced_exact: bool = False
    asked: int = 0
    """The packet behind the last that READs ask for."""
    loading: int = 0
    """The packet behind the last wave whose scales READs ask for."""
    first_wave: int = 0
    """The call's first wave: waves are counted from the context's first one."""
    scales: dict[int, int] = field(default_factory=dict)
    """Sources whose scales have come, by wave, where its data has not been asked for."""
    came: dict[int, int] = field(default_factory=dict)
    """Sources whose data has come, by packet, where it has not from all."""
    complete: set[int] = field(default_factory=set)
    released: int = 0
    """The packet behind the last that was written."""
    acked: dict[int, int] = field(default_factory=dict)
    """The packet behind the last that a destination has acknowledged, by edge."""
    flagged: int = 0
    ticks: int = 0
    """Since anything new has come."""
    aborted: bool = False
    silent: int = 0
    """Packets of the near future that are ticks for the most part."""
    old: int = 0
    """Packets since the call was aborted."""

    @property
    def participants(self) -> int:
        """The sources and destinations of the context, as a bitmap."""
        return self.context.sources | self.context.destinations

    @property
    def end(self) -> int:
        """The packet behind the call's last one."""
        return self.first + self.packets

    @property
    def finished(self) -> bool:
        """Whether no call runs: the flags of the last one are under way."""
        return self.aborted or self.freed == self.end

    @property
    def freed(self) -> int:
        """The packet behind the last that all destinations have acknowledged."""
        named = [edge.edge for edge in self.of(self.context.destinations)]
        return min(self.acked.get(edge, self.first) for edge in named)

    def of(self, mask: int) -> list[PullEdge]:
        """The edges of the ranks in a bitmap."""
        return [edge for edge in self.context.edges if mask >> (edge.edge - 1) & 1]

    def missing(self, edge: PullEdge) -> list[int]:
        """What a source has been asked for and has not given."""
        bit = 1 << (edge.edge - 1)
        wanted = (psn for psn in range(self.released, self.asked) if psn not in self.complete)
        return [psn for psn in wanted if not self.came.get(psn, 0) & bit]

    @property
    def awaited(self) -> int:
        """The first wave of which not all scales have come."""
        return self.first_wave - (self.first - self.asked) // self.wave

    @property
    def waves_end(self) -> int:
        """The wave behind the last whose scales have been asked for."""
        return self.first_wave - (self.first - self.loading) // self.wave

    def missing_scales(self, edge: PullEdge) -> list[int]:
        """The waves whose scales a source has been asked for and has not given."""
        bit = 1 << (edge.edge - 1)
        return [wave for wave in range(self.awaited, self.waves_end) if not self.scales.get(wave, 0) & bit]

    def reads(self) -> None:
        """The switch reads while there is room."""
        while self.loading < self.end and self.loading + self.wave - self.freed <= self.slots:
            self.loading = min(self.loading + self.wave, self.end)
        if self.exact or not self.scaled:
            self.asked = self.loading

    # --- what becomes of packets ---

    def has_arrived(self, edge: PullEdge) -> None:
        """A rank has arrived at the next call; the last one starts it."""
        self.arrived |= 1 << (edge.edge - 1)
        if self.arrived == self.participants and self.finished:
            self.number += 1
            if not self.exact:
                self.first_wave -= -self.packets // self.wave
            self.first, self.packets, self.exact = self.end, self.announced, self.announced_exact
            self.arrived = self.flagged = self.ticks = 0
            self.acked.clear()
            self.reads()

    def has_scales(self, edge: PullEdge, wave: int) -> None:
        """A source's scales of a wave have come."""
        if not self.awaited <= wave < self.waves_end:
            return
        self.ticks *= self.scales.get(wave, 0) >> (edge.edge - 1) & 1
        self.scales[wave] = self.scales.get(wave, 0) | 1 << (edge.edge - 1)
        while self.scales.get(self.awaited) == self.context.sources:
            del self.scales[self.awaited]
            self.asked = min(self.asked + self.wave, self.end)

    def has_come(self, edge: PullEdge, psn: int) -> None:
        """A source's data has come."""
        if not self.released <= psn < self.asked:
            return
        self.ticks *= self.came.get(psn, 0) >> (edge.edge - 1) & 1
        self.came[psn] = self.came.get(psn, 0) | 1 << (edge.edge - 1)
        if self.came[psn] == self.context.sources:
            self.complete.add(psn)
        while self.released in self.complete:
            self.complete.discard(self.released)
            del self.came[self.released]
            self.released += 1

    def is_acknowledged(self, edge: PullEdge, behind: int) -> None:
        """A destination has all results up to one."""
        if behind <= self.released:
            before = self.acked.get(edge.edge, self.first)
            self.acked[edge.edge] = max(behind, before)
            self.ticks *= behind <= before
            self.reads()

    def has_flag(self, edge: PullEdge) -> None:
        """A rank has acknowledged its flag."""
        self.flagged |= 1 << (edge.edge - 1)

    def is_aborted(self) -> None:
        """The call has ended with a status."""
        self.aborted, self.flagged, self.silent = True, 0, 0

    def is_ticked(self, patience: int) -> None:
        """The switch has been told that time passes."""
        self.ticks += not self.finished
        if self.ticks > patience:
            self.is_aborted()
