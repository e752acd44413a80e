"""PHV: the bits that the stages of a gress read or write, in containers.

Of a header the bytes count that controls touch: what is parsed and deparsed only fits tagalong containers or CLOTs.
Metadata take whole containers of 8, 16 or 32 bits. That fields with disjoint lives share containers is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from p4gen.arch.tna.resources.access import VALID, Bits, Leaf, Place, join, leaves, width
from p4gen.arch.tna.resources.graph import Gress
from p4gen.p4 import ir
from p4gen.p4.types import Header, strip


def live(gress: Gress, roots: Iterable[Place]) -> dict[str, int]:
    """Bits of containers by the module that declares the fields, of a gress with what its blocks share."""
    touched: Bits = {}
    written: Bits = {}
    for node in gress.nodes:
        join(written, node.accesses.writes)
        for bits in (node.matches, node.accesses.reads, node.accesses.writes):
            join(touched, bits)
        for index in node.instances.values():
            join(touched, index or {})
    found: dict[str, int] = defaultdict(int)
    for place in roots:
        found[f"{gress.name} {_kind(place)}"] += _shared(place, touched)
    for leaf, mask in touched.items():
        if isinstance(leaf[0], ir.Variable) and leaf[0] in gress.declared:
            found[gress.declared[leaf[0]]] += containers(mask.bit_length())
    return {name: bits for name, bits in found.items() if bits}


def containers(bits: int) -> int:
    """Bits of the containers for a field of its own."""
    whole, rest = divmod(bits, 32)
    return 32 * whole + (0 if not rest else 8 if rest <= 8 else 16 if rest <= 16 else 32)


def _kind(place: Place) -> str:
    return str(place.type)


def _shared(place: Place, touched: Bits) -> int:
    """Containers for what of a parameter is touched."""
    total, flags = 0, 0
    headers: dict[str, tuple[int, set[int]]] = {}
    inside = ""
    for path, type_ in leaves(place):
        leaf: Leaf = (place.root, path)
        if path.endswith(VALID):
            flags += leaf in touched
            if isinstance(strip(type_), Header):
                inside = path.removesuffix(VALID)
                headers[inside] = (0, set())
            continue
        wide = width(type_)
        if inside and path.startswith(inside):
            offset, used = headers[inside]
            if leaf in touched:
                used.update(range(offset // 8, (offset + wide + 7) // 8))
            headers[inside] = (offset + wide, used)
        elif leaf in touched:
            total += containers(touched[leaf].bit_length())
    return total + sum(8 * len(used) for _, used in headers.values()) + -(-flags // 8) * 8
