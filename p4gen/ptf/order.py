"""The order in which scenarios are tried on a fault, so that most faults are caught soon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Order:
    """Orders scenarios: those that caught faults of the same module before come first, then the fast ones."""

    seconds: Mapping[str, float]
    """Seconds that each scenario takes on a program without faults."""
    caught: dict[str, Counter[str]] = field(default_factory=dict)

    def learn(self, module: str, scenario: str) -> None:
        """A scenario has caught a fault of a module."""
        self.caught.setdefault(module, Counter())[scenario] += 1

    def of(self, module: str, likely: Sequence[str] = ()) -> list[str]:
        """All scenarios in the order for a fault of a module, those of the ``likely`` modules of the suite first."""
        here, anywhere = self.caught.get(module, Counter()), sum(self.caught.values(), Counter())

        def merit(name: str) -> tuple[bool, float]:
            hope = here[name] + 0.1 * anywhere[name] + 0.01
            return name.partition(".")[0] in likely, hope / (self.seconds[name] + 0.005)

        return sorted(self.seconds, key=merit, reverse=True)
