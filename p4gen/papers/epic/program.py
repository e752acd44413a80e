"""EPIC's programs: the modules of each mode, and the names that their templates use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from p4gen.errors import InputError
from p4gen.layout import Word
from p4gen.papers.epic import memory
from p4gen.papers.epic import tofino as static
from p4gen.papers.epic.capabilities import capabilities
from p4gen.papers.epic.codes import SYNDROMES, OwnOpcode, Traffic
from p4gen.papers.epic.headers import datagrams, headers
from p4gen.papers.epic.locks import code_of, verdicts
from p4gen.papers.epic.spec import EpicSpec, Mode, Variant
from p4gen.papers.epic.tofino import folding, limits
from p4gen.papers.epic.tofino import iii as static_iii
from p4gen.papers.epic.words import code, layouts, names_holes, reorder_window
from p4gen.program.common import Ipv4Checksum
from p4gen.program.compose import Composition, ProgramParts
from p4gen.program.repair import GIVEN_UP, Repair
from p4gen.rocev2.opcodes import Opcode, SyndromeType
from p4gen.vocabulary import DType, Numbers, ticks
from p4gen.vocabulary.folds import Fold
from p4gen.vocabulary.formats import NUMBERS_LAYOUT
from p4gen.vocabulary.message import ROOTS, Lease

IPV4_CHECKSUM = Ipv4Checksum(
    verified="hdr.bth.isValid()",
    acting="ValidatePacket",
    renewed="meta.lookup.kind != kind_t.ORDINARY",
    packets="Packets that the IncEngine readdressed",
)

ARRIVAL = {
    Mode.I: "EPIC 4.2, and Algorithm 2 for its transport",
    Mode.II: "EPIC Algorithm 1",
    Mode.III: "EPIC Algorithm 2",
}
"""What the ingress of each mode implements."""


def _templates(composition: Composition) -> tuple[str, ...]:
    return (
        "epic/preamble.p4.j2",
        *(["shared/floats.p4.j2"] if any(DType.FLOAT32 in name for name in _floats(_spec(composition))) else []),
        *(["shared/halves.p4.j2"] if _spec(composition).dtype.number_format.wide else []),
        "shared/headers.p4.j2",
        "shared/metadata.p4.j2",
        "epic/parser.p4.j2" if static.static(_spec(composition)) else "shared/parser.p4.j2",
        composition.arch.template("checksum"),
    )


def _spec(composition: Composition) -> EpicSpec:
    assert isinstance(composition.spec, EpicSpec)
    return composition.spec


def _ticks_of(spec: EpicSpec) -> dict[str, Any] | None:
    if not spec.wants_ticks:
        return None
    return {"every_us": ticks.EVERY_US, "opcode": f"{ticks.OPCODE:#x}", "port": spec.architecture.cpu_port}


KNOWN_OPCODES = ("SEND_FIRST", "SEND_MIDDLE", "SEND_LAST", "SEND_ONLY", "SEND_ONLY_IMM", "ACKNOWLEDGE", "CNP")
"""Opcodes of datagrams that a program works on if their length is right."""


def _names(composition: Composition) -> dict[str, Any]:
    spec = _spec(composition)
    numbers = spec.numbers
    window = reorder_window(spec)
    hop_by_hop = static.static(spec) and spec.mode.augmented
    return {
        "arrival": ARRIVAL[spec.mode],
        "cited": {"Forward": "Algorithm 1, line 27"},
        "each_edge": "pipelines x bank_edges",
        "ipv4_checksum": IPV4_CHECKSUM,
        "dynamic": numbers is None,
        "reduction": _reduction(spec),
        "counts_overflows": spec.counts_overflows,
        "floats": _floats(spec),
        "numbers": numbers,
        "choices": spec.choices,
        "steps": _steps(spec),
        "fold": Fold(numbers, spec.saturating, spec.counts_overflows) if spec.folds and numbers is not None else None,
        "static": static.static(spec),
        "ordinary": static.bypassing(spec) + (" || meta.path.goes_round == 1" if hop_by_hop else ""),
        "initial": INITIAL | ({"slot_use_t": "slot_use_t.FRESH"} if hop_by_hop else {}),
        "mirrored": static_iii.MIRRORED if hop_by_hop else None,
        "minima": tuple(_minima(spec.fan_in)),
        "tick_port": spec.architecture.cpu_port,
        "recirculation_port": spec.architecture.recirculation_port,
        "given_up_bits": static_iii.GIVEN_UP_BITS,
        "folded": folding.folded(spec),
        "chunks": folding.chunks(spec),
        "patched": folding.patched(spec),
        "copy_visits": folding.copy_visits(spec),
        "ways": list(folding.ways(spec)) if folding.folded(spec) else [],
        "tells_stale": static.tells_stale(spec),
        "combined": static.combined(spec),
        "lane_type": static.lane_type(spec) if static.static(spec) else f"bit<{spec.lane_bits}>",
        "slot_bits": 16 if static.static(spec) and spec.bank_slots <= 1 << 16 else 32,
        "code_bits": code(spec).bits,
        "code_match": "exact" if spec.roots == ROOTS else "ternary",
        "flow_entries": _flow_entries(spec),
        "lanes": range(spec.pass_lanes),
        "spans": static.spans(spec),
        "span_bytes": static.SPAN_BYTES,
        "edges": range(spec.fan_in),
        "augmented": spec.mode.augmented,
        "stores": spec.mode.stores,
        "writes": spec.uses_memory,
        "selective": not spec.loss_recovery.in_order,
        "selective_naks": spec.loss_recovery.selective_naks,
        "names_holes": names_holes(spec),
        "notifies": spec.notifies,
        "variant": spec.variant,
        "Variant": Variant,
        "window": window,
        "halves": [window >> i for i in range(1, window.bit_length())],
        "cursor_session": static_iii.cursor_session(spec) if hop_by_hop else spec.architecture.other_session,
        "given_up": GIVEN_UP,
        "repair": Repair(epoch="meta.invocation.epoch", complete="meta.buffer.complete"),
        "known_opcodes": KNOWN_OPCODES,
        "opcodes": {opcode.name: opcode for opcode in (*Opcode, *OwnOpcode)},
        "syndromes": SYNDROMES,
        "SyndromeType": SyndromeType,
        "Traffic": Traffic,
        "numbers_bits": NUMBERS_LAYOUT.bits,
        "pipelines": spec.pipelines,
        "pipeline_bits": spec.pipelines.bit_length() - 1,
        "ports_per_pipeline": spec.ports // spec.pipelines,
        "slots": spec.pipelines * spec.bank_slots,
        "slots_note": _slots_note(spec),
        "contexts": spec.pipelines * spec.bank_contexts,
        "edge_words": spec.pipelines * spec.bank_edges,
        "banked": partial(_banked, spec),
        "Lease": Lease,
        "code_of": partial(code_of, spec),
        "verdicts": verdicts(spec),
        "locks": spec.pipelines * spec.bank_locks,
    }


INITIAL = {
    "kind_t": "kind_t.ORDINARY",
    "task_t": "task_t.NONE",
    "slot_use_t": "slot_use_t.STALE",
    "form_t": "form_t.RESULT",
}
"""What parsers give fields of metadata, where that is not 0, by type."""


def _flow_entries(spec: EpicSpec) -> int:
    if not static.static(spec):
        return spec.groups * (132 if not spec.locks else 140)
    return spec.groups * spec.fan_in * (static_iii.KINDS if spec.mode.augmented else static.KINDS)


def _minima(count: int) -> Iterator[tuple[int, int]]:
    """The steps of a minimum of numbered values: the right one's is put into the left one's place."""
    step = 1
    while step < count:
        yield from ((left, left + step) for left in range(0, count - step, 2 * step))
        step *= 2


@dataclass(frozen=True)
class _Step:
    """How a lane is reduced if one of ``choices`` is announced: P4 expressions of ``held`` and ``element``."""

    choices: tuple[Numbers, ...]
    result: str
    saturated: str | None
    """The saturated result, if the program saturates."""
    overflowed: str | None = None
    """Whether ``result`` has left the range, if it does not saturate but is infinite then."""


def _steps(spec: EpicSpec) -> list[_Step]:
    """The code of AggregateData for each choice; equal ones are merged."""
    by_text: dict[tuple[str, str | None, str | None], list[Numbers]] = {}
    for choice in spec.choices:
        reduction, dtype = choice.op.reduction, choice.dtype
        integer = dtype.number_format.integer
        saturated = reduction.saturating(dtype) if reduction.saturating and spec.saturating and integer else None
        infinite = spec.counts_overflows and reduction.overflows and not integer
        overflowed = f"{dtype.function('overflowed')}(held, element, result)" if infinite else None
        by_text.setdefault((reduction.combined(dtype), saturated, overflowed), []).append(choice)
    return [_Step(tuple(choices), *text) for text, choices in by_text.items()]


def _floats(spec: EpicSpec) -> tuple[str, ...]:
    """The P4 functions of ``shared/floats.p4.j2`` and ``shared/halves.p4.j2`` that the program calls."""
    folds = (Fold(choice, counts=spec.counts_overflows and choice.op.overflows) for choice in spec.choices)
    return tuple(function for fold in folds for function in fold.functions)


def _banked(spec: EpicSpec, index: str, of: str) -> str:
    """An index of 32 bits into state; with several pipelines, within the bank of the packet's own."""
    if spec.pipelines == 1:
        return index
    words = {"slot": spec.bank_slots, "context": spec.bank_contexts, "edge": spec.bank_edges, "lock": spec.bank_locks}[
        of
    ]
    return f"(bit<32>)(meta.lookup.pipeline ++ ({index})[{words.bit_length() - 2}:0])"


