"""Why a spec has no program of static groups (``static``)."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final

from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import bridge, folding, spans, tells_stale
from p4gen.rocev2 import layouts as roce
from p4gen.vocabulary import Op

LANE_BITS: Final = (8, 16, 32)
"""Widths of a lane that a stateful ALU works on."""
AROUND: Final = (*roce.ROCE.headers, roce.VLAN, roce.ICRC)
"""The headers around a payload."""
CHECK_STAGES: Final = 6
"""Stages in front of CheckDuplicate in programs that check the ICRC, as p4c places them."""
FOLD_STAGES: Final = 7
"""Stages beside the lanes and their sums in programs that fold payloads and set ICRCs, as p4c places them."""
ALUS: Final = 4
"""Stateful ALUs, and so lanes, of a stage."""


def problems(spec: EpicSpec) -> Iterator[str]:
    """Why the program of a spec cannot be of this form, a sentence each."""
    arch = spec.arch
    if spec.loss_recovery.in_order:
        yield f"{arch}: reliability gbn compares PSNs of 24 bits with a sum, in one access; use sr"
    if spec.loss_recovery.selective_naks:
        yield f"{arch}: reliability sack shifts words of 128 bits, which no stateful ALU does; use sr"
    yield from common_problems(spec)
    yield from _icrc_problems(spec)


def _icrc_problems(spec: EpicSpec) -> Iterator[str]:
    arch = spec.arch
    depth = bridge(spec).size + sum(header.size for header in AROUND) + spec.payload_bytes
    if spec.icrc.right and not folding.patched(spec) and 0 < spec.architecture.egress_bytes < depth:
        yield (
            f"{arch}: icrc {spec.icrc} with {spec.lanes} lanes needs an egress parser of {depth} bytes, as the ICRC "
            f"is behind the payload; it takes {spec.architecture.egress_bytes}: use fewer lanes, or icrc ignore"
        )
    sums = FOLD_STAGES + ceil(spec.pass_lanes / ALUS) + len(spans(spec))
    if folding.chunks(spec) and 0 < spec.architecture.stages < sums:
        yield (
            f"{arch}: icrc {spec.icrc} with {spec.pass_lanes} lanes in a pass needs {sums} stages; there are "
            f"{spec.architecture.stages}: use --lanes 64 --payload-pipes 4, or icrc ignore"
        )
    stages = CHECK_STAGES + (3 if tells_stale(spec) else 2) + ceil(spec.lanes / ALUS) + len(spans(spec))
    if spec.icrc.checked and 0 < spec.architecture.stages < stages:
        yield (
            f"{arch}: icrc {spec.icrc} with {spec.lanes} lanes needs {stages} stages, {CHECK_STAGES} of them before "
            f"any state; there are {spec.architecture.stages}: use fewer lanes, or icrc set"
        )


def common_problems(spec: EpicSpec) -> Iterator[str]:
    """Those of either mode's programs."""
    arch = spec.arch
    if spec.op is Op.DYNAMIC:
        yield f"{arch}: op dynamic needs {2 + len(spec.choices)} actions a lane; a register has at most 4"
    elif not spec.dtype.number_format.integer or spec.lane_bits not in LANE_BITS:
        yield f"{arch}: a stateful ALU has no elements of {spec.dtype}; it has integers of 8, 16 and 32 bits"
    yield from folding.problems(spec)
    yield from _too_wide(spec)
    if spec.pipelines > 1:
        yield (
            f"{arch}: {spec.pipelines} pipelines recirculate every partial result by one port of "
            f"{spec.architecture.recirculation_gbps} Gb/s, and no program for {arch} merges them: use 1, whose groups "
            "are in one pipe"
        )
    if spec.variant is not None:
        yield f"{arch}: there is no variant {spec.variant}"


def _too_wide(spec: EpicSpec) -> Iterator[str]:
    most, each, of_what = spec.architecture.results
    if spec.pass_lanes <= most * each:
        return
    fits = 1 << ((most * each).bit_length() - 1)
    wider = [f"--payload-pipes {fold}" for fold in (2, 4) if spec.lanes <= fits * fold and fold > spec.payload_pipes][
        :1
    ]
    a_pass = " in a pass" if folding.folded(spec) else ""
    yield (
        f"{spec.arch}: {spec.pass_lanes} lanes{a_pass} need {spec.pass_lanes // each} {of_what}; {most} there are."
        f" Use {' or '.join([f'--lanes {fits * spec.payload_pipes}', *wider])}"
    )
