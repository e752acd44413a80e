"""EPIC Algorithm 1: the flow of Mode II."""

from __future__ import annotations

from p4gen.arch import Architecture, Feature, Stage
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program.flow import Apply, Do, Flow, Ordinary, Step, when

OURS = "meta.drop == drop_t.NONE"
DROPPED = "meta.drop != drop_t.NONE"
IN_ITS_BANK = "always in the bank of its pipeline"


def ordinary(arch: Architecture) -> Ordinary:
    """The handling of packets that no endpoint claims, in both modes."""
    arguments = f"hdr, meta, {arch.arguments('inout')}"
    routed = when("hdr.arp.isValid()", Apply("AnswerArp", arguments), otherwise=(Apply("Forward", arguments),))
    return Ordinary((routed,))


def drop(arch: Architecture, stage: Stage, index: str = "(bit<32>)(bit<8>)meta.drop") -> tuple[Do, Do]:
    """A packet with a reason to be dropped is counted, and leaves by no port."""
    return Do(arch.count("drops", index)), Do(arch.drop(stage))


def recirculate(arch: Architecture) -> Step:
    """What goes into another pipeline recirculates."""
    return when("meta.path.goes_round == 1", Do(arch.recirculate(), uses=(Feature.RECIRCULATION,)))


def ingress(spec: EpicSpec, first_slot: str) -> Flow:
    """The handling of a packet on arrival. ``first_slot`` is the P4 expression of slot 0 of its pipeline's bank."""
    several, filters, arch = spec.pipelines > 1, spec.loss_recovery.in_order, spec.architecture
    return Flow(
        (
            Do("meta.drop = drop_t.NONE;"),
            Do("meta.flow.takes_slot = 0;"),
            *((Do("meta.path.goes_round = 0;"),) if several else ()),
            Apply("LookupTable", f"hdr, meta, {arch.arguments('in')}", "line 16"),
            *((Do(f"meta.flow.slot = {first_slot};", IN_ITS_BANK),) if several else ()),
            when("meta.lookup.kind == kind_t.ORDINARY", ordinary(arch), otherwise=_collective(spec, filters=filters)),
            when(DROPPED, *drop(arch, "ingress")),
        )
    )


def _collective(spec: EpicSpec, *, filters: bool) -> tuple[Step, ...]:
    arch = spec.architecture
    track = Apply("TrackInvocation", "hdr, meta")
    check = Apply("CheckDuplicate", "hdr.bth, hdr.ipv4.ecn, meta", "line 20; recycles lazily, line 24")
    return (
        Apply("ValidatePacket", f"hdr, meta, {arch.arguments('in')}"),
        *((Apply("CheckIcrc", "hdr, meta"),) if spec.icrc.checked else ()),
        when(OURS, Apply("FindContext", "hdr, meta")),
        when(OURS, when("meta.lookup.kind != kind_t.CONTROL", track)),
        when(OURS, Apply("ClassifyTraffic", "hdr.bth, meta", "line 16")),
        when(OURS, when("meta.lookup.kind == kind_t.CONTROL", track), note="refused announcements are not stored"),
        when(
            OURS,
            when(
                "meta.flow.task == task_t.AGGREGATE",
                *((Apply("FilterOrder", "hdr.bth, meta"), when(OURS, check)) if filters else (check,)),
                when(
                    OURS,
                    Apply("AggregateData", "hdr.payload, meta", "lines 21 and 23"),
                    Apply("ReplicateData", f"meta, {arch.arguments('inout')}", "lines 22 and 25"),
                ),
                note="line 19",
                otherwise=(
                    when(
                        "meta.flow.task == task_t.REFLECT",
                        Apply("ReflectAck", arch.arguments("inout")),
                        otherwise=_passed_on(arch),
                    ),
                ),
            ),
        ),
    )


def _passed_on(arch: Architecture) -> tuple[Step, ...]:
    return (
        when("meta.flow.takes_slot == 1", Apply("CheckDuplicate", "hdr.bth, hdr.ipv4.ecn, meta")),
        Do("bit<1> combines = meta.invocation.begins;", "a control message: the ACKs start afresh"),
        when(
            "meta.flow.task == task_t.COMBINE",
            when("meta.lookup.kind == kind_t.ANSWER", Do("combines = 1;")),
        ),
        when("combines == 1", Apply("CombineAcks", "hdr, meta")),
        when(OURS, Do(arch.multicast("meta.flow.out_group"), "line 25", (Feature.MULTICAST,))),
    )


def egress(spec: EpicSpec) -> Flow:
    """The handling of each copy of a packet in egress; ordinary traffic passes unchanged."""
    arch = spec.architecture
    sealed = (Apply("SetIcrc", "hdr"),) if spec.icrc.right else ()
    round_again = (recirculate(arch),) if spec.pipelines > 1 else ()
    leaves = departure(arch, *sealed, *round_again, gone=drop(arch, "egress"))
    return Flow((when("meta.lookup.kind != kind_t.ORDINARY", *leaves, otherwise=(Ordinary(),)),))


def departure(arch: Architecture, *steps: Step, gone: tuple[Do, Do]) -> tuple[Step, ...]:
    """What a copy that is not ordinary traffic goes through in egress: TranslateHeader, ``steps``, and ``gone`` if it
    has a reason to be dropped."""
    translate = Apply("TranslateHeader", f"hdr, meta, {arch.arguments('in', 'egress')}", "line 26")
    return (translate, *steps, when(DROPPED, *gone))