def _slots_note(spec: EpicSpec) -> str:
    pipes = "two pipes of " if spec.mode.augmented else ""
    windows = "" if spec.mode.stores else "2"
    banks = "" if spec.pipelines == 1 else f"{spec.pipelines} banks of "
    own = (
        f"{spec.groups} groups of {pipes}{spec.own_slots}, {spec.locks} blocks"
        if spec.locks
        else f"{spec.groups} groups"
    )
    return f"{banks}{own} of {pipes}{spec.slots_per_group} ({windows}WM = {spec.needed_slots})"


def _reduction(spec: EpicSpec) -> str:
    if spec.numbers is None:
        return "any reduction" if spec.dtype.number_format.integer else f"any reduction, of {spec.dtype}, too"
    found = f"{spec.op.reduction.noun} of {spec.dtype}"
    if spec.folds:
        found += " in the order of ranks"
    if not spec.dtype.number_format.integer:
        return found if spec.reproducible else f"{found} in the order of arrival (not reproducible)"
    how = ("saturating " if spec.saturating else "wrapping ") if spec.op.overflows else ""
    return how + found


REUSE = "EPIC-II and III consist of 7604 and 7400 lines of code, respectively, with 61% reuse.", 0.61
"""EPIC 7.2, Evolvability. J.3 counts host library and controller, too: 4,630 of Mode II's lines."""


