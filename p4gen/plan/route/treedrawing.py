"""Trees as a picture: hosts below, switches above by tiers, each tree's edges in its colour, as wide as their flows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from p4gen.plan.route.fabric import Shape
from p4gen.plan.route.planfile import TreePlan
from p4gen.vocabulary.topology import TopologySpec

_COLORS: Final = ("tab:red", "tab:blue", "tab:green", "tab:orange", "tab:purple", "tab:brown", "tab:pink", "tab:olive")
_APART: Final = 0.05
"""Between the edges of two trees over one link."""
Place = tuple[float, float]


def places(topology: TopologySpec) -> Mapping[str, Place]:
    """The places of nodes: switches at the height of their tier, hosts below the switch that they are connected to."""
    rows: dict[int, list[str]] = {}
    for switch in topology.switches:
        rows.setdefault(topology.tiers.get(switch, 0), []).append(switch)
    leaf_of = {host: topology.switches.index(topology.ports[host][0].other(host)) for host in topology.hosts}
    rows[0] = sorted(topology.hosts, key=lambda host: leaf_of[host])
    wide = max(len(row) for row in rows.values())
    return {
        name: ((index + 0.5) * wide / len(row), 1.5 * tier)
        for tier, row in rows.items()
        for index, name in enumerate(row)
    }


def plot_trees(plans: Sequence[TreePlan], path: Path) -> None:
    """Draw plans of one group as SVG or PNG, by the suffix of ``path``: their edges' paths, their nodes and roots."""
    import matplotlib as mpl  # noqa: PLC0415 - takes a second to load, and only plots need it
    from matplotlib.figure import Figure  # noqa: PLC0415

    topology, ranks, inc = plans[0].topology, plans[0].ranks, plans[0].inc
    at = places(topology)
    wide, high = max(x for x, _ in at.values()), max(y for _, y in at.values())
    with mpl.rc_context({"svg.hashsalt": "p4gen"}):
        figure = Figure(figsize=(min(24.0, max(6.0, 0.6 * wide)), 1.5 + high), layout="constrained")
        axes = figure.add_subplot()
        for link in topology.links:
            (x, y), (u, v) = (at[end] for end in link.ends)
            axes.plot([x, u], [y, v], color="lightgray", linewidth=0.8, zorder=1)
        for number, plan in enumerate(plans):
            aside = _APART * (number - (len(plans) - 1) / 2)
            for (one, other), flows in _flows(plan.shape).items():
                (x, y), (u, v) = at[one], at[other]
                axes.plot([x + aside, u + aside], [y, v], color=_COLORS[number], linewidth=flows, alpha=0.7, zorder=2)
        used = {node for plan in plans for edge in plan.shape.paths for node in edge}
        for name, (x, y) in at.items():
            face = "tab:gray" if name in topology.hosts else "black" if name in inc else "white"
            axes.scatter([x], [y], s=40, marker="o" if y == 0 else "s", color=face, edgecolor="black",
                         alpha=1.0 if name in used else 0.3, zorder=3)  # fmt: skip
            axes.annotate(name, (x, y), xytext=(0, -11), textcoords="offset points", ha="center", fontsize=6)
        for number, plan in enumerate(plans):
            text = "root" if len(plans) == 1 else f"root {number}"
            axes.annotate(text, at[plan.shape.root], xytext=(0, 7 + 8 * number), textcoords="offset points",
                          ha="center", fontsize=7, color=_COLORS[number])  # fmt: skip
        title = f"{topology.name}: {len(ranks)} ranks; switches in black aggregate, pale nodes are not used"
        axes.set_title(title, fontsize=8)
        axes.set_axis_off()
        figure.savefig(path)


def _flows(shape: Shape) -> Counter[tuple[str, str]]:
    """The number of a tree's edges over each link."""
    return Counter(pair for path in shape.paths for pair in pairwise(path))
