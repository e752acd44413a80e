"""Composition: modules in the paper's order, and refused where their needs are not met."""

from __future__ import annotations

import dataclasses
import importlib
from typing import Any

import pytest

from p4gen.errors import InputError
from p4gen.papers.epic.spec import EpicSpec, Fold, Mode
from p4gen.program import Size, compose
from p4gen.program.declared import Declared, declared
from p4gen.vocabulary import Icrc, Op, Overflow, Reliability

composing = importlib.import_module("p4gen.program.compose")


def in_order(spec: EpicSpec, *names: str) -> bool:
    """Whether the modules of these names are all there, and stand in this order."""
    return tuple(module.name for module in compose(spec).modules if module.name in names) == names


def test_mode_ii_is_algorithm_1_in_order() -> None:
    spec = EpicSpec()
    assert in_order(spec, "LookupTable", "CheckDuplicate", "AggregateData", "ReplicateData", "TranslateHeader")


def test_mode_iii_is_algorithm_2_in_order() -> None:
    spec = EpicSpec(mode=Mode.III)
    assert in_order(spec, "LookupTable", "CheckRange", "CheckDuplicate", "AggregateData", "ReplicateData", "SendAck")
    # Algorithm 3: an ACK moves psnStart before a NAK becomes a retransmission.
    assert in_order(spec, "ReceiveAck", "StartCursor", "Retransmission", "AdvanceCursor")


def test_modes_share_the_modules_of_the_paper() -> None:
    one, two, three = ({module.name for module in compose(EpicSpec(mode=mode)).modules} for mode in Mode)
    shared = {"LookupTable", "CheckDuplicate", "AggregateData", "RecycleBuffer", "ReplicateData", "TranslateHeader"}
    assert shared <= two & three
    assert {"ReceiveAck", "SendAck", "Retransmission"} <= (one & three) - two
    assert one - three == {"FindPosition", "CheckMessages", "StoreData", "FoldData", "EmitMessage"}


def test_a_mode_ii_program_filters_only_for_hosts_that_go_back_n() -> None:
    assert not compose(EpicSpec()).has("FilterOrder")
    assert compose(EpicSpec(reliability=Reliability.GBN)).has("FilterOrder")


@pytest.mark.parametrize(
    ("mode", "op"), [(Mode.I, Op.SUM), *((mode, op) for mode in (Mode.II, Mode.III) for op in (Op.SUM, Op.DYNAMIC))]
)
@pytest.mark.parametrize("pipelines", [1, 2])
def test_what_a_program_does_not_need_is_not_in_it(mode: Mode, op: Op, pipelines: int) -> None:
    composition = compose(EpicSpec.model_validate({"mode": mode, "op": op, "pipelines": pipelines}))
    fields = {field.name for part in composition.metadata for field in part.fields}
    assert ("numbers" in fields) == (op is Op.DYNAMIC)
    assert ("pipeline" in fields) == (pipelines > 1)
    assert ("pipe" in fields) == mode.augmented
    assert ("first_received" in fields) == mode.stores
    assert "at_root" not in fields


def test_without_icrc_its_modules_are_gone() -> None:
    composition = compose(EpicSpec(icrc=Icrc.IGNORE))
    assert not composition.has("CheckIcrc")
    assert not composition.has("SetIcrc")
    assert "CheckIcrc_bad_icrc" not in {drop.symbol for drop in composition.drops}


def test_two_fields_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(*given: Any) -> Declared:
        found = declared(*given)
        found.tells += [field for field in found.tells if field.name == "slot"]
        return found

    monkeypatch.setattr(composing, "declared", twice)
    with pytest.raises(InputError, match=r"two fields of metadata_t are flow\.slot"):
        compose(EpicSpec())


def test_drop_reasons_are_numbered_from_one_without_gaps() -> None:
    drops = compose(EpicSpec()).drops
    assert [drop.index for drop in drops] == list(range(1, len(drops) + 1))
    assert len({drop.symbol for drop in drops}) == len(drops)


SLOT, ANNOUNCEMENTS = 72 + 64 * 32, 3 * 64
"""Bits: a slot with 64 lanes in Mode II, and what a context remembers of what was announced."""
EDGE = 57 + 32 + 102 + 1 + 17
"""Bits of an edge in Mode III: what it has sent, messages and all, its timer, whether it has had a CNP, its tag."""


def test_state_follows_the_formula() -> None:
    spec = EpicSpec(lanes=64, window=16, message=4, groups=4, fan_in=8)
    # Per context, CombineAcks: an ackPsn with syndrome for each edge, and nodeAckPsn.
    assert compose(spec).state_bits == 4 * 128 * SLOT + 4 * (ANNOUNCEMENTS + 8 * 32 + 24)


def test_state_of_mode_iii_follows_the_formula() -> None:
    spec = EpicSpec(mode=Mode.III, lanes=64, window=16, message=4, groups=4, fan_in=8)
    # Two pipes a context, each with psnStart and maxPsnSent; lastAcked of each edge; the rest is
    # by edge, from 1.
    contexts = 4 * (ANNOUNCEMENTS + 8 * 32 + 2 * (32 + 32))
    assert compose(spec).state_bits == 2 * 4 * 128 * (SLOT + 32) + contexts + (4 * 8 + 1) * EDGE


@pytest.mark.parametrize(("fold", "buffers"), [(Fold.ORDERED, 8), (Fold.ARRIVAL, 1)])
def test_state_of_mode_i_follows_the_formula(fold: Fold, buffers: int) -> None:
    given = {"overflow": Overflow.WRAP} if fold is Fold.ARRIVAL else {}
    spec = EpicSpec.model_validate(
        {"mode": Mode.I, "fold": fold, "lanes": 64, "window": 16, "message": 4, "groups": 4, "fan_in": 8} | given
    )
    # As in Mode III, but for the window of one hop, and a buffer for each edge if it folds in order. In maxPsnSent's
    # place is what a pipe has sent and what it has whole.
    contexts = 4 * (ANNOUNCEMENTS + 8 * 32 + 2 * (32 + 56))
    slots = 2 * 4 * 64 * (72 + 32 + buffers * 64 * 32)
    assert compose(spec).state_bits == slots + contexts + (4 * 8 + 1) * EDGE


def test_mode_iii_has_a_buffer_for_each_edge_if_it_folds_in_order() -> None:
    arriving = EpicSpec(mode=Mode.III, lanes=64, groups=4, fan_in=8)
    ordered = EpicSpec(mode=Mode.III, lanes=64, groups=4, fold=Fold.ORDERED)
    payloads = 2 * 4 * arriving.slots_per_group * 64 * 32
    assert compose(ordered).state_bits - compose(arriving).state_bits == 7 * payloads


def test_every_pipeline_has_a_bank_of_everything() -> None:
    one = EpicSpec(mode=Mode.III, lanes=64, groups=4, fan_in=7)
    four = EpicSpec(mode=Mode.III, lanes=64, groups=4, fan_in=7, pipelines=4)
    # 4 x 7 edges from 1 make 29; a bank has a power of two.
    assert compose(four).state_bits - 4 * compose(one).state_bits == 4 * (32 - 29) * EDGE


def test_sizes_are_products_and_say_so() -> None:
    size = Size.of("groups x fan_in x 2", EpicSpec(groups=3, fan_in=5))
    assert (int(size), str(size), size.values) == (30, "groups x fan_in x 2", (3, 5, 2))
    assert (int(Size()), str(Size())) == (1, "1")


def test_descriptors_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        compose(EpicSpec()).modules[0].name = "Backward"  # type: ignore[misc]
