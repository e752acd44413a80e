"""Results that switches write to ranks' memory (EPIC footnote 5): the six collectives, and memory that is gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from p4gen.errors import InputError
from p4gen.host.collectives.commlib import Communicator
from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.host.transport.verbs import Status
from p4gen.net.collectives.config import SimConfig, Work
from p4gen.net.collectives.simulation import Simulation, simulate
from p4gen.papers.epic.spec import Mode
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .runs import all_six, star, tiny, trouble

ROUGH = trouble(loss=0.03, reorder=0.1, duplicate=0.05, corrupt=0.02)
KINDS = [
    (Mode.I, None),
    (Mode.II, None),
    (Mode.II, Reliability.GBN),
    (Mode.III, Reliability.GBN),
    (Mode.III, Reliability.SR),
    (Mode.III, Reliability.SACK),
]


@pytest.mark.parametrize("topology", ["star-4", "tree-3-2"])
@pytest.mark.parametrize(("mode", "reliability"), KINDS)
def test_results_are_numpys_whatever_links_do(
    mode: Mode, reliability: Reliability | None, topology: str, seed: int
) -> None:
    # Messages of one, two and three packets, in a ring that calls go round several times.
    spec = tiny(mode=mode, reliability=reliability, verb="write", window=2, message=3)
    found = load_topology(topology)
    calls = all_six(len(found.rank_hosts)) * 3
    config = SimConfig(found, spec, work=(Work(calls),), faults=ROUGH, seed=seed, initial_psn=0xFFFFF0, engine="jit")
    result = simulate(config)
    assert result.ok, (seed, result.errors, result.diagnosis and result.diagnosis.lines())


@pytest.mark.parametrize("mode", [Mode.II, Mode.III])
def test_groups_of_the_same_hosts_have_memory_of_their_own(mode: Mode, seed: int) -> None:
    work = (Work(all_six(4)), Work(all_six(4)))
    spec = tiny(mode=mode, verb="write")
    run = Simulation(SimConfig(star(4), spec, work=work, seed=seed, flow=Flow.ACKS, engine="jit"))
    offered = [memory for group in run.groups for memory in group.placed.request.memories[:1]]
    assert offered[0].address + offered[0].size <= offered[1].address
    assert run.run().ok


@pytest.mark.parametrize("mode", Mode)
def test_a_key_that_is_gone_ends_the_call(mode: Mode) -> None:
    """The rank's NIC refuses the WRITE; nothing of the memory changes, and the call fails with the reason."""
    run = Simulation(SimConfig(star(3), tiny(mode=mode, verb="write"), size=512, engine="jit"))
    member, nic = run.groups[0].ranks[1].member, run.network.nics["h1"]
    assert isinstance(member, Communicator)
    memory = member.memory
    assert memory is not None
    nic.domain.deregister(memory)
    again = nic.domain.register(memory.buffer)  # under another key
    assert again.rkey != memory.rkey
    assert not run.run().ok
    assert run.groups[0].ranks[1].problem == Status.ACCESS_VIOLATION
    assert bytes(memory.buffer) == bytes(len(memory.buffer))


@pytest.mark.parametrize("mode", [Mode.II, Mode.III])
def test_an_address_beyond_the_memory_is_never_written(mode: Mode) -> None:
    """A switch that has another rank's larger memory in mind is refused by the NIC."""
    spec = tiny(mode=mode, verb="write")
    run = Simulation(SimConfig(star(3), spec, size=512, engine="jit"))
    entry = next(each for each in run.placement.switches["s0"].entries if each.table == "memories")  # rank 0's
    args = dict(entry.action.args) | {"base": entry.action.args["base"] + spec.channel_memory}
    run.network.switches["s0"].modify(replace(entry, action=replace(entry.action, args=args)))
    assert not run.run().ok
    assert run.groups[0].ranks[0].problem == Status.ACCESS_VIOLATION


def test_refined_synchronisation_is_refused() -> None:
    work = (Work((*all_six(3),)),)
    with pytest.raises(InputError, match="sync subgroups"):
        Simulation(SimConfig(star(3), tiny(verb="write"), work=work, sync=PsnSync.REFINED))
    with pytest.raises(InputError, match="sync subgroups"):
        Simulation(SimConfig(star(3), tiny(verb="write"), Collective.ALLREDUCE, sync=PsnSync.REFINED))
