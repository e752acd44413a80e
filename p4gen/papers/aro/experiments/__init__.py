"""ARO's figures, repeated on random fabrics."""

from __future__ import annotations

from typing import Final

from p4gen.experiments.experiment import Experiment, Experiments
from p4gen.papers.aro.experiments.figures import FIGURES, ONE, Figure

_LONG: Final = {"11": "half an hour", "13": "two minutes"}
"""What figures cost that take longer than a minute."""


def _experiment(name: str, figure: Figure) -> Experiment:
    return Experiment(
        {
            "paper": f"{figure.repeat} instances at each point, {_LONG.get(name, 'seconds')}",
            ONE: "one instance at each point: means may miss what must hold",
        },
        figure.perform,
        partly=True,
        check=None if name in _LONG else "paper",
    )


FACET: Final = Experiments({f"figure-{name}": _experiment(name, figure) for name, figure in FIGURES.items()})
