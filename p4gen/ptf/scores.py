"""Mutation scores: the share of faults that was caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from p4gen.ptf.judge import Finding


@dataclass(frozen=True)
class Score:
    """The verdicts on faults, counted. Programs that cannot be loaded (``invalid``) do not count; unclear ones count as
    not caught."""

    caught: int = 0
    survived: int = 0
    unclear: int = 0
    invalid: int = 0

    @property
    def counted(self) -> int:
        """Number of faults that count."""
        return self.caught + self.survived + self.unclear

    @property
    def share(self) -> float:
        """The share of them that was caught, from 0 to 1."""
        return self.caught / self.counted if self.counted else 1.0

    def reaches(self, percent: float) -> bool:
        """Whether there were faults and at least ``percent`` of them were caught."""
        return self.counted > 0 and 100 * self.caught >= percent * self.counted

    def __str__(self) -> str:
        faults = f"fault{'s' * (self.counted != 1)}"
        return (
            f"{self.caught} of {self.counted} {faults} caught ({100 * self.share:.1f} %), {self.survived} survived, "
            f"{self.unclear} unclear, {self.invalid} invalid"
        )


def score(findings: Iterable[tuple[str, Finding | None]]) -> dict[str, Score]:
    """Count the findings of each name, in the order of names; a finding of None is not counted."""
    counts = Counter(findings)
    return {
        name: Score(
            *(counts[name, finding] for finding in (Finding.CAUGHT, Finding.SURVIVED, Finding.UNCLEAR, Finding.INVALID))
        )
        for name in dict.fromkeys(name for name, _ in counts)
    }
