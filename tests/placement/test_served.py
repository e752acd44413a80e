"""What programs can serve a group with."""

from __future__ import annotations

import pytest

from p4gen.families.load import parse_spec
from p4gen.host.collectives.plan import PsnSync
from p4gen.papers.epic.spec import EpicSpec
from p4gen.plan.placement.served import missing, served
from p4gen.vocabulary.message import Collective

RANKS = ("h0", "h1", "h2", "h3")
REDUCTIONS = frozenset({Collective.ALLREDUCE, Collective.BARRIER, Collective.REDUCE, Collective.REDUCE_SCATTER})


def program(**fields: object) -> EpicSpec:
    found = parse_spec({"family": "epic"} | fields)
    assert isinstance(found, EpicSpec)
    return found


@pytest.mark.parametrize("mode", ["II", "III"])
def test_programs_of_v1model_serve_all_in_one_context(mode: str) -> None:
    assert served(program(mode=mode), RANKS) == (PsnSync.REFINED, frozenset(Collective))


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_mode_ii_of_tofino_serves_reductions_in_subgroups(arch: str) -> None:
    spec = program(mode="II", arch=arch)
    assert served(spec, RANKS) == (PsnSync.SUBGROUPS, REDUCTIONS)
    assert missing(spec, RANKS, PsnSync.SUBGROUPS, REDUCTIONS) == []
    (reason,) = missing(spec, RANKS, PsnSync.SUBGROUPS, [Collective.ALLGATHER])
    assert reason.startswith(f"{arch} programs lack broadcast")


def test_mode_iii_of_tofino_serves_all_in_subgroups() -> None:
    spec = program(mode="III", arch="t2na", lanes=8, fan_in=4)
    assert served(spec, RANKS) == (PsnSync.SUBGROUPS, frozenset(Collective))
