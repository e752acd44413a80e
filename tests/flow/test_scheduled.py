"""Groups of a job that call in different phases share slots of switches: what is granted, and what it is good for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.plan.flow.fabric import FatTree
from p4gen.plan.flow.jobs import Call, Group, Job, Phase, parallel_job
from p4gen.plan.flow.placing import Placing
from p4gen.plan.flow.policies import ALL_POLICIES, Grants, Volume
from p4gen.plan.flow.simulate import Result, Setting, Simulation
from p4gen.plan.flow.workload import load_workload

SMALL = FatTree(pods=1, leaves=3, spines=1, cores=1, hosts=2)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """A job with groups of two leaves each, which call in some of up to three phases."""
    phases = draw(st.integers(1, 3))
    pairs = draw(st.lists(st.sampled_from([(0, 2), (2, 4), (0, 4), (0, 1)]), min_size=1, max_size=5))
    calling = [draw(st.sets(st.integers(0, phases - 1), min_size=1)) for _ in pairs]
    groups = tuple(Group(f"g{n}", pair) for n, pair in enumerate(pairs))
    when = [tuple(n for n, some in enumerate(calling) if phase in some) for phase in range(phases)]
    return Job("j", 6, groups, tuple(Phase(0.0, each, 1.0, Call.ALLREDUCE) for each in when))


@given(st.lists(jobs(), min_size=1, max_size=3), st.integers(1, 3), st.data())
def test_a_switch_serves_no_more_groups_at_a_time_than_it_has_slots(
    every: list[Job], slots: int, data: st.DataObject
) -> None:
    grants = Grants(SMALL, ALL_POLICIES["scheduled"], slots, every)
    held: set[tuple[int, int]] = set()
    trees = {
        (j, g): SMALL.trees(group.ranks).tree(0) for j, job in enumerate(every) for g, group in enumerate(job.groups)
    }

    def needed(some: set[tuple[int, int]], switch: int) -> int:
        """By brute force: what each job needs in its busiest phase."""
        at = [(j, g) for j, g in some if switch in trees[j, g].switches]
        return sum(max(sum((j, g) in at for g in phase.groups) for phase in job.phases) for j, job in enumerate(every))

    for _ in range(data.draw(st.integers(1, 20))):
        one = data.draw(st.sampled_from(sorted(trees)))
        if one in held:
            grants.release(trees[one], *one)
            held.discard(one)
        else:
            fits = all(needed(held | {one}, switch) <= slots for switch in trees[one].switches)
            assert grants.take(trees[one], *one) == fits
            held |= {one} if fits else set()
    for one in held:
        grants.release(trees[one], *one)
    assert (grants._free == slots).all()
    for job in range(len(every)):
        grants.end(job)


def simulated(policy: str, slots: int, every: list[Job]) -> Result:
    fabric = FatTree(pods=1, leaves=2, spines=1, cores=1, hosts=4 * len(every))
    return Simulation(Setting(fabric, ALL_POLICIES[policy], slots, Volume(), Placing("spread", 1)), every).run()


@pytest.mark.parametrize("slots", [1, 4, 5])
def test_a_job_whose_phases_share_memory_ends_earlier(slots: int) -> None:
    """One TP group a leaf, and four DP groups across: four slots are enough for either, and not for both at a time."""
    job = parallel_job("j", 4, 2, 0.01, 64 << 20, 256 << 20, 10)
    fabric = FatTree(pods=1, leaves=2, spines=1, cores=1, hosts=4)
    found = {
        policy: Simulation(Setting(fabric, ALL_POLICIES[policy], slots, Volume(), Placing("packed", 1)), [job]).run()
        for policy in ("spatial", "scheduled", "temporal")
    }
    spatial, scheduled, temporal = found.values()
    assert scheduled.ended == pytest.approx(temporal.ended)
    assert scheduled.share_granted == temporal.share_granted
    if slots == 5:
        assert spatial.ended == pytest.approx(scheduled.ended)
    else:
        assert spatial.ended > 1.1 * scheduled.ended
        assert spatial.share_granted < scheduled.share_granted
    assert scheduled.share_granted == (1.0 if slots >= 4 else pytest.approx(0.5))


def test_jobs_do_not_keep_step_with_each_other() -> None:
    """Two jobs that each call in one phase only: a slot is one job's, as nothing says that the other calls later."""
    every = [parallel_job(f"j{n}", 1, 4, 0.01, 0.0, float(1 << 20), 5) for n in range(2)]
    alone = simulated("scheduled", 1, every)
    assert next(each.granted for each in alone.outcomes) == 5
    assert alone.outcomes[1].granted <= 1, "at most the call after the other job's end"
    assert simulated("scheduled", 2, every).share_granted == 1.0


def test_a_policy_that_is_not_the_papers_is_asked_for_by_name(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text("fabric: epic-128\npolicy: scheduled\njobs: [{name: j, model: gpt-3-13b, iterations: 1}]\n")
    found = load_workload(file)
    assert found.policies == ("scheduled",)
    assert Simulation(found.setting("scheduled", 1), found.jobs(1)).run().share_granted == 1.0
    assert "scheduled" not in load_workload("trace1").policies
    assert np.isfinite(Simulation(found.setting("spatial", 1), found.jobs(1)).run().ended)


def test_the_documents_example_gives_its_table(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "docs" / "policies.md").read_text()
    (example,) = re.findall(r"^```yaml staggered.yaml\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (tmp_path / "staggered.yaml").write_text(example)
    found = load_workload(tmp_path / "staggered.yaml")
    rows = re.findall(r"^\| (`[a-z`, ]*) \| ([\d.]+) s \| (\d+) % \|$", text, re.MULTILINE)
    told = {name: (seconds, share) for names, seconds, share in rows for name in re.findall(r"`(\w+)`", names)}
    assert told.keys() == {"ring", "spatial", "scheduled", "temporal"}
    for policy, shown in told.items():
        result = Simulation(found.setting(policy, 1), found.jobs(1)).run()
        assert (f"{result.ended:.2f}", f"{100 * result.share_granted:.0f}") == shown
