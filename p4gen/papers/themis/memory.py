"""The memory of Themis (section 4): the paper's formula, and the actual size of a program's state."""

from __future__ import annotations

import math
from typing import Any

from p4gen.papers.themis.spec import ThemisSpec
from p4gen.program.compose import Composition
from p4gen.rocev2.layouts import IPV4_BITS, IPV6_BITS

PATH_BYTES, FLOW_BYTES, ENTRY_BYTES = 2, 20, 1
"""Section 4: an entry of the PathMap, of the flow table, and of a PSN queue."""
QP_BYTES = 3
"""By an IP address and a QP a table finds a connection; there are two such tables."""


def queue_entries(gigabits: float, rtt_us: float, factor: float, mtu: int) -> int:
    """N_entries of section 4: the PSNs on their way over the last hop and back.

    >>> queue_entries(400, 2, 1.5, 1500)
    100
    """
    return math.ceil(gigabits * 1000 * rtt_us * factor / (8 * mtu))


def paper_bytes(paths: int, connections: int, entries: int) -> int:
    """M_total of Eq. 4.

    >>> paper_bytes(256, 100 * 16, queue_entries(400, 2, 1.5, 1500))
    192512
    """
    return PATH_BYTES * paths + (FLOW_BYTES + ENTRY_BYTES * entries) * connections


def figures(composition: Composition) -> dict[str, Any]:
    """The entry ``memory`` of the manifest: bytes of registers and keys, and those of the paper's formula."""
    spec = composition.spec
    assert isinstance(spec, ThemisSpec)
    evidence = (module for module in composition.modules if module.name in ("RecordPsn", "RecordClass"))
    address = IPV6_BITS if spec.roce_ipv6 else IPV4_BITS
    return {
        "registers": math.ceil(composition.state_bits / 8),
        "evidence": math.ceil(sum(module.state_bits for module in evidence) / 8),
        "keys": 2 * (address // 8 + QP_BYTES) * spec.connections,
        "paper": paper_bytes(spec.paths, spec.connections, spec.queue),
        "formula": f"{PATH_BYTES} x paths + ({FLOW_BYTES} + {ENTRY_BYTES} x queue) x connections",
    }


def report(composition: Composition) -> str:
    """The entry as one line of text."""
    found = figures(composition)
    return (
        f"memory: registers {found['registers']:,} B ({found['evidence']:,} B of them evidence), "
        f"keys of connections {found['keys']:,} B; "
        f"section 4 ({found['formula']}): {found['paper']:,} B"
    )
