"""A packet ladder: nodes are columns, time runs downwards, packets are arrows. A lost packet ends in a cross with the
reason; a dot at a switch stands for a remark about a packet (``notes``)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from p4gen.host.transport.clock import duration_text
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.watching import Passage

_COLUMN = 150
_TOP = 60
_ROW = 17
_COLOURS = {
    "DATA": "#1f5fa8",
    "CONTROL": "#7a3fa0",
    "ACK": "#2c8a4b",
    "NAK": "#c0392b",
    "RNR": "#c0392b",
    "CNP": "#b8860b",
}


_NOTE = "#c0392b"


class Ladder:
    """A ``Watcher`` that keeps the first ``limit`` passages."""

    def __init__(self, nodes: Sequence[str], kinds: Kinds, limit: int = 400) -> None:
        self._column = {node: i for i, node in enumerate(nodes)}
        self._kinds = kinds
        self._limit = limit
        self._passages: list[Passage] = []
        self._notes: list[tuple[str, int, str]] = []
        self.left_out = 0

    def __call__(self, passage: Passage) -> None:
        """Keep a passage, unless ``limit`` passages are kept."""
        if len(self._passages) < self._limit:
            self._passages.append(passage)
        else:
            self.left_out += 1

    @property
    def full(self) -> bool:
        """Whether no more passages are kept."""
        return len(self._passages) >= self._limit

    def note(self, node: str, time: int, text: str) -> None:
        """Keep a remark about what a node did with a packet that arrived at ``time``."""
        self._notes.append((node, time, text))

    def svg(self) -> str:
        """The drawing. Each time at which a frame is sent or arrives has its own row, so time is in order but not to
        scale."""
        moments = sorted(
            {p.sent for p in self._passages}
            | {p.arrived for p in self._passages if p.arrived is not None}
            | {time for _, time, _ in self._notes}
        )
        row = {time: _TOP + 20 + i * _ROW for i, time in enumerate(moments)}
        width = 120 + _COLUMN * len(self._column)
        height = _TOP + 60 + _ROW * len(moments)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif">',
            '<rect width="100%" height="100%" fill="white"/>',
            _markers(),
        ]
        for node, i in self._column.items():
            x = self._x(i)
            parts.append(f'<text x="{x}" y="{_TOP - 30}" text-anchor="middle" font-weight="bold">{escape(node)}</text>')
            parts.append(f'<line x1="{x}" y1="{_TOP - 20}" x2="{x}" y2="{height - 30}" stroke="#bbb"/>')
        for time, y in row.items():
            parts.append(f'<text x="8" y="{y + 4}" font-size="10" fill="#666">{duration_text(time)}</text>')
        parts += [line for passage in self._passages for line in self._arrow(passage, row)]
        for node, time, text in self._notes:
            x, y = self._x(self._column[node]), row[time]
            parts.append(f'<circle cx="{x}" cy="{y}" r="5" fill="{_NOTE}"/>')
            parts.append(
                f'<text x="{x + 9}" y="{y + 4}" font-size="10" font-weight="bold" fill="{_NOTE}">{escape(text)}</text>'
            )
        if self.left_out:
            parts.append(
                f'<text x="8" y="{height - 10}" font-size="12">{self.left_out} later packets are not shown</text>'
            )
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _arrow(self, passage: Passage, row: dict[int, int]) -> list[str]:
        label = self._kinds.of(passage.frame)
        plain = self._kinds.describe(passage.frame)
        text = label.text if label is not None else plain[1] if plain is not None else f"{len(passage.frame)} bytes"
        kind = label.kind.split("_")[1] if label is not None else plain[0] if plain is not None else ""
        colour = _COLOURS.get(kind, "#555")
        x1, x2 = self._x(self._column[passage.src]), self._x(self._column[passage.dst])
        y1 = row[passage.sent]
        if passage.arrived is None:
            x2, y2 = (x1 + x2) // 2, y1 + _ROW
            cross = f'<path d="M{x2 - 5},{y2 - 5}l10,10m0,-10l-10,10" stroke="#c0392b" stroke-width="2"/>'
            why = f'<text x="{x2 + 9}" y="{y2 + 4}" font-size="10" fill="#c0392b">{escape(passage.reason)}</text>'
            line = f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" stroke-dasharray="4 3"/>'
            return [line, cross, why, _label(x1, y1, x2, y2, text, colour)]
        y2 = row[passage.arrived]
        name = colour.removeprefix("#")
        line = f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}" marker-end="url(#a{name})"/>'
        return [line, _label(x1, y1, x2, y2, text, colour)]

    @staticmethod
    def _x(column: int) -> int:
        return 150 + _COLUMN * column


def _label(x1: int, y1: int, x2: int, y2: int, text: str, colour: str) -> str:
    # A quarter of the way along, so that labels of opposite arrows do not overlap.
    x, y = x1 + (x2 - x1) // 4, y1 + (y2 - y1) // 4 - 3
    return f'<text x="{x}" y="{y}" font-size="10" fill="{colour}" text-anchor="middle">{escape(text)}</text>'


def _markers() -> str:
    heads = "".join(
        f'<marker id="a{colour.removeprefix("#")}" markerWidth="8" markerHeight="8" refX="8" refY="4" orient="auto">'
        f'<path d="M0,0L8,4L0,8z" fill="{colour}"/></marker>'
        for colour in sorted({*_COLOURS.values(), "#555"})
    )
    return f"<defs>{heads}</defs>"
