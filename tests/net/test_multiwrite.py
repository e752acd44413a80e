"""MultiWrite end to end: AllGather and dispatch on the virtual network, byte for byte beside NumPy."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.host.transport.clock import US
from p4gen.host.transport.rc import QueuePair
from p4gen.host.transport.verbs import Completion, Recovery, SendWr
from p4gen.net.world.faults import Faults, Impairment, Outage
from p4gen.net.world.watching import Passage
from p4gen.papers.multiwrite.ranks.hosts import Member
from p4gen.papers.multiwrite.ranks.layout import RECORD
from p4gen.papers.multiwrite.simulation import Layer, WriteConfig, WriteSimulation
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.rocev2.opcodes import is_write
from p4gen.rocev2.packet import parse
from p4gen.vocabulary.topology import TopologySpec, load_topology, packaged

TOKENS, TOKEN_BYTES, BLOCK = 20, 100, 10
TROUBLES = {
    "none": Faults(),
    "loss": Faults((Impairment(loss=0.02),)),
    "much loss": Faults((Impairment(loss=0.1),)),
    "bursts": Faults((Impairment(loss=0.05, burst=5),)),
    "disorder": Faults((Impairment(reorder=0.1, duplicate=0.1),)),
    "corruption": Faults((Impairment(corrupt=0.03, loss=0.01),)),
    "everything": Faults((Impairment(loss=0.02, reorder=0.05, duplicate=0.05, corrupt=0.02),)),
    "outage": Faults(outages=(Outage("h0", 30 * US, 50 * US), Outage("h3", 40 * US, 60 * US))),
}


@lru_cache
def topology(name: str) -> TopologySpec:
    return load_topology(packaged(name))


def program(**fields: Any) -> MultiwriteSpec:
    return MultiwriteSpec.model_validate({"payload": 128, "edges": 8, "slots": 8, "contexts": 16} | fields)


def simulation(name: str = "leaf-spine", faults: Faults = TROUBLES["none"], **fields: Any) -> WriteSimulation:
    recovery = fields.pop("recovery", Recovery.GO_BACK_N)
    seed = fields.pop("seed", 1)
    config = WriteConfig(topology(name), program(**fields), (Layer(TOKENS),), faults, recovery, seed=seed, engine="jit")
    return WriteSimulation(config)


class Collectives:
    """An AllGather and a dispatch by all ranks, and what NumPy says of them."""

    def __init__(self, ranks: int, topk: str = "random") -> None:
        chance = np.random.default_rng(7)
        self.blocks = [chance.bytes(128 * BLOCK) for _ in range(ranks)]
        self.tokens = chance.integers(0, 256, (ranks, TOKENS, TOKEN_BYTES), dtype=np.uint8)
        self.topk = {
            "random": chance.integers(0, ranks, (ranks, TOKENS, 3)),
            "all to one": np.full((ranks, TOKENS, 1), ranks - 1),
            "all to all": np.broadcast_to(np.arange(ranks), (ranks, TOKENS, ranks)),
            "disjoint": np.broadcast_to(((np.arange(ranks) + 1) % ranks)[:, None, None], (ranks, TOKENS, 1)),
        }[topk]
        self.gathered: dict[int, bytes] = {}

    def gather(self, member: Member) -> None:
        member.all_gather(self.blocks[member.rank])

    def dispatch(self, member: Member) -> None:
        if member.rank not in self.gathered:
            self.gathered[member.rank] = member.gathered()
        member.dispatch(self.tokens[member.rank], self.topk[member.rank])

    def check(self, run: WriteSimulation) -> None:
        for member in run.members:
            assert self.gathered[member.rank] == b"".join(self.blocks)
            received = member.received(TOKEN_BYTES)
            source, index = np.nonzero((self.topk == member.rank).any(axis=2))
            assert np.array_equal(received.source, source)
            assert np.array_equal(received.index, index)
            assert np.array_equal(received.tokens, self.tokens[source, index])


@pytest.mark.sample(5)
@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_no_token_is_lost_and_none_comes_twice(trouble: str, recovery: Recovery) -> None:
    run = simulation(faults=TROUBLES[trouble], recovery=recovery)
    collectives = Collectives(8)
    run.run_calls(collectives.gather, collectives.dispatch)
    collectives.check(run)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "fields",
    [
        {"place": "append"},
        {"replicate": "prune"},
        {"receivers": 64},
        {"receivers": 1024, "place": "append", "replicate": "prune"},
        {"slots": 32},
    ],
    ids=str,
)
def test_every_program_delivers_the_same_under_loss(fields: dict[str, Any]) -> None:
    run = simulation(faults=TROUBLES["everything"], **fields)
    collectives = Collectives(8)
    run.run_calls(collectives.gather, collectives.dispatch)
    collectives.check(run)


@pytest.mark.parametrize("topk", ["all to one", "all to all", "disjoint"])
@pytest.mark.long
def test_adversarial_destinations(topk: str) -> None:
    run = simulation(faults=TROUBLES["loss"])
    collectives = Collectives(8, topk)
    run.run_calls(collectives.gather, collectives.dispatch)
    collectives.check(run)


@pytest.mark.parametrize(("name", "ranks"), [("star-4", 4), ("fat-tree-k4", 16)])
@pytest.mark.long
def test_other_networks(name: str, ranks: int) -> None:
    run = simulation(name, TROUBLES["loss"], seed=3)
    collectives = Collectives(ranks)
    run.run_calls(collectives.gather, collectives.dispatch)
    collectives.check(run)


def test_one_copy_for_each_next_hop() -> None:
    """The copies on each tier are those that the sets of destinations ask for: one a leaf, not one a rank."""
    run = simulation()
    written: Counter[str] = Counter()

    def watch(passage: Passage) -> None:
        if is_write(parse(passage.frame).bth.opcode):
            tiers = ["host" if end.startswith("h") else end[:4] for end in (passage.src, passage.dst)]
            written[">".join(tiers)] += 1

    run.network.watch(watch)
    collectives = Collectives(8)
    collectives.gathered = dict.fromkeys(range(8), b"")
    run.run_calls(collectives.dispatch)
    expected: Counter[str] = Counter()
    for source, rows in enumerate(collectives.topk):
        sets = [set(row.tolist()) - {source} for row in rows] + [set(range(8)) - {source}]  # the last one is the fence
        for ranks in filter(None, sets):
            leaves = {rank // 2 for rank in ranks} - {source // 2}
            expected["host>leaf"] += 1
            expected["leaf>host"] += len(ranks)
            expected["leaf>spin"] += bool(leaves)
            expected["spin>leaf"] += len(leaves)
    assert written == expected


def test_a_completed_write_is_at_all_its_destinations() -> None:
    """What a source's NIC reports as sent is, at this moment, in the windows of all destinations that it named."""
    run = simulation(faults=TROUBLES["everything"], seed=5)
    checked = 0

    def follow(member: Member) -> None:
        writer, posted = cast(QueuePair, member._writer), []
        post, complete = writer.post_send, writer.complete

        def post_send(wr: SendWr) -> None:
            posted.append(wr)
            post(wr)

        def completed(completion: Completion) -> None:
            nonlocal checked
            wr = posted.pop(0)
            for rank, other in enumerate(run.members):
                if wr.immediate is not None and wr.immediate >> rank & 1 and not wr.solicited:
                    place = other.memory[wr.remote_address : wr.remote_address + len(wr.data)]
                    assert bytes(place) == bytes(wr.data)
                    checked += 1
            complete(completion)

        writer.post_send, writer.complete = post_send, completed  # type: ignore[method-assign]

    for member in run.members:
        follow(member)
    collectives = Collectives(8)
    run.run_calls(collectives.gather)
    assert checked == 8 * 7 * BLOCK


