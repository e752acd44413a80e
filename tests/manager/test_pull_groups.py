"""Groups whose operands a switch reads: contexts by collective and root, placed by the manager, and calls of ranks in
real time, with results as NumPy has them whatever happens to packets and to the group.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError
from p4gen.groups.group import Memory
from p4gen.host.transport.clock import MS
from p4gen.host.transport.verbs import Peer
from p4gen.host.transport.wire import Writer
from p4gen.manager.api import GroupSpec, GroupState, HostInfo, ManagerError
from p4gen.manager.ranks.memory import MemoryMember
from p4gen.net.collectives.kinds import Kinds
from p4gen.net.world.faults import DirectionFaults, Fate, Impairment
from p4gen.papers.scin.control import memory_size
from p4gen.papers.scin.headers import FLAG
from p4gen.papers.scin.lab import FACET, Rank
from p4gen.papers.scin.ranks.calls import Drawn
from p4gen.papers.scin.spec import ScinSpec
from p4gen.rocev2.headers import RETH, ImmDt
from p4gen.rocev2.opcodes import Opcode
from p4gen.vocabulary.message import Collective

from .cluster import Cluster
from .offered import activate, begin, offer, right
from .rig import Rig, group

ALL = tuple(f"h{i}" for i in range(4))
SPEC = ScinSpec(lanes=8, contexts=9, waves=2, wave=2, edges=4, ports=4, patience=20)


# --- placed by the manager ---


def pulling(name: str, *ranks: str, size: int | None = None, **fields: Any) -> GroupSpec:
    memory = Memory(0x10_0000, 0x1000, memory_size(len(ranks)) if size is None else size)
    return group(name, *ranks, memories=(memory,) * len(ranks), **fields)


def of_table(rig: Rig, table: str, *names: str) -> list[tuple[int, ...]]:
    """Arguments of the entries of a table."""
    entries = [entry for entry in rig.switches["s0"].holds().entries if entry.table.rpartition(".")[2] == table]
    return [tuple(entry.action.args[name] for name in names) for entry in entries]


def test_a_context_for_each_collective_and_root() -> None:
    rig = Rig("star-4", SPEC)
    barrier = frozenset({Collective.BARRIER})
    with rig.register() as manager:
        for host in ALL:
            manager.register_host(HostInfo(host))
        status = manager.init_group(pulling("g", "h2", "h0", "h1"))
        assert (status.state, status.contexts) == (GroupState.ACTIVE, {"s0": 7})
        rig.check()
        reduces, broadcasts = ([(7, 1 << rank) for rank in range(3)], [(1 << rank, 7) for rank in range(3)])
        assert of_table(rig, "contexts", "sources", "destinations") == [(7, 7), *reduces, *broadcasts]
        places = sorted(place for (place,) in of_table(rig, "flags", "flag_address"))
        assert places == sorted([0x10_0000 + FLAG.size * context for context in range(7)] * 3)
        rig.wait(lambda: len(rig.agents["s0"].ticking) == 7)  # one for each context
        with pytest.raises(ManagerError, match=r"s0: 5 contexts are needed; 2 of 9 are free \(groups\)"):
            manager.init_group(pulling("h", "h1", "h3"))
        manager.init_group(pulling("h", "h1", "h3", collectives=barrier))
        rig.check()
        manager.destroy_group("g")
        manager.init_group(pulling("g", "h2", "h0", "h1"))
        assert sorted(of_table(rig, "contexts", "epoch")) == [(1,)] + [(2,)] * 7
        manager.destroy_group("g")
        manager.destroy_group("h")
        rig.check_empty()


def test_queue_pairs_of_a_rank_are_in_a_row() -> None:
    rig = Rig("star-4", ScinSpec(dtype="mxint8", contexts=10, waves=2, edges=4, ports=4))
    with rig.register() as manager:
        manager.init_group(pulling("g", *ALL))
        manager.init_group(pulling("h", *ALL, collectives=frozenset({Collective.BARRIER})))
        ledger = rig.manager._ledger
        configs = [ledger.rank_config(ledger.records[name], rank) for name in "gh" for rank in range(4)]
        numbers = [qp for config in configs for qp in config.qps]
        assert len(set(numbers)) == len(numbers) == 10 * 4 * 4
        ends = [channel.peer.qp + pair for config in configs for channel in config.channels for pair in range(4)]
        assert len(set(ends)) == len(ends) == len(of_table(rig, "endpoints"))
        manager.destroy_group("g")
        manager.destroy_group("h")
        rig.check_empty()


@pytest.mark.parametrize(
    ("topology", "wanted", "reason"),
    [
        ("star-4", group("g", *ALL), "needs the memory of each rank"),
        ("star-4", pulling("g", *ALL, size=8), "8 bytes of memory; flags take 72"),
        ("star-4", pulling("g", *ALL, slots=16), "16 slots; each context of the program has 4"),
        ("leaf-spine", pulling("g", *ALL), "switches between the ranks; programs of scin serve groups around one"),
    ],
)
def test_what_is_refused(topology: str, wanted: GroupSpec, reason: str) -> None:
    rig = Rig(topology, SPEC.model_copy(update={"ports": 8, "edges": 8}))
    with rig.register() as manager:
        with pytest.raises(ManagerError, match=reason):
            manager.init_group(wanted)
        rig.check_empty()


def test_switches_on_the_way_only_forward() -> None:
    rig = Rig("leaf-spine", SPEC.model_copy(update={"ports": 8, "edges": 8}))
    with rig.register() as manager:
        status = manager.init_group(pulling("g", "h0", "h2", "h4"))  # of three leaves
        assert len(status.tree) == 1
        rig.check()
        manager.destroy_group("g")
        rig.check_empty()


# --- ranks in real time ---


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(SPEC) as found:
        yield found


def drawn(collective: str, seed: int, size: int | None = 512, **options: Any) -> Drawn:
    found: Drawn = FACET.plan(SPEC, 4, collective, size, options).draw(np.random.default_rng(seed))
    return found


def rank_of(member: MemoryMember) -> Rank:
    assert isinstance(member._mine, Rank)
    return member._mine


def test_results_are_numpys_under_faults(cluster: Cluster, seed: int) -> None:
    members = activate(cluster)
    right(begin(members, drawn("allreduce", seed)))
    faults = [Impairment(loss=0.05, duplicate=0.02, reorder=0.05, jitter=3 * MS)]
    for i, nic in enumerate(cluster.nics.values()):
        nic.outgoing = DirectionFaults(random.Random(f"{seed} {i}>"), faults, (), (), Kinds({}, {})).fate
        nic.incoming = DirectionFaults(random.Random(f"{seed} >{i}"), faults, (), (), Kinds({}, {})).fate
    for number, (collective, size, options) in enumerate(FACET.samples(SPEC, 4, 512)):
        values = {name: FACET.collectives[collective][name].read(text) for name, text in options.items()}
        right(begin(members, drawn(collective, seed + number, size, **values)))
    assert [member.report().invocations for member in members] == [9] * 4


def test_a_rank_that_is_late_is_waited_for(cluster: Cluster) -> None:
    members = activate(cluster)
    right(begin(members, drawn("barrier", 1, None)))  # so that all have joined
    late = members.pop()
    call = drawn("allreduce", 2)
    waiting = begin(members, call)
    for member in members:
        with pytest.raises(FailedError, match=r"has not ended in 0\.8 s: other ranks have not called it"):
            begin([member], call, deadline=0.8)[0].result(PATIENCE_S)  # many ticks
    right([*waiting, *begin([late], call)])


def test_ranks_that_call_different_things_are_told(cluster: Cluster) -> None:
    members = activate(cluster)
    refused = "refuses the arrival: ranks call different things, or a call was aborted"
    reason = f"group g: (the switch has ended the call with the status 1, disagreement|call 1: .*{refused})"
    futures = [*begin(members[:3], drawn("allreduce", 1)), *begin(members[3:], drawn("allreduce", 1, 1024))]
    for future in futures:
        with pytest.raises(FailedError, match=reason):
            future.result(PATIENCE_S)
    with pytest.raises(FailedError, match=reason):  # of this generation nothing more is expected
        begin(members, drawn("barrier", 2, None))[0].result(PATIENCE_S)
    cluster.manager.destroy("g")
    right(begin(activate(cluster), drawn("reduce", 3, root=1)))


def test_a_rank_that_falls_silent_ends_the_call(cluster: Cluster) -> None:
    members = activate(cluster)
    right(begin(members, drawn("allreduce", 1)))
    nothing = DirectionFaults(random.Random(1), [Impairment(loss=1.0)], (), (), Kinds({}, {}))
    cluster.nics["h2"].incoming = nothing.fate  # it can still arrive, but no READ reaches it
    futures = begin(members, drawn("allreduce", 2), deadline=5)
    for rank, future in enumerate(futures):
        reason = "has not ended in 5 s" if rank == 2 else "status 3, silence"
        with pytest.raises(FailedError, match=reason):
            future.result(PATIENCE_S)


@pytest.mark.parametrize(
    "fields", [{}, {"completion": "ordered"}, {"dtype": "mxint8", "lanes": 64, "wave": 4}], ids=str
)
def test_progress_counts_all_that_arrives(fields: dict[str, Any]) -> None:
    spec = ScinSpec.model_validate(SPEC.model_dump(mode="json", exclude_unset=True) | fields)
    with Cluster(spec) as cluster:
        members = activate(cluster)
        for number, (collective, size, options) in enumerate(FACET.samples(spec, 4, 1024)):
            values = {name: FACET.collectives[collective][name].read(text) for name, text in options.items()}
            right(begin(members, FACET.plan(spec, 4, collective, size, values).draw(np.random.default_rng(number))))
            for member in members:
                rank = rank_of(member)
                # A flag comes when everything else has come.
                assert rank._arrived() - rank._before == rank._taken, (collective, options)
                assert (rank.progress(), member.progress()) == (1.0, 0.0)


def test_progress_stands_where_packets_no_longer_come(cluster: Cluster) -> None:
    members = activate(cluster)
    none, some = (
        DirectionFaults(random.Random(1), [Impairment(loss=loss)], (), (), Kinds({}, {})).fate for loss in (1.0, 0.0)
    )
    left = [some] * 4

    def incoming(frame: bytes, now: int) -> Fate:
        return (left.pop() if left else none)(frame, now)

    cluster.nics["h2"].incoming = incoming
    futures = begin(members, drawn("allreduce", 1, 4096), deadline=5)
    until(lambda: not left and 0 < members[2].progress() < 1)
    for future in futures:
        with pytest.raises(FailedError):
            future.result(PATIENCE_S)
    assert 0 < members[2].progress() < 1


def test_a_forged_flag_is_told_and_a_late_one_ignored(cluster: Cluster) -> None:
    members = activate(cluster)
    right(begin(members, drawn("allreduce", 1)))
    member = rank_of(members[1])._members
    sync = next(iter(member.values())).pairs[0]
    nic = cluster.nics["h1"]
    responder = nic.nic.pairs[sync.number].responder
    flags, psn = members[1].memory, responder.psn(responder.expected)

    def flag(at: int, call: int) -> bytes:
        peer = sync.peer
        writer = Writer(peer.mac, peer.ip, Peer(nic.nic.mac, nic.nic.ip, sync.number))
        said = FLAG.word.pack(call=call, status=0, reserved=0).to_bytes(FLAG.size)
        body = RETH(flags.address, flags.rkey, len(said)).pack() + ImmDt(call).pack() + said
        return writer.frame(Opcode.WRITE_ONLY_IMM, at, body=body)

    nic.loop.run_there(lambda: nic.nic.receive(flag((psn - 1) % (1 << 24), 77)))
    right(begin(members, drawn("broadcast", 2)))
    nic.loop.run_there(lambda: nic.nic.receive(flag(psn, 77)))
    with pytest.raises(FailedError, match="group g: a flag of call 77, not"):
        begin(members, drawn("allreduce", 3))[1].result(PATIENCE_S)


def test_calls_are_repeated_when_the_group_is_placed_again(cluster: Cluster) -> None:
    members = activate(cluster)
    right(begin(members, drawn("allreduce", 1)))
    cluster.manager.break_group("g", "no path")
    until(lambda: all(member.state is GroupState.BROKEN for member in members))
    waiting = begin(members, drawn("reducescatter", 2, in_place=False))
    cluster.manager.activate()
    right(waiting)
    # One rank says that it has not completed the last call: all repeat it, with the operands of before.
    members[1].completed -= 1
    members[1]._queue.append(members[1]._kept.pop())
    cluster.manager.activate()
    right(begin(members, drawn("allgather", 3)))
    assert cluster.manager.agreed[-1] == (3, {0: 2, 1: 1, 2: 2, 3: 2}, 1)


def test_memory_of_a_call_is_not_left_registered(cluster: Cluster) -> None:
    members = activate(cluster)
    regions = [cluster.nics[host].nic.domain._regions for host in ALL]
    for seed in range(3):
        right(begin(members, drawn("allreduce", seed, in_place=False)))
        assert [len(held) for held in regions] == [3] * 4  # flags, operand, result
    flag = members[0].memory
    domain = cluster.nics["h0"].nic.domain
    assert domain.for_read(flag.rkey, flag.address, flag.size) is None
    cluster.manager.destroy("g")
    until(lambda: not any(regions))


def test_memory_that_was_offered_for_another_rank_is_refused(cluster: Cluster) -> None:
    members = offer(cluster)
    cluster.manager.activate(g=tuple(reversed(cluster.topology.hosts)))
    with pytest.raises(FailedError, match=r"rank 3 of 4 in group g of .*; memory was offered for rank 0 of 4 with"):
        begin(members, drawn("barrier", 1, None))[0].result(PATIENCE_S)
