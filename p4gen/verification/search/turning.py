"""The images of rows under exchanges of equal parts, in machine code (Numba): see ``symmetry``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from p4gen.compiled.cached import compiled_with
from p4gen.verification.search.events import TURN_AT

Longs = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]


class Turns(NamedTuple):
    """The images of states under turns: see ``symmetry``. Parts are switches, then hosts; places are those of words of
    a row.

    The weight of a row is the sum of the weights of its parts' states, and of those of its links' contents times the
    factors of their places.
    """

    place: Ints
    """By turn and place: the place of the word in the image."""
    image: Ints
    """By turn, part and state: the state of the part that takes its place."""
    weight: Longs
    """By turn, part and state: the weight of the image."""
    content: Ints
    """By turn and content of a link: the content of the link that takes its place."""
    content_weight: Longs
    factor: Longs
    """By place."""


@compiled_with(nogil=True)
def _weight(turns: Any, turn: int, row: Any, parts: int, links: int) -> Any:
    """The weight of a row's image under a turn."""
    weight = np.uint64(0)
    for part in range(parts):
        weight += turns.weight[turn, part, row[part]]
    for link in range(parts, parts + links):
        weight += turns.content_weight[turn, row[link]] * turns.factor[turns.place[turn, link]]
    return weight


@compiled_with(nogil=True)
def orbit(turns: Any, row: Any, parts: int, links: int) -> int:
    """The number of different images of a row under all turns."""
    weight = _weight(turns, 0, row, parts, links)
    same = 0
    for number in range(len(turns.place)):
        same += _weight(turns, number, row, parts, links) == weight
    return len(turns.place) // same


@compiled_with(nogil=True)
def turn(turns: Any, found: Any, at: int, parts: int, links: int, spare: Any) -> None:
    """Replace row ``at`` by its image with the least weight, and note the turn in the event."""
    row = found.rows[at]
    best, least = 0, _weight(turns, 0, row, parts, links)
    for number in range(1, len(turns.place)):
        weight = _weight(turns, number, row, parts, links)
        if weight < least:
            best, least = number, weight
    if best:
        spare[:] = row
        for part in range(parts):
            row[turns.place[best, part]] = turns.image[best, part, spare[part]]
        for link in range(parts, parts + links):
            row[turns.place[best, link]] = turns.content[best, spare[link]]
        found.events[at] |= np.uint32(best << TURN_AT)
