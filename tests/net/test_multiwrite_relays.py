"""AllGather in domains that relay for each other: in switches, in hosts, by one write to all or by one to each."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.host.transport.verbs import Recovery
from p4gen.net.order import RunOrder
from p4gen.net.world.faults import Faults, Impairment, Script
from p4gen.papers.multiwrite.ranks.options import Relay
from p4gen.papers.multiwrite.ranks.relaying import Rank, Relayed, Scheme
from p4gen.papers.multiwrite.running import WriteRun
from p4gen.papers.multiwrite.runs import FACET
from p4gen.papers.multiwrite.simulation import WriteConfig, WriteSimulation
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.topology import load_topology

SPEC = {"payload": 128, "slots": 16}
TROUBLES = {
    "none": Faults(),
    "loss of 10 %": Faults((Impairment(loss=0.1),)),
    "everything": Faults((Impairment(loss=0.02, burst=2, reorder=0.05, duplicate=0.05, corrupt=0.02),)),
}


def order(topology: str = "mesh-8", **fields: Any) -> RunOrder[MultiwriteSpec]:
    """A small AllGather; ``spec`` are fields of the program, ``options`` those of the call."""
    said = fields.pop("options", {})
    base = RunOrder(
        load_topology(topology),
        MultiwriteSpec.model_validate(SPEC | fields.pop("spec", {})),
        "allgather",
        4 * 15 * 128,
        repeat=1,
        faults=Faults(),
        seed=1,
        recovery=None,
        timeout=None,
        retry_count=None,
        dcqcn=None,
        engine="jit",
        options={name: option.read(said.get(name, option.default)) for name, option in FACET.options.items()},
    )
    return replace(base, **fields)


@pytest.mark.sample(2)
@pytest.mark.parametrize("relay", [relay for relay in Relay if relay is not Relay.NONE])
@pytest.mark.parametrize("unicast", ["yes", "no"])
@pytest.mark.parametrize("spec", [{}, {"repair": "hop"}, {"place": "append"}, {"replicate": "prune"}], ids=str)
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
def test_everything_arrives(
    relay: Relay, unicast: str, spec: dict[str, Any], trouble: str, recovery: Recovery, seed: int
) -> None:
    options = {"relay": str(relay), "unicast": unicast}
    asked = order(options=options, spec=spec, faults=TROUBLES[trouble], recovery=recovery, seed=seed, repeat=2)
    result = WriteRun(asked).run()
    assert (result.stuck, result.errors, result.silent) == ((), (), ())


@pytest.mark.long
def test_switches_and_hosts_deliver_the_same_bytes() -> None:
    """Copies for each set of edges, copies that egress drops, relays in hosts: what ranks have is the same."""
    topology, size = load_topology("mesh-8"), 15 * 128
    blocks = np.random.default_rng(5).integers(0, 256, (8, size), np.uint8)
    found = []
    for replicate, relay in (("subset", Relay.PAIRED), ("prune", Relay.PAIRED), ("subset", Relay.HOST)):
        spec = MultiwriteSpec.model_validate(
            SPEC | {"contexts": 24, "edges": 8, "ports": 8, "replicate": replicate}
        )  # fmt: skip
        scheme = Scheme(4, relay, Fraction(2, 5), rate=24_000_000_000)
        simulation = WriteSimulation(WriteConfig(topology, spec, scheme.layers(topology, size, 128), engine="jit"))
        ranks = [Rank(members, simulation.network.loop) for members in zip(*simulation.layers, strict=True)]
        simulation.drive(ranks, [Relayed(blocks, scheme, 128).start])
        found.append([rank.gathered(scheme) for rank in ranks])
    assert found[0] == found[1] == found[2]
    assert found[0][5] == blocks[4:].tobytes()


@pytest.mark.long
def test_a_slow_relay_loses_nothing_of_a_source_that_is_a_call_ahead() -> None:
    """The source's next part is in the relay's window before the relay has forwarded the last one."""
    asked = order(options={"relay": "host", "relay_rate": "1G", "split": "0.2"}, repeat=4)
    result = WriteRun(asked).run()
    assert (result.stuck, result.errors) == ((), ())
    assert result.duration > 4 * 12 * 128 * 8 * 1000  # by its rate, ps: 12 packets a call


def test_relays_in_hosts_need_no_mesh() -> None:
    result = WriteRun(
        order("star-8", options={"relay": "host"}, faults=Faults(scripts=(Script.parse("drop 2 UP_DATA of rank 1"),)))
    ).run()
    assert (result.stuck, result.errors, result.silent) == ((), (), ())


@given(
    st.builds(
        Scheme,
        st.integers(2, 8),
        st.sampled_from([Relay.PAIRED, Relay.FULL, Relay.HOST]),
        st.fractions(0, 1),
    ),
    st.integers(1, 60),
)
def test_parts_make_the_block(scheme: Scheme, packets: int) -> None:
    cuts = scheme.cuts(64 * packets, 64)
    assert [start for start, _ in cuts] == [0, *(end for _, end in cuts[:-1])]
    assert cuts[-1][1] == 64 * packets
    assert all(start <= end and not start % 64 for start, end in cuts)
    relayed = [end - start for start, end in cuts[1:]]
    assert max(relayed) - min(relayed) <= 64


@given(st.integers(2, 8), st.sampled_from(Relay))
def test_who_writes_is_written_to(domain: int, relay: Relay) -> None:
    scheme = Scheme(domain, relay)
    for layer in range(3 if relay is Relay.HOST else 1 + scheme.relays):
        for rank in range(2 * domain):
            peers = scheme.peers_on(layer, rank)
            assert rank not in peers
            assert all(rank in scheme.peers_on(layer, peer) for peer in peers)


@pytest.mark.parametrize(
    ("topology", "options", "why"),
    [
        ("star-8", {"relay": "paired"}, "each host needs a switch of its own, as in mesh-8; those of star-8 share"),
        ("star-3", {"relay": "host"}, "3 ranks are not 2 domains of two or more"),
        ("star-2", {"domains": "2"}, "2 ranks are not 2 domains of two or more"),
        ("mesh-8", {"split": "50%"}, "there is nothing to split without --relay"),
    ],
)
def test_relays_that_there_cannot_be(topology: str, options: dict[str, str], why: str) -> None:
    with pytest.raises(InputError, match=why):
        WriteRun(order(topology, options=options))