def _reuse(before: EpicSpec, after: EpicSpec) -> tuple[str, float] | None:
    return REUSE if (before.mode, after.mode) == (Mode.II, Mode.III) else None


def _flows(spec: EpicSpec) -> tuple[str, str]:
    if static.static(spec):
        found = static_iii.problems(spec) if spec.mode.augmented else limits.problems(spec)
        if messages := [f"{spec.program}: {problem}" for problem in found]:
            raise InputError(*messages)
    which = "iii" if spec.mode.augmented else "ii"
    return f"epic/ingress_{which}.p4.j2", f"epic/egress_{which}.p4.j2"


def _words(spec: EpicSpec) -> dict[str, Word]:
    if not static.static(spec):
        return layouts(spec)
    return (
        static_iii.layouts()
        if spec.mode.augmented
        else {"slots": static.SLOT, "owners": static.OWNER, "acked": static.ACKED}
    )


EXPERIMENT = "Mode III on a Tofino is an experiment: p4gen's model runs it, p4c's back end does not accept it"


def _report(composition: Composition) -> str | None:
    spec = _spec(composition)
    if spec.mode.stores or spec.folds:
        return memory.report(spec)
    return EXPERIMENT if static.static(spec) and spec.mode.augmented else folding.report(spec)


def _figures(composition: Composition) -> dict[str, Any]:
    spec = _spec(composition)
    if spec.mode.stores or spec.folds:
        return {"memory": memory.figures(spec)}
    if not static.static(spec):
        return {}
    return {
        "passes": static_iii.passes() if spec.mode.augmented else folding.passes(spec),
        **({"experiment": EXPERIMENT} if spec.mode.augmented else {}),
        **({"recirculation": asdict(folding.recirculation(spec))} if folding.folded(spec) else {}),
        "capabilities": {each.name: each.reason for each in capabilities(spec)},
    }


FACET: ProgramParts[EpicSpec] = ProgramParts(
    headers=headers,
    datagrams=datagrams,
    flows=_flows,
    templates=_templates,
    names=_names,
    words=_words,
    folders=lambda spec: ("epic/iii",) if static.static(spec) and spec.mode.augmented else (),
    figures=_figures,
    report=_report,
    ticks=_ticks_of,
    reuse=_reuse,
)
