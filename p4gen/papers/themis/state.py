"""The state of connections in Themis-D, decoded from the registers of the generated programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from p4gen.groups.connections import ConnectionHere
from p4gen.model import Model
from p4gen.net.collectives.state import StateReader
from p4gen.papers.themis.control import BUCKETS
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.papers.themis.words import blocked, gap, newest, psns, tail
from p4gen.rocev2.psn import PSN_MASK, diff

IDLE, JUDGED, OVERTAKEN, ARMED = range(4)
"""The program's ``state_t``."""
_NOTHING: Final = "nothing is known of the connection: no request for it has passed"


def queued(spec: ThemisSpec, switch: Model, here: ConnectionHere, near: int) -> list[tuple[int, int]]:
    """The PSN queue of a connection: (PSN, path), the newest first. A place has the low bits of a PSN, which is taken
    to be the one next to ``near``."""
    word, layout, half = tail(spec).unpack(switch.register("tails", here.index)), psns(spec), 1 << (spec.psn_bits - 1)
    if word["epoch"] != here.epoch:
        return []
    if spec.narrow:  # places are counted from the second row on, and do not wrap with the queue
        following = word["newest"] + 1
        filled = min(following - spec.queue_banks, spec.queue)
    else:
        following, filled = word["next"], word["filled"]
    found = []
    for back in range(1, filled + 1):
        row, bank = divmod((following - back) % spec.queue, spec.queue_banks)
        held = layout.unpack(switch.register(f"bank_{bank}.psns", here.index * spec.queue_rows + row))
        ahead = (held["psn"] - near + half) % (2 * half) - half
        found.append(((near + ahead) & PSN_MASK, held["path"]))
    return found


def _path(here: ConnectionHere, psn: int) -> int:
    """The path of a PSN, of connections with equal shares (``PathSet.equal``)."""
    return psn % BUCKETS % here.paths


def _queue(spec: ThemisSpec, switch: Model, here: ConnectionHere, psn: int) -> Iterator[str]:
    found = queued(spec, switch, here, psn)
    if not found:
        yield _NOTHING
        return
    path = _path(here, psn)
    larger = [(held, by) for held, by in found if diff(held, psn) > 0]
    mine = sum(by == path for _, by in larger)
    has = "has" if any(held == psn for held, _ in found) else "has not"
    yield (
        f"PSN {psn:#08x}, by path {path}, {has} passed; larger PSNs that have: {len(larger)}, by its path: {mine} "
        f"(queue of {len(found)} PSNs, the newest {found[0][0]:#08x})"
    )


def _classes(spec: ThemisSpec, switch: Model, here: ConnectionHere, psn: int) -> Iterator[str]:
    path = _path(here, psn)
    index = here.index * (spec.classes if spec.narrow else spec.paths) + path
    known = newest(spec).unpack(switch.register("newest", index))
    if (known["epoch"], known["path_set"]) != (here.epoch, here.path_set):
        yield f"no request has passed by path {path}, that of PSN {psn:#08x}"
        return
    last = gap(spec).unpack(switch.register("gaps", index))
    text = f"PSN {psn:#08x}, by path {path}: the newest of its path is {known['psn']:#08x}"
    if last["start"] != last["end"]:
        text += f"; its newest gap is after {last['start']:#08x}, up to {last['end']:#08x}"
    yield text


def _connection(spec: ThemisSpec, switch: Model, here: ConnectionHere, psn: int) -> Iterator[str]:
    if not spec.filters:
        return
    yield from (_classes if spec.by_class else _queue)(spec, switch, here, psn)
    word = blocked(spec).unpack(switch.register("blocked", here.index))
    state = word.get("state", ARMED) if word["epoch"] == here.epoch else IDLE  # one without is of what is armed
    if spec.narrow and spec.walks and word["epoch"] == here.epoch:
        state = ARMED if state == 1 else JUDGED
    if state == ARMED:
        yield (
            f"the NACK of PSN {word['psn']:#08x} is blocked, until this PSN passes, or a larger one by path "
            f"{word['path']} shows that it is lost"
        )
    elif state in (JUDGED, OVERTAKEN):
        yield f"the NACK of PSN {word['psn']:#08x} is being judged"
    else:
        yield "no NACK is blocked"


FACET: StateReader[ThemisSpec] = StateReader(connection=_connection)
