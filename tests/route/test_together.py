"""Jobs planned together: weights, bounds, spare bandwidth, files, and the rates on packets."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.plan.route.fabric import Fabric
from p4gen.plan.route.jobsfile import load_jobs
from p4gen.plan.route.jobsplan import JobsPlan, read_plans
from p4gen.plan.route.jobsrun import run_jobs
from p4gen.plan.route.stripes import striped
from p4gen.plan.route.tasks import MU
from p4gen.plan.route.together import Job, Together, plan_together
from p4gen.vocabulary.topology import TopologySpec, load_topology


def two_leaves(uplink: str = "10G") -> TopologySpec:
    """Two leaves of four hosts with 10 Gb/s each below one spine."""
    found = load_topology("clos:2x1x4@10G")
    links = tuple(
        link.model_copy(update={"bandwidth": int(uplink[:-1]) * 10**9}) if "spine0" in link.ends else link
        for link in found.links
    )
    return found.changed(links=links)


def job(topology: TopologySpec, name: str, *ranks: str, weight: float = 1.0, trees: int = 1) -> Job:
    return Job(name, Fabric(topology, ranks, frozenset(topology.switches)), weight, trees)


def rates(found: Together) -> list[float]:
    return [each.rate / 1e9 for each in found.trees]


def test_rates_on_a_shared_link_are_as_the_weights_are() -> None:
    topology = two_leaves()
    jobs = [job(topology, "a", "h0", "h4"), job(topology, "b", "h1", "h5", weight=3), job(topology, "c", "h2", "h3")]
    found = plan_together(jobs)
    # a and b share the leaves' links to the spine; c stays under its leaf.
    assert rates(found) == pytest.approx([2.5, 7.5, 10.0])
    assert found.value == pytest.approx(found.bound)
    assert found.value == pytest.approx((2.5 + MU * (2.5 + 2.5 + 10)) * 1e9)


def test_what_is_spare_limits_trees() -> None:
    topology = two_leaves()
    jobs = [job(topology, "a", "h0", "h4"), job(topology, "b", "h1", "h5")]
    name = next(link.name for link in topology.links if set(link.ends) == {"leaf0", "spine0"})
    left = [replace(each, fabric=replace(each.fabric, spare={name: 3e9})) for each in jobs]
    assert rates(plan_together(left)) == pytest.approx([1.5, 1.5])


def test_one_job_alone_has_the_rate_of_its_best_trees() -> None:
    topology = load_topology("clos:4x2x2@10G")
    inc = frozenset({"leaf0", "spine0", "spine1"})
    fabric = Fabric(topology, topology.rank_hosts, inc)
    alone = striped(fabric, 4)
    (together,) = plan_together([Job("a", fabric, trees=4)]).trees
    assert together.rate == pytest.approx(alone.rate, rel=0.06)  # striped leaves out trees that add less than 5 %
    assert together.rate <= alone.bound * (1 + 1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_plans_fit_on_the_links_and_under_the_bound(seed: int) -> None:
    chance = random.Random(seed)
    topology = load_topology(chance.choice(["fat-tree-k4", "clos:4x3x4", "leaf-spine"]))
    inc = frozenset(chance.sample(topology.switches, max(2, len(topology.switches) * 2 // 3)))
    jobs = []
    for number in range(chance.randint(2, 4)):
        ranks = tuple(chance.sample(topology.hosts, chance.randint(2, len(topology.hosts) // 2)))
        jobs.append(Job(f"j{number}", Fabric(topology, ranks, inc), chance.choice([0.5, 1, 2]), chance.randint(1, 2)))
    found = plan_together(jobs)
    plan = JobsPlan.of(found, 1, 32)  # checks that every tree is one, and can be placed
    bandwidths = jobs[0].fabric.bandwidths
    assert all(load <= bandwidths[name] * (1 + 1e-6) for name, load in plan.loads.items())
    assert min(plan.rates) > 0
    assert all(len(each.plans) <= job.trees for job, each in zip(jobs, plan.plans, strict=True))
    assert found.value <= found.bound * (1 + 1e-9)
    alone = [each.fabric.limit_together / each.weight for each in jobs]
    assert found.bound <= (min(alone) + MU * sum(alone)) * (1 + 1e-6)


def test_a_plan_is_written_read_and_run(tmp_path: Path) -> None:
    topology = two_leaves()
    jobs = [job(topology, "a", "h0", "h4"), job(topology, "b", "h1", "h2", "h5", weight=3)]
    plan = JobsPlan.of(plan_together(jobs), 1, 32)
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(plan.to_json()))
    assert read_plans(file, topology) == tuple(zip(("a", "b"), plan.plans, strict=True))
    runs = run_jobs(plan, "II", 1 << 20, 1, "jit")
    assert all(each.ok for each in runs), runs
    assert runs[1].measured == pytest.approx(3 * runs[0].measured, rel=0.05)


def test_a_plan_whose_jobs_are_more_than_a_link_carries_is_refused(tmp_path: Path) -> None:
    topology = two_leaves()
    plan = JobsPlan.of(plan_together([job(topology, "a", "h0", "h4"), job(topology, "b", "h1", "h5")]), 1, 32)
    content = plan.to_json()
    for each in content["jobs"]:
        each["trees"][0]["stripe_bps"] = 9e9
    file = tmp_path / "plan.json"
    file.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"plan\.json.*together more than .* carries"):
        read_plans(file, topology)


JOBS = "jobs:\n  - {name: a, ranks: [h0, h4]}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "is a mapping, as in 'jobs:"),
        (JOBS + "  - {name: a, ranks: [h1, h5]}", "jobs have the same name: a"),
        (JOBS + "  - {name: b, ranks: [h1, h99]}", r"jobs\.yaml:3.* job b: .*h99"),
        (JOBS + "  - {name: b, ranks: [h1, h5], weight: 0}", "greater than 0"),
        (JOBS + "spare: {leaf0-leaf9: 1G}", "there is no link leaf0-leaf9"),
        (JOBS + "aggregating: [leaf7]", "there is no switch 'leaf7'"),
    ],
)
def test_wrong_files_are_refused_with_their_place(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        load_jobs(file, two_leaves(), 32)
