"""A plan as a picture: leaves, spines and the server's leaf from left to right, links as wide as their flows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from p4gen.plan.route.instance import Instance
from p4gen.plan.route.plan import Plan


def plot_plans(plans: Sequence[tuple[Instance, Plan]], path: Path) -> None:
    """Draw the plan of each task as SVG or PNG, by the suffix of ``path``, one below the other."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to load, and only plots need it
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "p4gen"}):
        heights = [max(len(instance.by_leaf), len(plan.down(instance)), 2) for instance, plan in plans]
        figure = Figure(figsize=(9, sum(0.3 * height + 1.5 for height in heights)), layout="constrained")
        all_axes = figure.subplots(len(plans), squeeze=False, height_ratios=heights)
        for (instance, plan), (axes,) in zip(plans, all_axes, strict=True):
            _draw(axes, instance, plan)
        figure.savefig(path)


def _draw(axes: Any, instance: Instance, plan: Plan) -> None:
    down, fullest = plan.down(instance), plan.fullest(instance)
    leaves = sorted({*instance.sends, *(leaf for leaf, _ in plan.up)})
    spines = sorted(set(down) | instance.aggregating_spines)
    height = max(len(leaves), len(spines), 2)
    server = f"leaf{instance.server[0]}"
    middle = (height - 1) / 2
    at_leaf = {leaf: (0.0, i * (height - 1) / max(1, len(leaves) - 1)) for i, leaf in enumerate(leaves)}
    at_spine = {spine: (1.0, i * (height - 1) / max(1, len(spines) - 1)) for i, spine in enumerate(spines)}

    def link(one: tuple[float, float], other: tuple[float, float], flows: int) -> None:
        color = "tab:red" if flows == fullest else "tab:gray"
        axes.plot([one[0], other[0]], [one[1], other[1]], linewidth=flows, color=color, alpha=0.6, zorder=1)

    for (leaf, spine), flows in plan.up.items():
        link(at_leaf[leaf], at_spine[spine], flows)
    for spine, flows in down.items():
        link(at_spine[spine], (2.0, middle), flows)
    link((2.0, middle), (2.6, middle), plan.last(instance))
    nodes = [(at, f"leaf{leaf}", leaf in instance.aggregating_leaves, True) for leaf, at in at_leaf.items()]
    nodes += [
        (at, f"spine{spine}", spine in instance.aggregating_spines, spine in down) for spine, at in at_spine.items()
    ]
    nodes += [((2.0, middle), server, True, True), ((2.6, middle), "server", False, True)]
    for (x, y), name, aggregates, used in nodes:
        color = "tab:blue" if aggregates else "white"
        axes.scatter([x], [y], s=60, color=color, edgecolor="black", alpha=1.0 if used else 0.3, zorder=2)
        axes.annotate(name, (x, y), xytext=(0, 6), textcoords="offset points", ha="center", fontsize=7)
    axes.set_title(
        f"{plan.algorithm}: {fullest} flows on the fullest links (red); switches in blue aggregate", fontsize=9
    )
    axes.set_axis_off()
