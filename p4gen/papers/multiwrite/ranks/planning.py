"""What a call of all ranks is, as users ask for it: how many packets windows must have room for, and its data.

``p4gen sim run`` and labs ask for calls in the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.net.collectives.config import MAX_DATA
from p4gen.papers.multiwrite.ranks.calls import Dispatch, Gather, SharedCall, choose
from p4gen.papers.multiwrite.ranks.combining import SET_BYTES
from p4gen.papers.multiwrite.ranks.experts import Moe
from p4gen.papers.multiwrite.ranks.layout import pieces_of
from p4gen.papers.multiwrite.ranks.options import ALLGATHER, DISPATCH, MOE, Adds, Choice
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary import DType
from p4gen.vocabulary.topology import TopologySpec

MOST_PACKETS: Final = (1 << 16) - 1
"""Packets of a source in a call of which its fence can tell."""
_LANE_BYTES: Final = 4
_SIZE: Final = 1 << 20
_WIDTHS: Final = (32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Plan:
    """A call that all ranks can make, and the room that it takes."""

    title: str
    size: int
    """Bytes: of an AllGather its result, of a dispatch each rank's tokens."""
    packets: int
    """Packets of each source that windows must have room for."""
    held: int
    """Bytes of all ranks' data, and of a window."""
    draw: Callable[[np.random.Generator], SharedCall]


def plan(spec: MultiwriteSpec, ranks: int, collective: str, size: int | None, options: Mapping[str, Any]) -> Plan:
    """A call of this many ranks; ``options`` are the values of all options. Raises ``InputError`` if the program cannot
    serve it."""
    if ranks < 2:
        raise InputError(f"{collective}: at least two hosts are needed")
    if collective == ALLGATHER:
        made = _gather(spec, ranks, size)
    elif collective == DISPATCH:
        made = _dispatch(spec, ranks, size, options)
    else:
        made = _moe(spec, ranks, size, options, apart=options.get("adds") is Adds.SOURCE)
    check_memory(made.title, made.packets * spec.payload * ranks * ranks)
    return made


def check_memory(title: str, size: int) -> None:
    """Raise ``InputError`` if a call takes more bytes of windows than there may be."""
    if size > MAX_DATA:
        raise InputError(f"{title}: all ranks' windows together have {MAX_DATA >> 20:,} MiB at most")


def fitted(spec: MultiwriteSpec, topology: TopologySpec, layers: int = 1) -> MultiwriteSpec:
    """The program with as many edges, contexts and bits as a group of all ranks takes on all its layers of trees,
    unless the spec says how many."""
    ranks = len(topology.rank_hosts)
    degree = max(len(topology.ports[switch]) for switch in topology.switches)
    wanted: dict[str, object] = {
        "receivers": next((width for width in _WIDTHS if width >= max(ranks, spec.receivers)), _WIDTHS[-1]),
        "contexts": max(layers * ranks, spec.contexts),
        "edges": max(degree, spec.edges),
        "ports": max(degree, spec.ports),
    }
    given = spec.model_dump(mode="json", exclude_unset=True)
    return MultiwriteSpec.model_validate(wanted | given)


def block_size(spec: MultiwriteSpec, ranks: int, asked: int | None) -> int:
    """Bytes of each block of an AllGather whose result has as many bytes as asked. Raises ``InputError`` if these are
    no whole packets, or too many."""
    size = _SIZE if asked is None else asked
    unit = ranks * spec.payload
    if size % unit or not size:
        raise InputError(
            Diagnostic(Option("size"), f"allgather of {size} bytes: it has to be a positive multiple of {unit}")
        )
    if size // unit > MOST_PACKETS:
        raise InputError(
            Diagnostic(Option("size"), f"allgather of {size} bytes: fences tell of {MOST_PACKETS:,} packets")
        )
    return size // ranks


