"""The numbers of both chips.

``[S]`` is p4c's Tofino back end at 34b86e9 (Apache-2.0), ``backends/tofino/bf-p4c``; ``[C]`` is the schema of reports
beside it, ``compiler_interfaces/schemas/resources_schema.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

RAM_BITS: Final = 131_072
"""1,024 words of 128 bits [S mau/memories.h: SRAM_DEPTH]."""
RAM_WORDS: Final = 1024
RAM_WIDTH: Final = 128
TCAM_WIDTH: Final = 44
TCAM_ENTRIES: Final = 512
"""[S mau/memories.h: TCAM_DEPTH]."""
RANGE_LINES: Final = 8
"""The most lines of TCAM that match one range [S mau/resource_estimate.h: MULTIRANGE_DISTRIBUTION_LIMIT]."""
WAYS: Final = 4
"""The fewest RAMs of an exact table without identity hash [S mau/resource_estimate.cpp, calculate_way_sizes]."""
INDEX_BITS: Final = 10
"""Bits of a hash that select a line of a RAM; as many bits of the key need not be stored."""
HASH_UNIT: Final = 16
"""Bits of a hash that a unit gives to instructions [C HashDistributionUnitUsage]."""
IMMEDIATE_BITS: Final = 32
"""Action data that fits here stands beside the match; more has RAMs of its own."""
GROUP_BITS: Final = 10
"""Bits of a selector's group beside a pointer: its length and what multiplies it."""
GATEWAY_BITS: Final = 44
"""4 bytes of the crossbar and 12 bits of a hash [S mau/gateway.cpp]."""
PAYLOAD_BITS: Final = 64
"""Bits beside entries that a gateway holds in the place of a table [S mau/payload_gateway.cpp]."""
DEFAULT_SIZE: Final = 512
"""Entries of a table that declares no ``size`` [S mau/table_placement.cpp]."""


@dataclass(frozen=True)
class StageLimits:
    """The resources of one stage."""

    salus: int = 4
    """Meter ALUs, rows 1, 3, 5, 7 [C MeterAluUsage]; stateful ALUs, meters and selectors share them."""
    stats: int = 4
    """Statistics ALUs [C StatisticAluUsage]; counters take them."""
    srams: int = 80
    """8 rows of 10 [S mau/memories.h]."""
    map_rams: int = 48
    """8 rows of 6 [S mau/memories.h]."""
    tcams: int = 24
    """12 rows of 2 [C TcamUsage]."""
    gateways: int = 16
    """8 rows of 2 [C GatewayUsage]."""
    tables: int = 16
    """Logical tables [S mau/memories.h: LOGICAL_TABLES]."""
    vliw: int = 32
    """Words of instructions, one an action [S specs/mau_spec.h; EPIC, Table 17: 33 of 384]."""
    hash_bits: int = 416
    """8 functions of 52 bits [C HashBitUsage]."""
    hash_units: int = 6
    """Units that give a hash to instructions, 2 x 3 [C HashDistributionUnitUsage]."""


@dataclass(frozen=True)
class Chip:
    """The resources of a chip: stages, containers, flags."""

    name: str
    arch: str
    stages: int
    phv_bits: int
    """Bits of all containers that a stage can read."""
    mirror_bits: int
    """Bits of the container for a mirror's session."""
    output_flags: bool
    """Whether the deparser has a flag for each field of intrinsic metadata that it takes."""
    gateway_entries: int
    """Entries of a table that a gateway holds in its place [S specs/device.cpp: ExactShifts, MaxRows]."""
    egress_parser_least: int = 0
    """Bytes that the parser of egress must take; p4c adds headers of padding [S specs/parde_spec.h]."""
    padding: int = 11
    """Bytes of such a header: what a line brings in a cycle [S midend/parser_enforce_depth_req.cpp]."""
    long_branches: bool = False
    """Whether a condition can be remembered over several stages [S specs/device.h: getLongBranchTags]."""
    stage: StageLimits = StageLimits()


TOFINO: Final = Chip(
    "Tofino", "tna", 12, 64 * 8 + 96 * 16 + 64 * 32, 16, output_flags=False, gateway_entries=1, egress_parser_least=65
)
"""12 stages; 64, 96 and 64 containers of 8, 16 and 32 bits [S specs/phv_spec.cpp], without tagalong ones."""
TOFINO2: Final = Chip(
    "Tofino 2", "t2na", 20, phv_bits=80 * 8 + 120 * 16 + 80 * 32, mirror_bits=8, output_flags=True, gateway_entries=4,
    long_branches=True,
)  # fmt: skip
"""20 stages; 48, 72 and 48 normal containers, a third as many mocha and as many dark ones [S specs/phv_spec.cpp]."""

CHIPS: Final = {chip.arch: chip for chip in (TOFINO, TOFINO2)}
