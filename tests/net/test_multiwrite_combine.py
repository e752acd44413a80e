"""Layers of a mixture of experts: sums of switches beside NumPy's, with all faults of links, on stars and trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.net.order import RunOrder
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.multiwrite.ranks.experts import Moe
from p4gen.papers.multiwrite.running import WriteRun
from p4gen.papers.multiwrite.spec import MultiwriteSpec, Repair

from .test_multiwrite_runs import order as small
from .test_multiwrite_runs import passed

EVERYTHING = Faults((Impairment(loss=0.02, reorder=0.05, duplicate=0.05, corrupt=0.02),))
LOSS = Faults((Impairment(loss=0.1),))


def order(topology: str = "star-4", **fields: Any) -> RunOrder[MultiwriteSpec]:
    """A small layer; ``spec`` are fields of the program, ``options`` those of the call."""
    spec = {"slots": 16, "repair": "hop", "combine": "int32"} | fields.pop("spec", {})
    options = {"tokens": "8", "experts": "32", "top": "4"} | fields.pop("options", {})
    return small(topology, "moe", spec=spec, options=options, **{"repeat": 3, **fields})


@pytest.mark.sample(4)
@pytest.mark.parametrize("topology", ["star-4", "star-8", "leaf-spine", "two-servers"])
@pytest.mark.parametrize("faults", [EVERYTHING, LOSS], ids=["everything", "loss of 10 %"])
@pytest.mark.parametrize("combine", ["int32", "float32", "bfloat16"])
def test_sums_are_numpys(topology: str, faults: Faults, combine: str, seed: int) -> None:
    passed(order(topology, spec={"combine": combine}, faults=faults, seed=seed))


@pytest.mark.sample(3)
@pytest.mark.parametrize("choice", ["one", "all", "next", "balanced"])
@pytest.mark.parametrize("fields", [{}, {"place": "append", "replicate": "prune"}], ids=str)
def test_choices(choice: str, fields: dict[str, Any], seed: int) -> None:
    passed(order("leaf-spine", spec=fields, options={"choice": choice}, faults=EVERYTHING, seed=seed))


def test_plain_writes_are_right_too(seed: int) -> None:
    passed(order("leaf-spine", options={"adds": "source"}, faults=EVERYTHING, seed=seed))


def test_switches_relieve_the_links_of_sources() -> None:
    """Eight ranks, and each token to all: a source sends one copy instead of seven, and gets one sum."""
    result = WriteRun(order("star-8", options={"adds": "both", "choice": "all"}, repeat=1)).run()
    assert result.ok
    assert int(result.values["plain_busiest_bytes"] or 0) > 2.5 * int(result.values["busiest_bytes"] or 0)
    assert any("times the bytes" in line for line in result.lines)


def test_a_wrong_sum_is_reported() -> None:
    run = passed(order(repeat=1))
    call = run.calls[0].layer(0)
    assert isinstance(call, Moe)
    member = run.members[2]
    wrong = replace(call, weights=call.weights + 1)
    assert wrong.problem(member).startswith("token 0, element ")
    assert not call.problem(member)


def test_an_output_is_the_sum_of_a_ranks_experts() -> None:
    tokens = np.array([[[10, -3]]], np.int32)
    call = Moe(tokens, np.array([[[1, 0, 1]]]), np.array([[[2, 9, 5]]]))
    assert call.output(1, 0, 0, tokens[0, 0]).tolist() == [70, -21]
    assert call.output(2, 0, 0, tokens[0, 0]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"spec": {"combine": None}}, "moe: switches have to add outputs"),
        ({"options": {"hidden": "202"}}, "202 bytes are no whole lanes of 4"),
        ({"options": {"tokens": "9"}}, "9 have 18 packets of sums; a source has 16 slots"),
        ({"options": {"experts": "33"}}, "33 experts do not divide among 4 ranks"),
    ],
)
def test_what_a_program_cannot_serve_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        WriteRun(order(**fields))


def test_programs_that_combine() -> None:
    with pytest.raises(ValueError, match="repair must be hop"):
        MultiwriteSpec(combine="int32")
    with pytest.raises(ValueError, match="receivers must be 32"):
        MultiwriteSpec(combine="int32", repair=Repair.HOP, receivers=64)
    assert MultiwriteSpec(combine="int32", repair=Repair.HOP).program.endswith("combine_int32_p1024")
