"""Groups that share slots by locks in the switches: calls over the tree or the ring, with right results in any case."""

from __future__ import annotations

import pytest

from p4gen.errors import InputError
from p4gen.host.collectives.leased import LeasedInvocation
from p4gen.host.collectives.plan import PsnSync
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.leased import LeasedSimulation
from p4gen.papers.epic.spec import Fold, Mode
from p4gen.vocabulary import DType, Op, Reliability
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .runs import all_six, tiny, trouble

MODES = [(Mode.II, None), (Mode.III, None), (Mode.III, Reliability.SR)]
CALLS = 12


def contending(simulation: LeasedSimulation) -> tuple[int, int]:
    """Run it; the numbers of granted and of refused calls, about which all ranks of a group agree."""
    result = simulation.run()
    assert result.correct, (result.errors, result.stuck)
    for group in simulation.groups:
        made = [[each.granted for each in rank.made if isinstance(each, LeasedInvocation)] for rank in group.ranks]
        assert all(each == made[0] for each in made)
    assert not any(word for switch in simulation.network.switches.values() for word in switch.register_cells(LOCKS)), (
        "a lock is left"
    )
    return int(result.values["granted"] or 0), int(result.values["refused"] or 0)


LOCKS = "IncIngress.acquire_lease.locks"


@pytest.mark.parametrize("loss", [0.0, 0.02], ids=["", "losses"])
@pytest.mark.parametrize(("mode", "reliability"), MODES)
@pytest.mark.parametrize("topology", ["star-4", "tree-3-2"])
def test_groups_have_the_tree_in_turn(topology: str, mode: Mode, reliability: Reliability | None, loss: float) -> None:
    """The slots are one group's; the other's calls meanwhile go over its ring."""
    program = tiny(mode=mode, reliability=reliability, groups=2, locks=1)
    config = SimConfig(
        load_topology(topology),
        program,
        work=tuple(Work((Call(size=400 * (1 + group)),) * CALLS) for group in range(2)),
        faults=trouble(loss=loss, duplicate=loss, reorder=loss),
        seed=5,
    )
    granted, refused = contending(LeasedSimulation(config))
    assert granted
    assert refused
    assert granted + refused == 2 * CALLS


@pytest.mark.parametrize("mode", [Mode.II, Mode.III], ids=str)
def test_all_collectives(mode: Mode) -> None:
    program = tiny(mode=mode, groups=2, locks=1)
    config = SimConfig(
        load_topology("tree-3-2"),
        program,
        work=(Work(all_six(4)),) * 2,
        sync=PsnSync.REFINED,
        faults=trouble(loss=0.02),
        seed=3,
    )
    assert all(contending(LeasedSimulation(config)))


@pytest.mark.parametrize(
    "fields",
    [
        {"op": Op.MIN, "dtype": DType.UINT32},
        {"op": Op.MAX, "dtype": DType.FLOAT32},
        {"op": Op.DYNAMIC},
        {"dtype": DType.FLOAT16, "fold": Fold.ORDERED, "fan_in": 4},
        {"pipelines": 2},
        {"locks": 2, "groups": 4},
    ],
    ids=str,
)
def test_verdicts_of_all_numbers(fields: dict[str, object]) -> None:
    program = tiny(**({"mode": Mode.II, "groups": 2, "locks": 1} | fields))
    work = (Work((Call(size=256),) * 6),) * (4 if program.locks > 1 else 2)
    assert all(contending(LeasedSimulation(SimConfig(load_topology("star-4"), program, work=work, seed=1))))


def test_subgroups_have_no_common_lock() -> None:
    program = tiny(mode=Mode.II, groups=2, locks=1)
    with pytest.raises(InputError, match="one queue pair for all collectives"):
        LeasedSimulation(SimConfig(load_topology("star-4"), program, Collective.REDUCE))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"mode": "I"}, "modes II and III"),
        ({"arch": "tna", "lanes": 8}, "stateful ALU"),
        ({"locks": 3, "groups": 2}, "3 blocks for 2 groups"),
        ({"mode": "III", "variant": "no-nak"}, "sound designs"),
    ],
    ids=str,
)
def test_programs_without_locks(fields: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        tiny(**({"mode": Mode.II, "locks": 1, "groups": 2} | fields))
