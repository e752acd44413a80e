"""Mutation scores: which share of the faults that count was caught."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from p4gen.ptf.judge import Finding


@dataclass(frozen=True)
class Score:
    """What became of faults. Those that are no program (``invalid``) do not count; unclear ones are not caught."""

    caught: int = 0
    survived: int = 0
    unclear: int = 0
    invalid: int = 0

    @property
    def counted(self) -> int:
        """Faults that somebody could have caught."""
        return self.caught + self.survived + self.unclear

    @property
    def share(self) -> float:
        """The part of them that was caught, 0 to 1."""
        return self.caught / self.counted if self.counted else 1.0

    def reaches(self, percent: float) -> bool:
        """There were faults, and so many of a hundred were caught."""
        return self.counted > 0 and 100 * self.caught >= percent * self.counted

    def __str__(self) -> str:
        return (
            f"{self.caught} of {self.counted} faults caught ({100 * self.share:.1f} %), {self.survived} survived, "
            f"{self.unclear} unclear, {self.invalid} no programs"
        )


def score(findings: Iterable[tuple[str, Finding | None]]) -> dict[str, Score]:
    """Scores by the name that each finding comes with."""
    counts = Counter(findings)
    return {
        name: Score(
            *(counts[name, finding] for finding in (Finding.CAUGHT, Finding.SURVIVED, Finding.UNCLEAR, Finding.INVALID))
        )
        for name in dict.fromkeys(name for name, _ in counts)
    }
