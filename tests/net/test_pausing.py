"""Priority flow control: nothing is lost where headroom suffices, and paused ports send nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from p4gen.compiled.memory import NONE, PRIORITIES, Pool
from p4gen.errors import InputError
from p4gen.host.transport.verbs import Recovery
from p4gen.library.programs import spec_of
from p4gen.library.run_options import RunOptions
from p4gen.library.simulation import job_of, paused
from p4gen.model import EngineName
from p4gen.net.collectives.simulation import SimConfig, Simulation
from p4gen.net.job import Job
from p4gen.net.traffic.traffic import Pattern, Traffic, TrafficConfig
from p4gen.net.traffic.traffic_simulation import TrafficResult, TrafficSimulation
from p4gen.net.world.watching import Passage
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import Pfc, TopologySpec, load_topology

PROGRAM = EpicSpec(lanes=8, window=1, message=1, groups=1)
CLOS = load_topology("clos:2x2x3")
"""Two leaves of three hosts, and two spines."""


def paced(pfc: Pfc | None, topology: TopologySpec = CLOS, **links: Any) -> TopologySpec:
    """A topology with small queues and these properties of links."""
    changed = {"defaults": topology.defaults.model_copy(update={"queue": 20_000, **links}), "pfc": pfc}
    return topology.model_copy(update=changed)


def incast(topology: TopologySpec, size: int = 200_000, **fields: Any) -> TrafficConfig:
    """All hosts send to the last one."""
    *sources, to = topology.hosts
    traffic = tuple(Traffic(Pattern.FLOW, (host, to), size) for host in sources)
    return TrafficConfig(topology, PROGRAM, traffic, **({"seed": 1, "message": 50_000} | fields))


def check_empty(job: Job[Any, Any]) -> None:
    """Nothing is left in queues and in the memory of ports once all has arrived and the loop is idle."""
    job.network.loop.run()
    of = job.network._hosts.world
    assert not of.gates["used"].any()
    assert not of.gates["shut"].any()
    assert not of.directions["paused"].any()
    assert (of.priorities["first"] == NONE).all()
    for pool in (Pool.QUEUED, Pool.CHARGES):
        free, place = 0, int(of.pools[pool]["free"])
        while place != NONE:
            free, place = free + 1, int(getattr(of, pool.name.lower())[place]["following"])
        assert free == of.pools[pool]["used"]


@settings(max_examples=25)
@given(
    st.sampled_from((10, 40, 100, 400)),
    st.integers(0, 5_000_000),
    st.integers(0, 2_000_000),
    st.integers(1, 60_000),
    st.sampled_from(tuple(Pattern)),
    st.sampled_from((256, 1024, 4096)),
    st.integers(0, 2**20),
)
def test_nothing_is_lost_with_the_headroom_that_a_link_needs(
    gigabits: int, delay: int, latency: int, xoff: int, pattern: Pattern, mtu: int, seed: int
) -> None:
    topology = paced(Pfc(xoff=xoff), bandwidth=gigabits * 10**9, delay=delay).model_copy(
        update={"switch_latency": latency}
    )
    hosts = topology.hosts
    traffic = tuple(Traffic(pattern, hosts[i:] + hosts[:i], 60_000) for i in range(3))
    config = TrafficConfig(topology, PROGRAM, traffic, seed=seed, message=12_000, mtu=mtu, ahead=5, timeout=0)
    simulation = TrafficSimulation(config)
    result = simulation.run()
    assert (result.errors, result.stuck, result.drops, result.overruns) == ((), (), {}, ())
    assert (result.resent, result.naks) == (0, 0)
    check_empty(simulation)
    links_of_hosts = [link for link in result.links if link.name.startswith("h")]
    arrived = [link for link in result.links if ">h" in link.name]
    assert sum(link.bytes for link in links_of_hosts) == sum(link.bytes for link in arrived)


def test_incast_pauses_up_to_the_hosts_and_is_lossy_without() -> None:
    lossy, lossless = (TrafficSimulation(incast(paced(pfc))).run() for pfc in (None, Pfc(xoff=20_000)))
    assert lossy.ok
    assert lossless.ok
    assert "leaf1>h5 queue_full" in lossy.drops
    assert lossless.drops == {}
    assert lossless.resent == 0
    pauses = {link.name: link.pauses for link in lossless.links if link.pauses}
    assert {"h0>leaf0", "h3>leaf1"} <= set(pauses)
    assert any(name.startswith("spine") for name in pauses)
    assert all(0 < link.paused < 1 for link in lossless.links if link.pauses)
    assert lossless.to_dict()["links"]["h0>leaf0"]["pauses"] == pauses["h0>leaf0"]


def test_a_paused_port_sends_nothing() -> None:
    simulation = TrafficSimulation(incast(paced(Pfc(xoff=20_000))))
    network, seen = simulation.network, []

    def watch(passage: Passage) -> None:
        direction = network.directions[f"{passage.src}>{passage.dst}"]
        seen.append((passage.sent, direction.pauses))
        assert not network._hosts.world.directions["paused"][direction.number]

    network.watch(watch)
    assert simulation.run().ok
    assert max(pauses for _, pauses in seen) > 1


def test_both_engines_pause_alike_and_collectives_are_right() -> None:
    results = []
    engines: tuple[EngineName, ...] = ("jit", "interp")
    for engine in engines:
        # The Broadcasts of an AllGather meet at every rank.
        topology, program = paced(Pfc(xoff=2_000), load_topology("tree-3-2")), EpicSpec(mode=Mode.III, lanes=64)
        config = SimConfig(topology, program, Collective.ALLGATHER, 1 << 16, seed=3, engine=engine)
        simulation = Simulation(config)
        results.append(simulation.run())
        check_empty(simulation)
    one, other = results
    assert one.ok
    assert (one.links, one.duration, one.drops) == (other.links, other.duration, other.drops)
    assert sum(link.pauses for link in one.links) > 0


@pytest.mark.parametrize(
    ("topology", "mode", "options"),
    [
        ("star-4", "I", {"collective": "allgather", "size": "16K"}),
        ("star-4", "scin", {"collective": "allgather", "size": "64K"}),
        ("leaf-spine", "multiwrite", {"collective": "dispatch"}),
    ],
)
def test_every_family_pauses_and_loses_nothing(topology: str, mode: str, options: dict[str, str]) -> None:
    asked = RunOptions(pfc="1K", seed=1, **options)  # type: ignore[arg-type]
    result = job_of(load_topology(topology), spec_of({"mode": mode}), asked, {}).run()
    assert result.ok, (result.errors, result.stuck)
    assert (result.drops, result.resent) == ({}, 0)
    assert sum(link.pauses for link in result.links) > 0


def test_too_little_headroom_is_said_and_repaired() -> None:
    result = TrafficSimulation(incast(paced(Pfc(xoff=20_000, headroom=2_000)))).run()
    assert result.ok, result.stuck
    lost = {name: count for name, count in result.drops.items() if name.endswith("headroom_full")}
    assert lost == result.drops
    assert len(result.overruns) == len(lost) > 0
    assert all(f"{count:,} packets" in " ".join(result.overruns) for count in lost.values())
    assert "its headroom is 2,000 bytes, and the link needs 33,6" in result.overruns[0]


def ring(timeout: int) -> TrafficResult:
    """Five switches in a ring; each host sends to the second next one, so that all links in one direction are
    contended for."""
    count = 5
    topology = TopologySpec.model_validate({
        "name": "ring",
        "switches": [f"s{i}" for i in range(count)],
        "hosts": [f"h{i}" for i in range(count)],
        "links": [[f"h{i}", f"s{i}"] for i in range(count)] + [[f"s{i}", f"s{(i + 1) % count}"] for i in range(count)],
        "pfc": {"xoff": "20K"},
    })  # fmt: skip
    traffic = tuple(Traffic(Pattern.FLOW, (f"h{i}", f"h{(i + 2) % count}"), 1 << 22) for i in range(count))
    recovery = Recovery.GO_BACK_N
    return TrafficSimulation(
        TrafficConfig(topology, PROGRAM, traffic, seed=1, recovery=recovery, timeout=timeout)
    ).run()


@pytest.mark.parametrize("timeout", [0, 100_000_000])
def test_a_circle_of_pauses_ends_and_is_named(timeout: int) -> None:
    result = ring(timeout)
    assert not result.ok
    first = result.stuck[0]
    assert first.startswith("no progress: ")
    assert all(f"s{i}>s{(i + 1) % 5}" in first for i in range(5))
    assert first.endswith("each because the next one is")
    named = first.removeprefix("no progress: ").partition(" are paused")[0].split(", ")
    after = dict(zip(named, [*named[1:], named[0]], strict=True))
    assert all(one.partition(">")[2] == other.partition(">")[0] for one, other in after.items())


def test_what_options_and_files_say() -> None:
    star = load_topology("star-2")
    assert paused(star, RunOptions()).pfc is None
    half = paused(star, RunOptions(pfc="100K")).pfc
    assert half == Pfc(xoff=100 << 10)
    assert half.resumes == 50 << 10
    assert paused(star, RunOptions(pfc="8K,2K,16K")).pfc == Pfc(xoff=8192, xon=2048, headroom=16384)
    for text, why in (("8K,8K", "xon is not less"), ("1,2,3,4", "say '100K'"), ("much", "is not a size")):
        with pytest.raises(InputError, match=why):
            paused(star, RunOptions(pfc=text))
    fields = {"name": "two", "switches": ["s0"], "hosts": ["h0"], "links": [["h0", "s0"]], "buffer": {"size": "1M"}}
    with pytest.raises(ValueError, match="no buffer is shared"):
        TopologySpec.model_validate(fields | {"pfc": {}})
    shared = TopologySpec.model_validate(fields)
    with pytest.raises(InputError, match="does not go with the buffer that two shares"):
        paused(shared, RunOptions(pfc="100K"))


def test_a_network_with_pauses_is_not_frozen() -> None:
    simulation = TrafficSimulation(incast(paced(Pfc())))
    with pytest.raises(TypeError, match="flow control cannot be frozen"):
        simulation.freeze()
    assert PRIORITIES == 8
    assert isinstance(simulation.network._hosts.world.gates, np.ndarray)