def test_many_calls_one_after_the_other() -> None:
    """Ranks that are a call ahead of others disturb nothing; rings and PSNs go on."""
    for place in ("symmetric", "append"):
        run = simulation("star-4", TROUBLES["loss"], place=place)
        collectives = Collectives(4)
        collectives.gathered = {rank: b"".join(collectives.blocks) for rank in range(4)}
        run.run_calls(*[collectives.dispatch] * 12)
        collectives.check(run)


def test_what_a_member_refuses() -> None:
    member = simulation("star-4").members[1]
    for ranks in ([], [1], [1, 2], [4]):
        with pytest.raises(ValueError, match="rank 1 cannot write to the ranks"):
            member.multi_write(bytes(128), ranks, 0)
    with pytest.raises(ValueError, match="130 bytes are no whole number of packets of 128"):
        member.multi_write(bytes(130), [0], 0)
    with pytest.raises(ValueError, match="65536 packets for rank 0 are not in 0 to 65,535"):
        member.fence({0: 1 << 16})
    wide = np.zeros((TOKENS // 2 + 1, 128 - RECORD + 1), np.uint8)
    with pytest.raises(ValueError, match="11 tokens of 121 bytes take 22 packets; windows have room for 20"):
        member.dispatch(wide, np.zeros((len(wide), 1), np.int64))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"edges": 2}, "spine0 has 4 links; the program has 2 edges"),
        ({"contexts": 4}, "context 4: the program has 4, numbered from 0"),
    ],
)
def test_a_group_that_a_program_cannot_serve_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        simulation(**fields)


def test_a_dead_destination_ends_the_run_with_a_reason() -> None:
    run = simulation("star-4", Faults(outages=(Outage("h2", 0, 1 << 62),)))
    with pytest.raises(InputError, match="no packet has arrived since"):
        run.run_calls(Collectives(4).gather)
