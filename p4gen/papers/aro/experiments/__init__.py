"""ARO's figures, repeated on random fabrics."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.experiment import Experiment, Experiments
from p4gen.papers.aro.experiments.figures import FIGURES, ONE

_COSTS: Final = {"7a": "a minute", "7b": "ten minutes", "7c": "five minutes", "11": "an hour", "12": "half an hour"}

FACET: Final = Experiments(
    {
        f"figure-{name}": Experiment(
            {
                "paper": f"{figure.repeat} instances at each point, {_COSTS.get(name, 'ten minutes')}",
                ONE: "one instance at each point: means may miss what must hold",
            },
            figure.perform,
            partly=True,
            check="paper" if name == "7a" else None,
        )
        for name, figure in FIGURES.items()
    }
)
