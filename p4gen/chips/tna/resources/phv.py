"""PHV: the bits that the stages of a gress read or write, in containers.

Only those bytes of a header count that controls touch: bytes that are only parsed and deparsed fit tagalong containers
or CLOTs. Metadata take whole containers of 8, 16 or 32 bits. Headers that no packet has together share containers.
Metadata with disjoint lives are counted separately.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import ceil

from p4gen.chips.tna.resources.access import VALID, Bits, Leaf, Place, join, leaves, width
from p4gen.chips.tna.resources.chips import Chip
from p4gen.chips.tna.resources.extracted import Headers
from p4gen.chips.tna.resources.graph import Gress
from p4gen.p4 import ir
from p4gen.p4.types import Header, strip


@dataclass
class _Header:
    """The touched bits of a header's instance."""

    path: str
    width: int = 0
    bits: set[int] = field(default_factory=set)
    """Counted from its first one."""

    @property
    def containers(self) -> int:
        """Bits of the containers that hold it."""
        return 8 * len({bit // 8 for bit in self.bits})


def live(gress: Gress, roots: Iterable[Place], headers: Headers, chip: Chip) -> dict[str, int]:
    """Bits of containers by the module that declares the fields, of a gress with what its blocks share."""
    touched: Bits = {}
    for node in gress.nodes:
        for bits in (node.matches, node.accesses.reads, node.accesses.writes):
            join(touched, bits)
        for index in node.instances.values():
            join(touched, index or {})
    found: dict[str, int] = defaultdict(int)
    for place in roots:
        found[f"{gress.name} {place.type}"] += _shared(place, touched, headers)
    for leaf, mask in touched.items():
        if isinstance(leaf[0], ir.Variable) and leaf[0] in gress.declared:
            found[gress.declared[leaf[0]]] += containers(mask.bit_length())
    found[f"{gress.name} (compiler)"] += _own(gress.name, touched, headers, chip)
    return {name: bits for name, bits in found.items() if bits}


def containers(bits: int) -> int:
    """Bits of the containers for a field of its own."""
    whole, rest = divmod(bits, 32)
    return 32 * whole + (0 if not rest else 8 if rest <= 8 else 16 if rest <= 16 else 32)


def _shared(place: Place, touched: Mapping[Leaf, int], headers: Headers) -> int:
    """Containers for the touched bits of a parameter."""
    total = 0
    found: list[_Header] = []
    for path, type_ in leaves(place):
        mask = touched.get((place.root, path), 0)
        if path.endswith(VALID):
            found += [_Header(path.removesuffix(VALID))] if isinstance(strip(type_), Header) else []
            continue
        wide = width(type_)
        if found and path.startswith(found[-1].path):
            header = found[-1]
            # The first bit of a field is its highest one.
            header.bits.update(header.width + wide - 1 - bit for bit in range(wide) if mask >> bit & 1)
            header.width += wide
        elif mask:
            total += containers(mask.bit_length())
    return total + _overlaid(
        [h for h in found if headers.known is None or h.path.rstrip(".") in headers.known], headers
    )


def _overlaid(found: list[_Header], headers: Headers) -> int:
    """The number of containers for headers. Headers that exclude each other share containers."""
    groups: list[list[_Header]] = []
    for header in sorted(found, key=lambda h: -h.containers):
        path = header.path.rstrip(".")
        home = next((g for g in groups if all(headers.exclusive(path, h.path.rstrip(".")) for h in g)), None)
        if home is None:
            groups.append([header])
        else:
            home.append(header)
    return sum(group[0].containers for group in groups)


def _own(gress: str, touched: Mapping[Leaf, int], headers: Headers, chip: Chip) -> int:
    """The containers that p4c itself adds: flags of validity for the deparser, and intrinsic metadata that it always
    keeps."""
    names = {path.rpartition(".")[2] for _, path in touched}
    flags = len(headers.known or ())
    if gress == "ingress":
        flags += len(names & _OUTPUTS) + 1 if chip.output_flags else 0
        # The session in the first header that a mirror copies, and the number of that header.
        total = chip.mirror_bits + (0 if "mirror_type" in names else 8)
    elif gress == "egress":
        flags += 3 if chip.output_flags else headers.padding(chip)
        total = 0 if "egress_port" in names else 16
    else:
        return 0
    return total + 8 * ceil(flags / 8)


_OUTPUTS = frozenset(
    {"ucast_egress_port", "mcast_grp_a", "mcast_grp_b", "level1_mcast_hash", "level2_mcast_hash", "level1_exclusion_id",
     "level2_exclusion_id", "rid", "drop_ctl", "digest_type", "resubmit_type", "bypass_egress", "qid",
     "copy_to_cpu", "packet_color", "deflect_on_drop", "ingress_cos", "icos_for_copy_to_cpu", "enable_mcast_cutthru"}
)  # fmt: skip
"""Intrinsic metadata for which Tofino 2's deparser has a flag each."""
