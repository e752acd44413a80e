"""Collectives through the programs for Tofino, on its model: static groups, ports that are not for hosts, faults."""

from __future__ import annotations

import subprocess
import sys

import pytest

from p4gen.errors import InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import US
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import SimResult, Simulation
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.epic.capabilities import lack
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .runs import star

ARCHS = ("tna", "t2na")


def program(arch: str, **fields: object) -> EpicSpec:
    """A small one: its slots are used again and again."""
    values = {"arch": arch, "lanes": 8, "window": 2, "message": 2, "groups": 8, "fan_in": 8, "ports": 8}
    return EpicSpec.model_validate(values | fields)


def run(arch: str, collective: Collective, faults: Faults, *, size: int = 2048, seed: int = 7) -> SimResult:
    topology = load_topology("star-8")
    return Simulation(SimConfig(topology, program(arch), collective, size, root=3, faults=faults, seed=seed)).run()


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.REDUCE, Collective.REDUCE_SCATTER])
@pytest.mark.sample(2)
def test_results_are_numpys_under_loss_and_duplicates(arch: str, collective: Collective) -> None:
    result = run(arch, collective, Faults((Impairment(loss=0.01), Impairment(duplicate=0.03, jitter=0))))
    assert result.ok, result.errors
    assert result.resent
    assert result.drops["s0 CheckDuplicate.duplicate"]


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("collective", [Collective.BROADCAST, Collective.ALLGATHER])
@pytest.mark.sample(2)
def test_answers_to_broadcasts_are_combined_in_a_tree(arch: str, collective: Collective) -> None:
    spec = program(arch, serves="all")
    trouble = Faults((Impairment(loss=0.01),))
    config = SimConfig(load_topology("tree-3-2"), spec, collective, 2048, root=1, faults=trouble, seed=7)
    result = Simulation(config).run()
    assert result.ok, result.errors
    assert result.resent


@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.BROADCAST])
def test_mode_iii_repairs_what_links_lose(collective: Collective) -> None:
    """Connections end at each switch of a tree, which retransmits what it has sent."""
    spec = program("t2na", mode="III")
    trouble = Faults((Impairment(loss=0.02, duplicate=0.02, reorder=0.02, jitter=20 * US),))
    result = Simulation(
        SimConfig(load_topology("tree-3-2"), spec, collective, 512, root=1, faults=trouble, seed=7)
    ).run()
    assert result.ok, result.errors
    assert {"CheckOrder.gap", "CheckOrder.duplicate"} <= {name.partition(" ")[2] for name in result.drops}


@pytest.mark.parametrize(("arch", "pipes"), [("tna", 4), ("t2na", 2)])
@pytest.mark.sample(1)
def test_nics_find_right_icrcs_in_payloads_of_256_bytes(arch: str, pipes: int) -> None:
    """In a tree, whose switches pass results on. A NIC drops what has a wrong ICRC, so that no call would end."""
    spec = program(arch, lanes=64, payload_pipes=pipes, icrc="set", ports=8)
    faults = Faults((Impairment(loss=0.01),))
    config = SimConfig(load_topology("tree-3-2"), spec, Collective.ALLREDUCE, 8192, faults=faults, seed=7)
    result = Simulation(config).run()
    assert result.ok, result.errors
    assert result.resent


def test_barriers_synchronise() -> None:
    assert run("t2na", Collective.BARRIER, Faults((Impairment(loss=0.05),)), size=0).ok


def test_t2na_may_get_packets_out_of_order_and_late_copies() -> None:
    trouble = Impairment(reorder=0.1, duplicate=0.1, loss=0.01, jitter=60 * US)
    result = run("t2na", Collective.ALLREDUCE, Faults((trouble,)), size=4096)
    assert result.ok, result.errors
    assert result.drops["s0 CheckDuplicate.stale"]


def test_tna_does_not_run_where_packets_overtake_others() -> None:
    for impairment in (Impairment(reorder=0.01), Impairment(duplicate=0.01)):
        with pytest.raises(InputError, match="links must keep the order of packets"):
            run("tna", Collective.ALLREDUCE, Faults((impairment,)))


def test_groups_of_a_tree_use_each_switchs_own_ports() -> None:
    work = (Work((Call(Collective.ALLREDUCE, 512), Call(Collective.REDUCE, 256, root=2))),) * 2
    config = SimConfig(load_topology("tree-3-2"), program("t2na"), work=work, faults=Faults((Impairment(loss=0.02),)))
    simulation = Simulation(config)
    ports = {placed.edge.port for placed in simulation.placement.edges}
    assert ports <= {0, 1, 3, 4, 5}
    assert 3 in ports
    assert simulation.run().ok


@pytest.mark.parametrize(
    ("collective", "sync", "capability"),
    [
        (Collective.BROADCAST, PsnSync.SUBGROUPS, "broadcast"),
        (Collective.ALLGATHER, PsnSync.SUBGROUPS, "broadcast"),
        (Collective.REDUCE, PsnSync.REFINED, "patterns"),
    ],
)
def test_what_programs_lack_is_refused_once_with_the_reason(
    collective: Collective, sync: PsnSync, capability: str
) -> None:
    spec = program("t2na")
    config = SimConfig(star(4), spec, collective, 256, sync=sync)
    with pytest.raises(InputError) as caught:
        Simulation(config)
    (message,) = (diagnostic.message for diagnostic in caught.value.diagnostics)
    assert message == f"group 0: {lack(spec, capability)}"


@pytest.mark.long
def test_the_command() -> None:
    def ended(*words: str) -> tuple[int, str]:
        common = ["--mode", "II", "--engine", "interp", "--lanes", "8", "--size", "1K", "--seed", "1"]
        result = subprocess.run(
            [sys.executable, "-m", "p4gen", "sim", "run", "star-8", *words, *common],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        return result.returncode, result.stderr

    assert ended("--arch", "t2na", "--loss", "1%", "--reorder", "5%")[0] == 0
    assert ended("--arch", "tna", "--loss", "1%", "--duplicate", "5%")[0] == 0
    code, said = ended("--arch", "tna", "--reorder", "5%")
    assert code == 2
    assert "links must keep the order of packets" in said
