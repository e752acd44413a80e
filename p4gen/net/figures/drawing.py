"""Drawings as SVG: a topology, and the line chart of a sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from p4gen.vocabulary.topology import TopologySpec


def topology_svg(topology: TopologySpec) -> str:
    """A drawing of the network in layers: hosts at the bottom, the IncTree's root with a bold outline."""
    away = dict.fromkeys(topology.switches, 1 << 30)
    for host in topology.hosts:
        for node, distance in topology.distances(host).items():
            if node in away:
                away[node] = min(away[node], distance)
    layers: dict[int, list[str]] = {0: list(topology.hosts)}
    for switch, distance in away.items():
        layers.setdefault(distance, []).append(switch)
    width = max(160 * max(map(len, layers.values())), 320)
    height = 130 * len(layers) + 40
    place = {}
    for level, nodes in layers.items():
        depth = max(layers) - level
        for i, node in enumerate(nodes):
            place[node] = (int(width * (i + 0.5) / len(nodes)), 70 + 130 * depth)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="24" font-size="15">{escape(topology.name)}</text>',
    ]
    for link in topology.links:
        (x1, y1), (x2, y2) = (place[end] for end in link.ends)
        title = f"{link.name}: {topology.setting(link, 'bandwidth') / 1e9:g} Gb/s"
        parts.append(
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#999"><title>{escape(title)}</title></line>'
        )
    ranks = {host: rank for rank, host in enumerate(topology.rank_hosts)}
    for node, (x, y) in place.items():
        if node in topology.hosts:
            rank = f"rank {ranks[node]}" if node in ranks else "no rank"
            parts.append(f'<circle cx="{x}" cy="{y}" r="22" fill="#e8f1e4" stroke="#4a7a3a"/>')
            parts.append(f'<text x="{x}" y="{y + 40}" font-size="11" text-anchor="middle" fill="#555">{rank}</text>')
        else:
            bold = 3 if node == topology.root else 1
            parts.append(
                f'<rect x="{x - 40}" y="{y - 18}" width="80" height="36" rx="5" fill="#e4ecf5" stroke="#2d5a8a" '
                f'stroke-width="{bold}"/>'
            )
        parts.append(f'<text x="{x}" y="{y + 4}" font-size="12" text-anchor="middle">{escape(node)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


@dataclass(frozen=True)
class Series:
    """A line of a chart; None is a gap. A dashed line has the colour of the line before it."""

    name: str
    values: Sequence[float | None]
    dashed: bool = False


def chart_svg(title: str, x_name: str, x_labels: Sequence[str], y_name: str, series: Sequence[Series]) -> str:
    """A line chart. The points are equally far apart; the y axis starts at 0."""
    width, height, left, bottom = 760, 420, 70, 60
    top = 1.05 * max((v for s in series for v in s.values if v is not None), default=1.0) or 1.0
    step = 10 ** math.floor(math.log10(top)) / 2

    def x(i: int) -> float:
        return left + (width - left - 30) * (i + 0.5) / max(1, len(x_labels))

    def y(value: float) -> float:
        return height - bottom - (height - bottom - 50) * value / top

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">',
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="{left}" y="24" font-size="15">{escape(title)}</text>',
        f'<text x="{width / 2}" y="{height - 12}" font-size="12" text-anchor="middle">{escape(x_name)}</text>',
        f'<text x="16" y="{height / 2}" font-size="12" text-anchor="middle" '
        f'transform="rotate(-90 16 {height / 2})">{escape(y_name)}</text>',
    ]
    for i in range(int(top / step) + 1):
        at = y(i * step)
        parts.append(f'<line x1="{left}" y1="{at:.1f}" x2="{width - 30}" y2="{at:.1f}" stroke="#e5e5e5"/>')
        parts.append(f'<text x="{left - 6}" y="{at + 4:.1f}" font-size="11" text-anchor="end">{i * step:g}</text>')
    for i, text in enumerate(x_labels):
        parts.append(
            f'<text x="{x(i):.1f}" y="{height - bottom + 18}" font-size="11" text-anchor="middle">{escape(text)}</text>'
        )
    colours = ("#1f5fa8", "#c0392b", "#2c8a4b", "#b8860b")
    number = -1
    for at_line, line in enumerate(series):
        number += not (line.dashed and at_line)
        colour = colours[number % len(colours)]
        points = [(x(i), y(v)) for i, v in enumerate(line.values) if v is not None]
        dash = ' stroke-dasharray="5 4"' if line.dashed else ""
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>' for a, b in points]
        at = 44 + 16 * at_line
        parts.append(
            f'<text x="{width - 34}" y="{at}" font-size="12" fill="{colour}" text-anchor="end">{line.name}</text>'
        )
    return "\n".join([*parts, "</svg>"]) + "\n"
