"""The loop by hand that handles requests as the program does (``roofline.c``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from p4gen.bench.roofline import Roofline, no_compiler
from p4gen.bench.workload import Workload
from p4gen.groups import NextHop
from p4gen.papers.themis.control import Connection
from p4gen.papers.themis.spec import ThemisSpec

_FLOWS: Final = 256
_FLOW = np.dtype([("source", "<u4"), ("destination", "<u4"), ("qp", "<u4"), ("connection", "<u4")])
_HOP = np.dtype([("destination_mac", "<u8"), ("source_mac", "<u8")])


def why_not(spec: ThemisSpec) -> str | None:
    """Why there is no loop for a program; None when there is one."""
    plain = spec.filters and spec.sprays and not spec.by_class and not spec.narrow
    if not plain or spec.ipv6 or spec.tiers > 2 or spec.pipelines > 1:
        return "the C loop is written for mode themis with a queue of PSNs, two tiers and one pipeline, over IPv4"
    return no_compiler()


def loop(
    work: Workload, folder: Path, connections: Sequence[Connection], hops: Sequence[NextHop], *, delivered: bool
) -> Roofline:
    """The loop for a leaf switch, whose next hops are those of its ports: the host's, and one of each path. Built into
    ``folder``. Raises ``FailedError`` if it does not build."""
    spec = work.spec
    assert isinstance(spec, ThemisSpec)
    config = np.zeros(1, [("flows", _FLOW, _FLOWS), ("hops", _HOP, len(hops))])
    for number, connection in enumerate(connections):
        source, destination = connection.requester, connection.responder
        config["flows"][0, destination.qp % _FLOWS] = source.ip, destination.ip, destination.qp, number
    config["hops"][0] = [(hop.dst_mac, hop.src_mac) for hop in hops]
    constants = {
        "DELIVERED": int(delivered), "CONNECTIONS": len(connections), "PATHS": len(hops) - 1, "QUEUE": spec.queue,
    }  # fmt: skip
    return Roofline(work, folder, Path(__file__).with_suffix(".c"), constants, config)