def _gather(spec: MultiwriteSpec, ranks: int, asked: int | None) -> Plan:
    block = block_size(spec, ranks, asked)

    def draw(chance: np.random.Generator) -> SharedCall:
        return Gather(chance.integers(0, 256, (ranks, block), np.uint8))

    size = block * ranks
    return Plan(f"{ALLGATHER} of {size:,} bytes, {ranks} ranks", size, block // spec.payload, 2 * size, draw)


def _tokens(collective: str, size: int | None, ranks: int, options: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Tokens of each rank, bytes of each, experts in all and of a token. Raises ``InputError`` if they do not fit."""
    tokens, hidden, experts, top = (int(options[name]) for name in ("tokens", "hidden", "experts", "top"))
    if size is not None:
        raise InputError(Diagnostic(Option("size"), f"is for allgather; {collective} has --tokens and --hidden"))
    if experts % ranks:
        raise InputError(Diagnostic(Option("experts"), f"{experts} experts do not divide among {ranks} ranks"))
    if top > experts:
        raise InputError(Diagnostic(Option("top"), f"a token cannot go to {top} of {experts} experts"))
    return tokens, hidden, experts, top


def _told(tokens: int, packets: int) -> int:
    """The packets of a rank's tokens. Raises ``InputError`` if a fence cannot tell of so many."""
    if packets > MOST_PACKETS:
        raise InputError(
            Diagnostic(Option("tokens"), f"{tokens:,} take {packets:,} packets; a fence can tell of {MOST_PACKETS:,}")
        )
    return packets


def _moe(spec: MultiwriteSpec, ranks: int, size: int | None, options: Mapping[str, Any], *, apart: bool) -> Plan:
    """A layer of a mixture of experts; ``apart``: by plain writes. Raises ``InputError`` if the program cannot serve
    it."""
    tokens, hidden, experts, top = _tokens(MOE, size, ranks, options)
    choice = Choice(options["choice"])
    if spec.combine is None:
        raise InputError(Diagnostic(Option("collective"), f"{MOE}: switches have to add outputs (--combine)"))
    if hidden % _LANE_BYTES:
        raise InputError(Diagnostic(Option("hidden"), f"{hidden} bytes are no whole lanes of {_LANE_BYTES}"))
    packets = _told(tokens, tokens * pieces_of(spec, SET_BYTES + hidden))
    sums = tokens * -(-hidden // spec.payload)
    if sums > spec.slots and not apart:
        what = f"{tokens:,} have {sums:,} packets of sums; a source has {spec.slots} slots (--slots)"
        raise InputError(Diagnostic(Option("tokens"), what))

    def draw(chance: np.random.Generator) -> SharedCall:
        chosen = choose(choice, ranks, tokens, experts, top, chance)
        return Moe.drawn(DType(str(spec.combine)), hidden, chosen, chance, apart=apart)

    what = f"{MOE} of {tokens:,} tokens of {hidden:,} bytes by each of {ranks} ranks, to {top} of {experts}"
    how = "by plain writes" if apart else "switches add"
    held = 2 * packets * spec.payload * ranks
    return Plan(f"{what} experts ({choice}), {how}", tokens * hidden, packets, held, draw)


def _dispatch(spec: MultiwriteSpec, ranks: int, size: int | None, options: Mapping[str, Any]) -> Plan:
    tokens, hidden, experts, top = _tokens(DISPATCH, size, ranks, options)
    choice = Choice(options["choice"])
    packets = _told(tokens, tokens * pieces_of(spec, hidden))

    def draw(chance: np.random.Generator) -> SharedCall:
        data = chance.integers(0, 256, (ranks, tokens, hidden), np.uint8)
        return Dispatch(data, choose(choice, ranks, tokens, experts, top, chance))

    what = f"{DISPATCH} of {tokens:,} tokens of {hidden:,} bytes by each of {ranks} ranks, to {top} of {experts}"
    held = 2 * packets * spec.payload * ranks
    return Plan(f"{what} experts ({choice})", tokens * hidden, packets, held, draw)
