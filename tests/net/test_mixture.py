"""Several jobs in one network: each as if it were alone, unless they share links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.transport.clock import MS, US
from p4gen.library.programs import spec_of
from p4gen.library.run_options import RunOptions
from p4gen.library.simulation import job_of
from p4gen.net.collectives.config import Call, SimConfig, Work
from p4gen.net.collectives.simulation import Simulation
from p4gen.net.mixture import JobConfig, Mixture, MixtureResult
from p4gen.net.traffic.traffic import MAX_FLOW, Pattern, Traffic, TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficSimulation
from p4gen.net.world.faults import Faults, Impairment, Script
from p4gen.net.world.watching import Passage
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.rocev2.packet import parse
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import Pfc, TopologySpec, load_topology

STAR = load_topology("star-8")
PLAIN = EpicSpec(mode=Mode.III, lanes=64)
BESIDE = spec_of({"mode": "III", "lanes": 64, "beside": "themis"})
EXAMPLE = Path(__file__).parents[2] / "examples" / "jobs.yaml"


def group(name: str, ranks: str, size: int = 1 << 16, program: ProgramSpec = PLAIN, **fields: Any) -> JobConfig:
    """A group of hosts that makes one call."""
    collective = fields.pop("collective", Collective.ALLREDUCE)
    topology = fields.pop("topology", STAR)
    work = (Work((Call(collective, size),), tuple(ranks.split())),)
    config = SimConfig(topology, program, size=size, work=work, **({"seed": 1, "engine": "jit"} | fields))  # type: ignore[arg-type]
    return JobConfig(name, config)


def flows(name: str, pattern: Pattern, hosts: str, size: int = 60_000, **fields: Any) -> JobConfig:
    """Traffic between hosts; without a size, in the background."""
    topology, program = fields.pop("topology", STAR), fields.pop("program", PLAIN)
    spray = fields.pop("spray", False)
    traffic = (Traffic(pattern, tuple(hosts.split()), size or MAX_FLOW),)
    config = TrafficConfig(topology, program, traffic, **({"seed": 1, "endless": not size} | fields))
    return JobConfig(name, config, spray)


def run(*jobs: JobConfig) -> MixtureResult:
    """The result of jobs."""
    return Mixture(jobs).run()


@settings(max_examples=12)
@given(
    st.sampled_from(tuple(Mode)),
    st.sampled_from((Collective.ALLREDUCE, Collective.BROADCAST, Collective.REDUCE_SCATTER)),
    st.sampled_from(tuple(Pattern)),
    st.booleans(),
    st.integers(1, 16),
    st.integers(0, 2**20),
)
def test_jobs_that_share_no_link_run_as_if_alone(
    mode: Mode, collective: Collective, pattern: Pattern, spray: bool, kib: int, seed: int
) -> None:
    fields = {"mode": str(mode), "lanes": 64, "beside": "themis"} if spray else {"mode": str(mode), "lanes": 64}
    program = spec_of(fields)
    one = group("one", "h0 h1 h2", 3072 * kib, program, collective=collective, seed=seed)
    two = group("two", "h3 h4", 4096, program, seed=seed, start=3 * US)
    three = flows("three", pattern, "h5 h6 h7", 6_000 * kib, program=program, seed=seed, spray=spray)
    found = run(one, two, three)
    assert found.ok, (found.stuck, found.errors)
    assert isinstance(one.config, SimConfig)
    assert isinstance(two.config, SimConfig)
    assert isinstance(three.config, TrafficConfig)
    alone = (Simulation(one.config).run(), Simulation(two.config).run(), TrafficSimulation(three.config).run())
    for each, single in zip(found.jobs.values(), alone, strict=True):
        assert each.ended
        assert single.ok
        assert (each.result.duration, each.result.sent) == (single.duration, single.sent)
    assert found.sent == sum(single.sent for single in alone)


def test_background_takes_its_rate_from_a_shared_link_until_others_have_ended() -> None:
    training = group("training", "h0 h1 h2 h3", 1 << 18)
    alone = run(training)
    noise = flows("noise", Pattern.FLOW, "h7 h0", 0, pace=60_000_000_000)
    both = run(training, noise)
    assert both.ok
    assert both.jobs["training"].rate < 0.7 * alone.jobs["training"].rate
    assert 0.9 * 60e9 * 1024 / 1110 < both.jobs["noise"].rate < 60e9
    assert not both.jobs["noise"].ended
    assert "in the background" in both.jobs["noise"].line
    said = both.to_dict()["jobs"]
    assert set(said) == {"training", "noise"}
    assert said["training"]["gbps"] == both.jobs["training"].rate / 1e9


@pytest.mark.parametrize("ip", ["4", "6", "both"])
def test_a_sprayed_connection_uses_both_spines_and_a_routed_one_does_not(ip: str) -> None:
    beside = spec_of({"mode": "III", "lanes": 64, "beside": "themis", "ip": ip})
    clos, fields = load_topology("clos:2x2x4"), {"program": beside, "recovery": "sr"}
    for spray in (True, False):
        some = group("sums", "h0 h4", program=beside, topology=clos)
        result = run(some, flows("flow", Pattern.FLOW, "h1 h5", 1 << 20, topology=clos, spray=spray, **fields))
        assert result.ok, (result.stuck, result.errors)
        packets = {link.name: link.packets for link in result.links}
        less = min(packets[f"leaf0>spine{i}"] for i in range(2))
        assert (less > 400) == spray


@pytest.mark.parametrize("ip", ["4", "6"])
def test_priorities_stay_on_the_way_and_only_the_lossless_one_is_paused(ip: str) -> None:
    program = spec_of({"mode": "III", "lanes": 64, "ip": ip})
    narrow = {"queue": 30_000}
    topology = load_topology("clos:2x2x4")
    defaults = topology.defaults.model_copy(update=narrow)
    topology = topology.model_copy(update={"defaults": defaults, "pfc": Pfc(xoff=8_000, priorities=(3,))})
    jobs = [
        group(
            "sums",
            "h0 h1 h4",
            program=program,
            topology=topology,
            priority=3,
            collective=Collective.ALLGATHER,
            size=3 << 15,
        ),
        flows("lossless", Pattern.FLOW, "h2 h4", 1 << 20, program=program, topology=topology, priority=3),
        flows("lossy", Pattern.FLOW, "h3 h4", 1 << 20, program=program, topology=topology, priority=1),
        flows("more", Pattern.FLOW, "h5 h4", 1 << 20, program=program, topology=topology, priority=1),
    ]
    mixture = Mixture(jobs)
    names = {nic.ip: host for host, nic in mixture.network.nics.items()}
    seen = set()

    def watch(passage: Passage) -> None:
        ip = parse(passage.frame).ip
        seen.add((names.get(ip.src, "switch"), ip.tos >> 5))

    mixture.network.watch(watch)
    result = mixture.run()
    assert result.ok, (result.stuck, result.errors)
    assert {priority for of, priority in seen if of == "switch"} == {3}
    senders = {"h0": 3, "h2": 3, "h3": 1, "h5": 1}
    assert {of: p for of, p in seen if of in senders} == senders
    ahead = sum(count for what, count in result.drops.items() if what.endswith("CheckOrder.ahead"))  # not lost: refused
    assert {what.partition(" ")[2] for what in result.drops} <= {"queue_full", "CheckOrder.ahead"}
    assert (result.jobs["lossless"].result.resent, result.jobs["sums"].result.resent) == (0, ahead)
    assert result.jobs["lossy"].result.resent > 0
    pauses = {link.name: link.pauses for link in result.links if link.pauses}
    assert "h2>leaf0" in pauses
    assert "h3>leaf0" not in pauses
    assert "h5>leaf1" not in pauses


def test_a_job_that_does_not_end_is_named_while_background_goes_on() -> None:
    faults = Faults(scripts=(Script.parse("drop every UP_DATA of rank 0"),))
    common: dict[str, Any] = {"faults": faults, "timeout": 20 * US}
    result = run(
        group("hangs", "h0 h1", 4096, **common),
        group("ends", "h2 h3", 4096, **common),
        flows("noise", Pattern.FLOW, "h4 h5", 0, faults=faults),
    )
    assert not result.ok
    assert result.jobs["ends"].ended
    assert not result.jobs["hangs"].ended
    assert any(line.startswith("hangs: cause: UP_DATA of rank 0") for line in result.stuck)
    assert not any(line.startswith(("ends: ", "noise: ")) for line in result.stuck)
    assert "hangs: 0.00 Gb/s not ended after" in result.jobs["hangs"].line


def test_a_wrong_result_is_that_of_its_job() -> None:
    program = spec_of({"mode": "II", "lanes": 64, "icrc": "ignore"})
    faults = Faults((Impairment("h0>s0", corrupt=0.2),))
    common: dict[str, Any] = {"faults": faults, "program": program, "timeout": MS}
    result = run(group("spoilt", "h0 h1", 1 << 17, **common), group("right", "h2 h3", 1 << 17, **common))
    assert result.errors
    assert all(error.startswith("spoilt: rank") for error in result.errors)
    assert not result.ok


def test_a_mixture_goes_on_when_frozen() -> None:
    jobs = (
        group("one", "h0 h1 h2"),
        group("two", "h1 h3"),
        flows("three", Pattern.ALLTOALL, "h0 h4 h5"),
        flows("noise", Pattern.NEXT, "h2 h6", 0),
    )
    mixture = Mixture(jobs)
    mixture.network.loop.run(count=700)
    frozen = mixture.freeze()
    whole = mixture.run()
    assert whole.ok
    again = Mixture(jobs)
    again.restore(frozen)
    assert again.run() == whole


def test_jobs_that_do_not_fit_are_refused() -> None:
    noise = flows("noise", Pattern.FLOW, "h0 h1", 0)
    with pytest.raises(InputError, match="no job to wait for"):
        Mixture([noise])
    with pytest.raises(InputError, match="knows no connections"):
        Mixture([replace(flows("one", Pattern.FLOW, "h0 h1"), spray=True)])


def asked(file: Path, topology: str | TopologySpec = "leaf-spine", program: ProgramSpec = BESIDE, **o: Any) -> Mixture:
    """The mixture of a file."""
    job = job_of(load_topology(topology), program, RunOptions(jobs=str(file), **({"seed": 1} | o)), {})
    assert isinstance(job, Mixture)
    return job


def test_the_example_runs() -> None:
    mixture = asked(EXAMPLE, pfc="50K")
    result = mixture.run()
    assert result.ok, (result.stuck, result.errors)
    assert [name for name, job in result.jobs.items() if job.ended] == ["training", "experts"]
    assert mixture.configs[2].config.priority == 1
    assert mixture.configs[1].config.start == 10 * US


@pytest.mark.parametrize(
    ("text", "at", "why"),
    [
        ("jobs: []", 1, "jobs are a list"),
        ("- {name: a, pattern: next}", 1, "jobs are a list"),
        ("jobs:\n- 5", 2, "a job has a collective, or a pattern"),
        ("jobs:\n- {name: a}", 2, "a job has a collective, or a pattern"),
        ("jobs:\n- {name: a, pattern: next, hosts: [h0, h1], size: 1Q}", 2, "not a size"),
        ("jobs:\n- {name: a, pattern: next, hosts: [h0, x], size: 1K}", 2, "has no host x"),
        ("jobs:\n- {name: a, pattern: next, hosts: [h0, h1]}", 2, "in the background has no size"),
        ("jobs:\n- {name: a, pattern: alltoall, hosts: [h0, h1], background: true}", 2, "only patterns flow and next"),
        ("jobs:\n- {name: a, pattern: flow, hosts: [h0, h1], size: 1K, rate: 1G, dcqcn: true}", 2, "rate or dcqcn"),
        ("jobs:\n- {name: a, pattern: flow, hosts: [h0, h1], size: 1K, nic: ideal}", 2, "gbn or sr"),
        ("jobs:\n- {name: a, collective: allreduce, ranks: [h0, h1], size: 5}", 2, "multiple of 4"),
        ("jobs:\n- {name: a, collective: reduce, ranks: [h0, h1], size: 4K, root: 2}", 2, "root"),
        ("jobs:\n- {name: a, collective: barrier}\n- {name: a, collective: barrier}", 3, "two jobs 'a'"),
        ("jobs:\n- {name: a, pattern: flow, hosts: [], size: 1K}", 2, "at least 2"),
    ],
)
def test_mistakes_in_files_have_a_place_and_a_cause(text: str, at: int, why: str, tmp_path: Path) -> None:
    file = tmp_path / "jobs.yaml"
    file.write_text(text)
    with pytest.raises(InputError, match=why) as caught:
        asked(file)
    assert str(caught.value.diagnostics[0]).startswith(f"{file}:{at}:")


def test_options_that_say_what_runs_do_not_go_with_jobs() -> None:
    for option in ({"repeat": 2}, {"size": "4K"}, {"concurrent": 2}, {"dcqcn": True}):
        with pytest.raises(InputError, match="does not go with jobs"):
            asked(EXAMPLE, **option)
