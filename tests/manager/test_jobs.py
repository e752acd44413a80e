"""Jobs: the manager chooses hosts and trees of groups together, all or nothing, whatever fails and whoever asks."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from p4gen.manager.access.tenants import load_tenants
from p4gen.manager.api import AgentError, Code, GroupSpec, GroupState, JobGroup, JobSpec, JobStatus, ManagerError
from p4gen.plan.flow.jobs import grid
from p4gen.vocabulary.topology import load_topology

from .rig import Rig, group, small
from .test_manager import refused


def parallel(name: str, tp: int, dp: int, placement: str = "packed", **fields: object) -> JobSpec:
    """A job with TP groups and DP groups."""
    found = (each for some in grid(tp, dp) for each in some)
    groups = tuple(JobGroup(GroupSpec(each.name, (), **fields), each.ranks) for each in found)  # type: ignore[arg-type]
    return JobSpec(name, tp * dp, groups, placement)


def one(name: str, size: int, placement: str = "packed", **fields: object) -> JobSpec:
    """A job with one group of all."""
    world = GroupSpec("world", (), **fields)  # type: ignore[arg-type]
    return JobSpec(name, size, (JobGroup(world, tuple(range(size))),), placement)


def leaves(hosts: Sequence[str], topology: str) -> set[str]:
    found = load_topology(topology)
    return {found.ports[host][0].other(host) for host in hosts}


def test_a_job_has_its_hosts_and_groups_until_it_ends() -> None:
    rig = Rig("fat-tree-k4", small())
    with rig.register() as manager:
        status = manager.init_job(parallel("llama", 2, 3))
        assert [each.spec.name for each in status.groups] == [
            *("llama:tp0.0", "llama:tp0.1", "llama:tp0.2"),
            *("llama:dp0.0", "llama:dp0.1"),
        ]
        assert len(set(status.hosts)) == 6
        for each in status.groups:
            assert each.state is GroupState.ACTIVE
            assert set(each.tree) == set(each.contexts)
        assert status.groups[1].spec.ranks == status.hosts[2:4]
        assert status.groups[3].spec.ranks == status.hosts[::2]
        assert len(leaves(status.hosts, "fat-tree-k4")) == 3, "TP groups are below one switch each"
        rig.check()
        assert manager.jobs() == [manager.job("llama")] == [status]
        refused(Code.EXISTS, manager.init_job, one("llama", 2))
        manager.destroy_job("llama")
        refused(Code.NOT_FOUND, manager.job, "llama")
        refused(Code.NOT_FOUND, manager.destroy_job, "llama")
        rig.check_empty()
        assert manager.init_job(one("all", 16)).hosts == rig.topology.hosts


@pytest.mark.parametrize(("placement", "racks"), [("packed", 2), ("spread", 4)])
def test_a_placement_says_how_many_racks_a_job_has(placement: str, racks: int) -> None:
    rig = Rig("fat-tree-k4", small())
    with rig.register() as manager:
        status = manager.init_job(one("j", 4, placement))
        assert len(leaves(status.hosts, "fat-tree-k4")) == racks
        (world,) = status.groups
        assert len(world.tree) == (3 if placement == "packed" else 1)  # leaves with one rank only forward


def test_hosts_in_use_and_hosts_that_cannot_be_reached_are_left_out() -> None:
    rig = Rig("leaf-spine", small())
    with rig.register(["spine0", "spine1", "leaf0", "leaf1", "leaf2"]) as manager:
        manager.init_group(group("g", "h0", "h1"))
        manager.init_job(JobSpec("idle", 1))
        manager.report_links("leaf1", {3: False})
        down = rig.topology.ports["leaf1"][3].name
        reason = refused(Code.NO_ROOM, manager.init_job, one("j", 3))
        assert reason == (
            f"job j: 3 hosts are needed; 2 are free; 3 have jobs or groups; "
            f"1 cannot be used: link {down} is down; 2 cannot be used: switch leaf3 is not registered"
        )
        assert manager.init_job(one("j", 2)).hosts == ("h4", "h5")
        manager.destroy_group("g")
        manager.report_links("leaf1", {3: True})
        rig.register(["leaf3"])
        assert len(manager.init_job(one("more", 5)).hosts) == 5
        rig.check()


def test_cordoned_nodes_are_left_alone(tmp_path: Path) -> None:
    rig = Rig("leaf-spine", small(), tmp_path / "groups.db")
    with rig.register() as manager:
        before = manager.init_group(group("g", "h2", "h6"))
        (root,) = before.tree
        other = {"spine0": "spine1", "spine1": "spine0"}[root]
        for node in (root, "leaf0", "h2"):
            manager.cordon(node, on=True)
        assert manager.group("g") == before, "what is there stays"
        assert set(manager.move_group("g").tree) == {other}
        manager.destroy_group("g")
        refused(Code.NOT_FOUND, manager.cordon, "h99", on=True)
        rig.kill()
    with rig.again() as manager:
        assert manager.cordoned() == sorted([root, "leaf0", "h2"])
        status = manager.init_job(one("j", 5))
        assert set(status.hosts) == {"h3", "h4", "h5", "h6", "h7"}
        assert root not in status.groups[0].tree
        reason = refused(Code.NO_ROOM, manager.init_job, one("k", 1))
        assert "2 cannot be used: leaf0 is cordoned; 1 cannot be used: h2 is cordoned; 5 have jobs" in reason
        for node in manager.cordoned():
            manager.cordon(node, on=False)
        assert set(manager.init_job(one("k", 3)).hosts) == {"h0", "h1", "h2"}
        assert manager._store.counts()["cordoned"] == 0
        rig.check()


def test_a_group_below_a_cordoned_switch_is_repaired() -> None:
    rig = Rig("leaf-spine", small())
    with rig.register() as manager:
        (root,) = manager.init_group(group("g", "h0", "h2")).tree
        manager.cordon("leaf0", on=True)
        manager.resize_group("g", 4)
        number = next(n for n, link in enumerate(rig.topology.ports["leaf1"]) if link.other("leaf1") == root)
        manager.report_links("leaf1", {number: False})
        rig.wait(lambda: manager.group("g").state is GroupState.ACTIVE and root not in manager.group("g").tree)
        reason = refused(Code.UNREACHABLE, manager.init_group, group("new", "h1", "h3"))
        assert "switch leaf0 is cordoned" in reason
        rig.check()


def test_a_job_goes_where_switches_have_room_for_its_groups() -> None:
    """The fullest rack that has room would be first, but its switch has no context left."""
    rig = Rig("leaf-spine", small(groups=1))
    with rig.register() as manager:
        manager.init_job(JobSpec("first", 1))
        manager.init_group(group("alone", "h1"))
        taken = leaves(["h1"], "leaf-spine")
        manager.destroy_job("first")
        assert manager.init_job(JobSpec("hosts", 1)).hosts == ("h0",), "hosts alone need no room"
        manager.destroy_job("hosts")
        status = manager.init_job(one("j", 1))
        assert leaves(status.hosts, "leaf-spine").isdisjoint(taken)
        rig.check()


@pytest.mark.parametrize("fallback", [False, True])
def test_a_job_that_does_not_fit_leaves_nothing(fallback: bool) -> None:
    rig = Rig("star-8", small(groups=3))
    with rig.register() as manager:
        job = parallel("j", 2, 4, fallback=fallback)  # six groups
        if fallback:
            status = manager.init_job(job)
            assert [each.ring for each in status.groups] == [False] * 3 + [True] * 3
            rig.check()
            manager.destroy_job("j")
        else:
            reason = refused(Code.NO_ROOM, manager.init_job, job)
            assert reason.startswith("group j:tp0.3: root s0: s0: 1 context is needed; 0 of 3 are free (groups)")
        assert manager.jobs() == []
        rig.check_empty()


@pytest.mark.parametrize("step", ["before insert", "after insert", "before read back"])
def test_a_switch_that_refuses_is_avoided_or_all_is_undone(step: str) -> None:
    rig = Rig("leaf-spine", small(), patience=5.0)
    with rig.register() as manager:
        bad = {"leaf0"}

        def fault(switch: str, what: str) -> None:
            if switch in bad and what.startswith(step):
                raise AgentError(f"{switch}: its table is full")

        rig.fault = fault
        status = manager.init_job(parallel("j", 2, 2))
        assert leaves(status.hosts, "leaf-spine").isdisjoint(bad)
        manager.destroy_job("j")
        bad.update(f"leaf{n}" for n in range(4))
        reason = refused(Code.REFUSED, manager.init_job, parallel("j", 2, 2))
        assert "its table is full" in reason
        assert manager.jobs() == []
        rig.fault = lambda switch, step: None
        rig.check_empty()


def test_jobs_that_ask_at_the_same_time_share_nothing(seed: int) -> None:
    source = random.Random(seed)
    rig = Rig("fat-tree-k4", small(groups=4))
    found: dict[str, JobStatus | ManagerError] = {}

    def ask(name: str, job: JobSpec) -> None:
        try:
            found[name] = rig.manager.init_job(job)
        except ManagerError as error:
            found[name] = error

    with rig.register() as manager:
        for turn in range(4):
            found.clear()
            jobs = {f"{turn}.{n}": parallel(f"j{n}", 2, source.choice([1, 2, 3]), source.choice(["packed", "spread"]))
                    for n in range(6)}  # fmt: skip
            threads = [threading.Thread(target=ask, args=item) for item in jobs.items()]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            rig.check()
            active = [status for status in found.values() if isinstance(status, JobStatus)]
            hosts = [host for status in active for host in status.hosts]
            assert len(hosts) == len(set(hosts))
            assert active
            assert all(error.code is Code.NO_ROOM for error in found.values() if isinstance(error, ManagerError))
            assert [status.spec.name for status in manager.jobs()] == sorted(s.spec.name for s in active)
            ends = [threading.Thread(target=manager.destroy_job, args=(status.spec.name,)) for status in active]
            for thread in ends:
                thread.start()
            for thread in ends:
                thread.join()
            rig.check_empty()


def test_a_restarted_manager_knows_its_jobs(tmp_path: Path) -> None:
    rig = Rig("fat-tree-k4", small(), tmp_path / "groups.db")
    with rig.register() as manager:
        status = manager.init_job(parallel("j", 2, 2, "spread", duty=0.5))
        rig.kill()
    with rig.again() as manager:
        assert manager.job("j") == status
        rig.check()
        more = manager.init_job(one("more", 12))
        assert not set(more.hosts) & set(status.hosts)
        refused(Code.NO_ROOM, manager.init_job, JobSpec("x", 1))
        manager.destroy_job("j")
        manager.destroy_job("more")
        rig.check_empty()
        assert manager._store.counts()["jobs"] == 0


def test_a_job_that_was_begun_or_ended_is_gone_after_a_restart(tmp_path: Path, seed: int) -> None:
    """The manager is killed at every step of a switch, once while the job is created and once while it ends."""
    rig = Rig("tree-3-2", small(), tmp_path / "groups.db")
    rig.register()
    counted = 0

    def count(switch: str, step: str) -> None:
        nonlocal counted
        counted += 1

    rig.fault = count
    rig.manager.init_job(parallel("j", 2, 2))
    rig.manager.destroy_job("j")
    rig.check_empty()
    print(f"{counted} steps, seed {seed}")  # noqa: T201
    for at in sorted(random.Random(seed).sample(range(1, counted + 1), 12)):
        left = at

        def die(switch: str, step: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                rig.die()

        rig.fault = die
        begun = ended = False
        try:
            rig.manager.init_job(parallel("j", 2, 2))
            begun = True
            rig.manager.destroy_job("j")
            ended = True
        except ManagerError:
            pass
        rig.fault = lambda switch, step: None
        rig.kill()
        manager = rig.again()
        rig.check()
        jobs = manager.jobs()
        assert len(jobs) <= begun - ended + (not begun)
        for job in jobs:
            assert len(job.groups) == 4, "whole"
            manager.destroy_job("j")
        rig.check_empty()
    rig.kill()


def test_a_job_ends_with_the_last_of_its_groups() -> None:
    rig = Rig("star-4", small(), away=0.05)
    with rig.register() as manager:
        manager.init_job(parallel("j", 2, 2))
        watches = {host: manager.watch(host) for host in rig.topology.hosts}
        gone, stays = manager.job("j").hosts[0], manager.job("j").hosts[3]
        watches[gone].close()
        rig.wait(lambda: len(manager.job("j").groups) == 2)  # that of rank 0's TP and DP groups are gone
        assert {each for g in manager.job("j").groups for each in g.spec.ranks} == set(manager.job("j").hosts) - {gone}
        refused(Code.NO_ROOM, manager.init_job, JobSpec("other", 1))
        watches[stays].close()
        rig.wait(lambda: not manager.jobs())
        rig.check_empty()
        manager.init_job(JobSpec("other", 4))


def test_a_tenants_job_has_the_tenants_hosts_and_quotas(tmp_path: Path) -> None:
    file = tmp_path / "tenants.yaml"
    file.write_text("operators: [ops]\ntenants:\n  alice: {hosts: [h1, h3, h5], groups: 2}\n")
    rig = Rig("star-8", small(), tenants=load_tenants(file))
    with rig.register() as manager:
        assert set(manager.init_job(one("alice/j", 2)).hosts) < {"h1", "h3", "h5"}
        assert manager.init_job(one("ours", 5)).hosts == ("h0", "h2", "h4", "h6", "h7")
        assert "1 are free; 2 have" in refused(Code.NO_ROOM, manager.init_job, one("alice/k", 2))
        two = tuple(JobGroup(GroupSpec(name, ()), (0,)) for name in "ab")
        reason = refused(Code.NO_ROOM, manager.init_job, JobSpec("alice/k", 1, two))
        assert reason == "quota of tenant alice: 2 of 2 groups are used"
        assert len(manager.jobs()) == len(manager.groups()) == 2
        rig.check()


def test_groups_with_leases_have_homes_below_the_jobs_hosts() -> None:
    rig = Rig("leaf-spine", small(groups=1), policy="time-shared")
    with rig.register() as manager:
        status = manager.init_job(parallel("j", 2, 4, duty=0.5))
        assert all(each.ring and each.tree for each in status.groups)
        roots = [next(s for s, up in each.tree.items() if up is None) for each in status.groups]
        assert sorted(roots[4:]) == ["spine0", "spine1"], "each knows what those before it have been promised"
        rig.check()
        manager.destroy_job("j")
        rig.check_empty()


def test_a_program_is_loaded_again_when_all_epochs_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("p4gen.plan.placement.pools.EPOCHS", range(1, 3))
    rig = Rig("star-2", small(groups=1))
    with rig.register() as manager:
        for _ in range(5):
            manager.init_job(one("j", 2))
            rig.check()
            manager.destroy_job("j")
        assert rig.switches["s0"].loads > 1


WRONG = {
    "'a/b/c' is not a name for a job": JobSpec("a/b/c", 1),
    "'x:y' is not a name for a job": JobSpec("x:y", 1),
    "a job of 0 hosts": JobSpec("j", 0),
    "there is no placement 'tight'; there are packed, spread, random": JobSpec("j", 1, placement="tight"),
    "2 groups are called 'g'": JobSpec("j", 2, (JobGroup(GroupSpec("g", ()), (0,)),) * 2),
    "group g: its ranks are some of 0 to 1, each once": JobSpec("j", 2, (JobGroup(GroupSpec("g", ()), (0, 2)),)),
    "group h: its ranks are some of 0 to 1": JobSpec("j", 2, (JobGroup(GroupSpec("h", ()), (1, 1)),)),
    "group i: its ranks are some of 0 to 1": JobSpec("j", 2, (JobGroup(GroupSpec("i", ()), ()),)),
    "group g: hosts, terms, and ranks": JobSpec("j", 2, (JobGroup(GroupSpec("g", ("h0",)), (0,)),)),
    "group x/y: its name has letters": JobSpec("j", 2, (JobGroup(GroupSpec("x/y", ()), (0,)),)),
    "a duty of 2": JobSpec("j", 1, (JobGroup(GroupSpec("g", (), duty=2.0), (0,)),)),
    "1,025 groups; a job has 1,024 at most": JobSpec(
        "j", 1, tuple(JobGroup(GroupSpec(f"g{n}", ()), (0,)) for n in range(1025))
    ),
}


@pytest.mark.parametrize("reason", WRONG)
def test_requests_that_are_wrong_are_refused(reason: str) -> None:
    rig = Rig("star-4", small())
    with rig.register() as manager:
        assert reason in refused(Code.INVALID, manager.init_job, WRONG[reason])
        manager.init_group(group("j:g", "h0"))
        refused(Code.EXISTS, manager.init_job, JobSpec("j", 1, (JobGroup(GroupSpec("g", ()), (0,)),)))
        assert not manager.jobs()
        manager.destroy_group("j:g")
        rig.check_empty()
