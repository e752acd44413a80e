"""A topology as SVG."""

from __future__ import annotations

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
