"""Plots in one style, as the text of an SVG file; the same values give the same text."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_COLOURS: Final = ("#1f5fa8", "#c0392b", "#2c8a4b", "#b8860b", "#6a3d9a", "#555555", "#17a2b8", "#e377c2", "#8c564b")
_MANY: Final = 8
"""Lines whose names would cover a picture; those of more are beside it."""
_STYLE: Final = {
    "svg.hashsalt": "p4gen",
    "svg.fonttype": "none",
    "font.size": 9,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "legend.frameon": False,
}


@dataclass(frozen=True)
class Series:
    """A line of a chart; None is a gap. A dashed line has the colour of the line before it."""

    name: str
    values: Sequence[float | None]
    dashed: bool = False


def chart_svg(title: str, x_name: str, x_labels: Sequence[str], y_name: str, series: Sequence[Series]) -> str:
    """A line chart. The points are equally far apart; the y axis starts at 0."""
    text = io.StringIO()
    with _axes(text, title, x_name, y_name) as axes:
        number = -1
        for at, line in enumerate(series):
            number += not (line.dashed and at)
            axes.plot(
                range(len(line.values)),
                [float("nan") if value is None else value for value in line.values],
                color=_COLOURS[number % len(_COLOURS)],
                linestyle="--" if line.dashed else "-",
                marker="o",
                markersize=3,
                label=line.name,
            )
        axes.set_xticks(range(len(x_labels)), x_labels)
        axes.set_ylim(bottom=0)
    return text.getvalue()


def cdf_svg(title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[float]]) -> str:
    """The distribution of each series of values."""
    text = io.StringIO()
    write_cdf(text, title, x_name, y_name, series)
    return text.getvalue()


def write_cdf(
    to: Path | io.StringIO, title: str, x_name: str, y_name: str, series: Mapping[str, Sequence[float]]
) -> None:
    """Draw distributions into a file, as SVG or PNG by its suffix. Raises ``OSError``."""
    with _axes(to, title, x_name, y_name) as axes:
        for name, values in series.items():
            ordered = sorted(values)
            axes.step(ordered, [(i + 1) / len(ordered) for i in range(len(ordered))], where="post", label=name)
        axes.set_ylim(0, 1)


@contextmanager
def _axes(to: Path | io.StringIO, title: str, x_name: str, y_name: str) -> Iterator[Any]:
    """Axes to draw on; the picture is written when that has been done."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to load, and only plots need it
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(7.6, 4.2), layout="constrained")
        axes = figure.add_subplot(title=title, xlabel=x_name, ylabel=y_name)
        yield axes
        if len(axes.get_lines()) > _MANY:
            figure.set_figwidth(10)
            figure.legend(loc="outside right upper")
        else:
            axes.legend()
        if isinstance(to, Path):
            figure.savefig(to)
        else:
            figure.savefig(to, format="svg", metadata={"Date": None})
