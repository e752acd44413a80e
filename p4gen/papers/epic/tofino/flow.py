"""EPIC Algorithm 1 in programs of static groups (``static``): the flow of ``static_modules``."""

from __future__ import annotations

from p4gen.arch import Architecture, Feature, Stage
from p4gen.papers.epic import flow_ii
from p4gen.papers.epic.flow_ii import DROPPED, OURS, ordinary
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino import ORDINARY, folding
from p4gen.program.flow import Apply, Do, Flow, Step, when


def drop(arch: Architecture, stage: Stage) -> tuple[Do, Do]:
    """``flow_ii.drop``, with the counter's index as TNA has it."""
    return flow_ii.drop(arch, stage, "(bit<8>)meta.drop")


def ingress(spec: EpicSpec) -> Flow:
    """The handling of a packet on arrival."""
    arch = spec.architecture
    aggregate = (
        Apply("CheckDuplicate", "meta", "line 20; recycles lazily, line 24"),
        Apply("AggregateData", "hdr.payload, meta", "lines 21 and 23"),
        *((_fold(arch),) if folding.folded(spec) else ()),
        when(
            f"{OURS} && meta.fold.goes_on == 0" if folding.folded(spec) else OURS,
            Apply("ReplicateData", f"meta, {arch.arguments('inout')}", "lines 22 and 25"),
        ),
    )
    reflect = when(
        "meta.flow.task == task_t.REFLECT",
        Apply("ReflectAck", arch.arguments("inout")),
        otherwise=(
            when(
                "meta.flow.task == task_t.REPLICATE",
                Do(arch.multicast("meta.flow.out_group"), "line 25", (Feature.MULTICAST,)),
                otherwise=(Do("meta.drop = drop_t.ClassifyTraffic_no_flow;"),),
            ),
        ),
    )
    answers = _unless_lost(spec, reflect)
    collective = (
        *((Apply("CheckIcrc", "hdr, meta"),) if spec.icrc.checked else ()),
        Apply("ClassifyTraffic", "hdr, meta", "line 16"),
        when(OURS, when("meta.flow.task == task_t.AGGREGATE", *aggregate, note="line 19", otherwise=(answers,))),
        *((Apply("SumPayload", "hdr.payload, meta"),) if spec.icrc.right else ()),
    )
    return Flow(
        (
            Apply("ValidatePacket", f"hdr, meta, {arch.arguments('in')}"),
            Apply("LookupTable", f"hdr, meta, {arch.arguments('in')}", "line 16"),
            when(
                ORDINARY,
                Do("meta.drop = drop_t.NONE;", "whatever ValidatePacket found"),
                _unless_lost(spec, ordinary(arch)),
                otherwise=collective,
            ),
            when(DROPPED, *drop(arch, "ingress")),
        )
    )


def _fold(arch: Architecture) -> Step:
    fold = Apply("FoldPayload", f"hdr, meta, {arch.arguments('inout')}")
    return when("meta.lookup.kind == kind_t.DATA", fold)


def _unless_lost(spec: EpicSpec, step: Step) -> Step:
    """What comes from another pipe is for a slot, or its group has gone."""
    if not folding.folded(spec):
        return step
    return when("hdr.fold.isValid()", Do("meta.drop = drop_t.FoldPayload_lost;"), otherwise=(step,))


def egress(spec: EpicSpec) -> Flow:
    """The handling of each copy of a packet in egress, which ordinary traffic bypasses."""
    arch = spec.architecture
    sealed = (Apply("SetIcrc", "hdr, meta"),) if spec.icrc.right else ()
    return Flow(flow_ii.departure(arch, *sealed, gone=drop(arch, "egress")))
