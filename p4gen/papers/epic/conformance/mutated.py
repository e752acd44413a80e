"""The small programs that operators mutate."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial

from p4gen.papers.epic.spec import EpicSpec, Fold, Mode, Served, Verb
from p4gen.papers.epic.tofino import static
from p4gen.papers.epic.tofino.limits import problems
from p4gen.ptf.family import Mutated
from p4gen.vocabulary import DType, Icrc, Reliability


def mutated(like: EpicSpec, reliabilities: Sequence[Reliability], pipelines: Sequence[int]) -> list[Mutated]:
    """The small programs of a spec's family and mode that are mutated.

    An architecture on which groups are static has no programs of some reliabilities and numbers of pipelines. Modules
    that need space are mutated in programs with more slots than a burst has packets, and than may be missing.
    """
    made = []
    mode, small = like.mode, partial(_spec, type(like), arch=like.arch, ip=like.ip)
    for reliability in reliabilities:
        if mode is Mode.I and not reliability.in_order:
            continue  # Mode I has packets in order
        for count in pipelines:
            name, spec = f"{mode} {reliability} {count}", small(mode, reliability, count)
            if static(spec) and any(problems(spec)):
                continue
            if count == 1 and reliability is Reliability.SR and not static(spec):
                ordered = small(mode, reliability, count, fold=Fold.ORDERED, dtype=DType.INT32)
                tests = ("test_folds", "test_reliability") if mode is Mode.II else ("test_iii_stores", "test_iii_order")
                made.append(Mutated(f"{name} ordered", ordered, {"StoreData", "FoldData"}.__contains__, tests))
                written = small(mode, reliability, count, verb=Verb.WRITE, message=4, slots=16)
                module = "test_write" if mode is Mode.II else "test_iii_write"
                made.append(Mutated(f"{name} write", written, {"PlaceResult"}.__contains__, (module,)))
            common = Reliability.SR if mode is Mode.II else Reliability.GBN
            if count == 1 and reliability is common and not static(spec) and not mode.stores:
                locked = small(mode, reliability, count, locks=2)
                made.append(Mutated(f"{name} locks", locked, {"AcquireLease"}.__contains__, ("test_locks",)))
            if mode is Mode.II:
                if static(spec) and reliability is Reliability.SR:
                    broadcasting = small(mode, reliability, count, serves=Served.ALL)
                    tests = ("test_broadcast", "test_broadcast_edges")
                    made.append(Mutated(f"{name} broadcast", broadcasting, {"CombineAcks"}.__contains__, tests))
                    folded = small(mode, reliability, count, payload_pipes=2, icrc=Icrc.SET)
                    made.append(Mutated(f"{name} folded", folded, _OF_FOLDS.__contains__, _FOLDS))
                sacks = "CombineSacks".__eq__, ("test_sacks",)  # all else is as with sr
                made.append(Mutated(name, spec, *(sacks if reliability is Reliability.SACK else ())))
                continue
            roomy = {"StartCursor"} if reliability.in_order else {"StartCursor", "CheckOrder"}
            made.append(Mutated(name, spec, partial(_others, roomy)))
            long = small(mode, reliability, count, slots=256)
            made.append(Mutated(f"{name} long", long, roomy.__contains__, _ORDER))
    return made


def _others(modules: Set[str], module: str) -> bool:
    return module not in modules


_OF_FOLDS = ("SumPayload", "PayloadCrc", "KeepHeaderCrc", "ChangeIcrc", "PatchIcrc")
_FOLDS = ("test_static_fold", "test_tree", "test_aggregation", "test_reliability", "test_control")
_ORDER = ("test_iii_order", "test_iii_selective", "test_iii_holes", "test_iii_generations", "test_iii_phases",
          "test_iii_collectives", "test_iii_pipelines", "test_iii_retransmission", "test_iii_timer",
          "test_iii_late_answers")  # fmt: skip


def _spec(kind: type[EpicSpec], mode: Mode, reliability: Reliability, pipelines: int, **fields: object) -> EpicSpec:
    size = {"lanes": 8, "window": 2, "message": 2, "groups": 4, "ports": 8, "fan_in": 4 if pipelines == 1 else 8}
    # Numbers whose announced code is not 0: a register that reads 0 is not an announcement of theirs.
    what = {"mode": mode, "reliability": reliability, "pipelines": pipelines, "dtype": DType.UINT32}
    return kind.model_validate({**size, **what, **fields})
