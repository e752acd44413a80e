"""CountContributions: one count for each packet that a rank contributes."""

from __future__ import annotations

from inc import psns
from mode_ii import ModeIITest

COUNTER = "contributions"


class ContributionsAreCounted(ModeIITest):
    """Each rank's packets are counted at its own edge only."""

    def runTest(self) -> None:
        group = self.group_of(2)
        for psn in psns(self.random_psn(), 3):
            self.complete(group, psn)
        self.equal("counts", self.counts(COUNTER), {edge.edge_id: 3 for edge in group.edges})


class RepetitionsAreNot(ModeIITest):
    """A rank that sends its contribution again after the result is counted again only if the program says so."""

    def runTest(self) -> None:
        group = self.group_of(2)
        psn = self.random_psn()
        values = self.random_values(2)
        self.contribute(group, [0, 1], psn, values)
        self.contribute(group, [0], psn, values)
        first, second = (edge.edge_id for edge in group.edges)
        again = 1 if self.spec.repeats == "count" else 0
        self.equal("counts", self.counts(COUNTER), {first: 1 + again, second: 1})
