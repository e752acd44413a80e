"""The queue of PSNs where registers have few actions: a pass of a NACK reads one row of it, and the next pass compares
that row. What passes tell each other is a header in front of the NACK, which goes round by a port that recirculates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from p4gen.layout import Header, HeaderField
from p4gen.papers.themis.spec import ThemisSpec

MOST_BANKS: Final = 8
"""PSNs that a pass takes along: 32 bytes of fields. Four registers are accessed in a stage."""
PSN_BITS: Final = 24
"""Of each PSN in the queue: all."""
_LARGER, _SAME_PATH, _ARRIVED = "LARGER", "SAME_PATH", "ARRIVED"


def rows_of(spec: ThemisSpec) -> int:
    """Words of a bank: a connection's rows have an index of whole bits."""
    return spec.connections * spec.queue_rows


def problems(spec: ThemisSpec, most: int) -> Iterator[str]:
    """Why a queue does not fit; a register has at most ``most`` words."""
    arch = spec.arch
    if spec.variant is not None:
        yield f"{arch}: variant {spec.variant} is a design of v1model's queue"
    if spec.psn_bits != PSN_BITS:
        yield f"{arch}: a queue keeps {PSN_BITS} bits of each PSN: leave psn_bits out"
    if spec.queue_banks > MOST_BANKS:
        yield f"{arch}: queue_banks {spec.queue_banks}: a NACK takes at most {MOST_BANKS} PSNs along"
    if rows_of(spec) > most:
        yield (
            f"{arch}: {spec.connections} connections of {spec.queue_rows} rows have {rows_of(spec)} words in a bank; "
            f"a register has at most {most}"
        )


def row_entries(banks: int) -> tuple[str, ...]:
    """The entries of JudgeNack's table ``rows``: what a row adds to what was ``seen`` in the newer ones. The key has
    1, what was seen, then what the banks have, the newest first. The first entry that matches counts.

    >>> row_entries(1)[0]
    '(1, ARRIVED &&& ARRIVED, LARGER &&& LARGER): note(LATE);'
    """
    seen, rows = banks, range(banks)  # ``seen`` is newer than every bank

    def entry(where: dict[int, str], note: str) -> str:
        keys = (f"{where[place]} &&& {where[place]}" if place in where else "_" for place in (seen, *reversed(rows)))
        return f"(1, {', '.join(keys)}): note({note});"

    def after(bank: int, what: str, note: str) -> Iterator[str]:
        for newer in range(bank + 1, seen + 1):
            yield entry({newer: what, bank: _ARRIVED}, note)

    both, all_ = f"{_ARRIVED} | {_LARGER}", f"{_ARRIVED} | {_LARGER} | {_SAME_PATH}"
    whole = (f"(1, {value}{', _' * banks}): note({value});" for value in (all_, both, _ARRIVED))
    places = (seen, *rows)
    return (
        *(entry({newer: _ARRIVED, bank: _LARGER}, "LATE") for bank in rows for newer in range(bank + 1, seen + 1)),
        *whole,
        *(line for bank in rows for line in after(bank, _SAME_PATH, all_)),
        *(line for bank in rows for line in after(bank, _LARGER, both)),
        *(entry({bank: _ARRIVED}, _ARRIVED) for bank in rows),
        *(entry({place: _SAME_PATH}, f"{_LARGER} | {_SAME_PATH}") for place in places),
        *(entry({place: _LARGER}, _LARGER) for place in places),
    )


def headers(spec: ThemisSpec) -> tuple[Header, ...]:
    """What passes tell each other: what the pass before has told, what the next one is told, and what a NACK that this
    switch has made has in its place."""
    fields = (
        HeaderField("walking", 8, "1"),
        HeaderField("seen", 8, "what the rows so far have told"),
        HeaderField("here", 8, "which PSNs of the row count"),
        HeaderField("last", 8, "1: there is no row before it"),
        HeaderField("port", 16, "where the NACK leaves, if it does"),
        HeaderField("mine", 32, "the NACK's PSN and its path"),
        HeaderField("row", 32, "the place of the row before it"),
        *(HeaderField(f"held_{bank}", 32, "a PSN of the row") for bank in range(spec.queue_banks)),
    )
    return (
        Header(
            "walk", "What the pass before tells of a NACK, with the row of the queue that it read", fields, noted=True
        ),
        Header("next", "The same, for the next pass", fields, noted=True),
        Header("mark", "What a NACK that this switch has made has in its place", fields[:1], noted=True),
    )
