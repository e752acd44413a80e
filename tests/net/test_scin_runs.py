"""Runs of SCIN as ``p4gen sim run`` makes them: all collectives beside NumPy's, and every byte of memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from p4gen.errors import InputError
from p4gen.groups import SwitchConfig
from p4gen.host.transport.clock import SECOND, US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.net.order import RunOrder
from p4gen.net.result import RunResult
from p4gen.net.world.faults import Faults, Impairment, Outage, Script
from p4gen.net.world.watching import Passage
from p4gen.papers.scin import control, simulation, words
from p4gen.papers.scin.codes import Status
from p4gen.papers.scin.control import Pattern, PullContext
from p4gen.papers.scin.experiments.study import star
from p4gen.papers.scin.ranks.calls import PullCall, draw
from p4gen.papers.scin.ranks.options import CALL
from p4gen.papers.scin.running import PullRun, fitted
from p4gen.papers.scin.runs import FACET
from p4gen.papers.scin.simulation import PullConfig, PullSimulation
from p4gen.papers.scin.spec import ScinSpec
from p4gen.rocev2 import psn as serial
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

TROUBLES = {
    "loss of 0.1 %": Faults((Impairment(loss=0.001),)),
    "loss of 10 %": Faults((Impairment(loss=0.1),)),
    "bursts": Faults((Impairment(loss=0.05, burst=2),)),  # of packets: as many may be tried in vain
    "disorder": Faults((Impairment(reorder=0.1, duplicate=0.1),)),
    "corruption": Faults((Impairment(corrupt=0.05),)),
    "everything": Faults((Impairment(loss=0.02, reorder=0.05, duplicate=0.05, corrupt=0.02),)),
    "a link down": Faults(outages=(Outage("h1", 3 * US, 23 * US),)),
}
COMPLETIONS = ("strict", "ordered")
STAR = load_topology("star-4")
EVERYTHING = TROUBLES["everything"]
MIXED = {"sources": "0,2", "destinations": "1,2"}
FOREVER = 60 * SECOND
"""Longer than any run waits."""
SMALL = {"lanes": 8, "waves": 4, "wave": 4, "contexts": 4, "edges": 4, "ports": 8, "patience": 4000}


def of(hosts: int) -> TopologySpec:
    return star(hosts, 100_000_000_000, "1us", "400ns")


@cache
def parsed(**options: str) -> dict[str, Any]:
    return {name: option.parse(options.get(name, option.default)) for name, option in FACET.options.items()}


def order(topology: TopologySpec = STAR, collective: str = Collective.ALLREDUCE, **fields: Any) -> RunOrder[ScinSpec]:
    """A small run of 21 packets; ``spec`` are fields of the program, ``options`` those of the call."""
    spec = ScinSpec.model_validate(SMALL | fields.pop("spec", {}))
    options = (MIXED if collective == CALL else {}) | fields.pop("options", {})
    base = RunOrder(
        topology,
        spec,
        str(collective),
        None if collective == Collective.BARRIER else 656,
        repeat=2,
        faults=Faults(),
        seed=1,
        recovery=None,
        timeout=None,
        retry_count=None,
        dcqcn=None,
        engine="jit",
        options=parsed(**options),
    )
    return replace(base, **fields)


def passed(asked: RunOrder[ScinSpec]) -> RunResult:
    result = PullRun(asked).run()
    assert (result.stuck, result.errors, result.silent) == ((), (), ())
    return result


@pytest.mark.sample(14)
@pytest.mark.parametrize("collective", FACET.collectives)
@pytest.mark.parametrize("in_place", ["yes", "no"])
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_without_losses_nothing_is_sent_again(collective: str, in_place: str, completion: str, seed: int) -> None:
    spec = {"completion": completion}
    result = passed(order(collective=collective, spec=spec, options={"in_place": in_place}, seed=seed))
    assert (result.values["again"], result.naks, result.timeouts, dict(result.drops)) == (0, 0, 0, {})
    assert result.duration > 0


@pytest.mark.sample(12)
@pytest.mark.parametrize("collective", FACET.collectives)
@pytest.mark.parametrize("resumption", FACET.options["resumption"].values)
@pytest.mark.parametrize("recovery", [Recovery.GO_BACK_N, Recovery.SELECTIVE_REPEAT])
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_what_goes_wrong_is_mended(
    collective: str, resumption: str, recovery: Recovery, trouble: str, completion: str, seed: int
) -> None:
    options = {"resumption": resumption, "in_place": "no" if seed % 2 else "yes", "late": "30us"}
    spec, faults = {"completion": completion}, TROUBLES[trouble]
    passed(order(collective=collective, spec=spec, options=options, recovery=recovery, faults=faults, seed=seed))


@pytest.mark.parametrize("ip", ["6", "both"])
@pytest.mark.parametrize("trouble", TROUBLES)
def test_what_goes_wrong_over_ipv6_is_mended(ip: str, trouble: str, seed: int) -> None:
    passed(order(spec={"ip": ip}, options={"late": "30us"}, faults=TROUBLES[trouble], seed=seed))


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_many_calls_in_place_by_ranks_that_are_late(completion: str, seed: int) -> None:
    """Each in the memory of the one before, while flags of that one are still on their way to others, or results."""
    spec = {"completion": completion}
    passed(order(size=96, repeat=200, spec=spec, options={"late": "3us"}, faults=EVERYTHING, seed=seed))


@pytest.mark.sample(1)
@pytest.mark.parametrize("masks", [("0,1", "1,2"), ("0,1,2", "3"), ("3", "0,1,2,3")])
def test_calls_and_barriers_alternate(masks: tuple[str, str], seed: int) -> None:
    """Where results are flags: of a rank that is read only, of one that is written to only, and of barriers."""
    sources, destinations = (sum(1 << int(rank) for rank in mask.split(",")) for mask in masks)
    spec = ScinSpec.model_validate(SMALL | {"completion": "ordered"})
    config = PullConfig(STAR, spec, (Pattern(sources, destinations),), faults=EVERYTHING, engine="jit", seed=seed)
    run = PullSimulation(config)
    chance = np.random.default_rng(seed)
    for number in range(12):
        if number % 3 == 1:
            run.start(0, 0, {}, {})
            run.settle()
            continue
        given = [chance.integers(-(1 << 28), 1 << 28, 8 * (number + 1), np.int32) for _ in range(4)]
        total = sum(given[rank] for rank in range(4) if sources >> rank & 1)
        for rank, got in enumerate(run.call(0, given, in_place=True)):
            assert (got is not None) == bool(destinations >> rank & 1)
            assert got is None or (got == total).all()
    assert {status for member in run.members[0].values() for status in member.statuses} == {Status.SUCCESS}


@pytest.mark.parametrize(("drop", "mended"), [("1", True), ("6-9", False), ("12-15", False)])
def test_slots_that_are_released_early_need_a_network_without_losses(drop: str, mended: bool) -> None:
    """The paper's design: a WRITE that is lost when others have taken its slot is not written again."""
    asked = order(spec={"variant": "early-release", "waves": 2, "wave": 2, "patience": 5}, size=1024, repeat=1)
    passed(asked)
    lost = replace(asked, faults=Faults(scripts=(Script.parse(f"drop {drop} DOWN_DATA of rank 1"),)))
    errors = PullRun(lost).run().errors
    # The first packet is a READ, which comes again.
    silent = tuple(f"rank {rank}, call 1: has ended with the status 3, silence" for rank in range(4))
    assert errors == (() if mended else silent)


def test_results_that_are_flags_come_two_links_earlier() -> None:
    """A link takes 1 us; the results' and the ACKs' bytes on it are the rest."""
    times = [passed(order(spec={"completion": completion}, size=64, repeat=1)).duration for completion in COMPLETIONS]
    assert 2 * US < times[0] - times[1] < 3 * US


@pytest.mark.parametrize("collective", [Collective.ALLREDUCE, Collective.ALLGATHER])
def test_groups_at_once(collective: str, seed: int) -> None:
    passed(order(collective=collective, spec={"contexts": 16}, concurrent=4, faults=EVERYTHING, seed=seed))


@pytest.mark.sample(2)
@pytest.mark.parametrize("op", ["sum", "min", "max"])
@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("overflow", ["saturate", "wrap"])
def test_reductions(op: str, dtype: str, overflow: str, seed: int) -> None:
    passed(order(spec={"op": op, "dtype": dtype, "overflow": overflow}, faults=EVERYTHING, seed=seed))


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("op", ["sum", "max"])
@pytest.mark.parametrize("collective", FACET.collectives)
@pytest.mark.parametrize("in_place", ["yes", "no"])
def test_floating_point_numbers(dtype: str, op: str, collective: str, in_place: str, seed: int) -> None:
    asked = order(collective=collective, spec={"op": op, "dtype": dtype}, options={"in_place": in_place}, seed=seed)
    passed(replace(asked, faults=EVERYTHING))


@pytest.mark.sample(2)
@pytest.mark.parametrize(("waves", "wave"), [(1, 1), (1, 8), (2, 4), (8, 2), (16, 1)])
def test_masks_and_waves(waves: int, wave: int, seed: int) -> None:
    chance = np.random.default_rng(seed)
    spec = {"waves": waves, "wave": wave}
    for size in (4, 32, 388):
        masks = (",".join(str(rank) for rank in range(4) if mask >> rank & 1) for mask in chance.integers(1, 16, 2))
        options = dict(zip(("sources", "destinations"), masks, strict=True))
        passed(order(collective=CALL, size=size, spec=spec, options=options, faults=EVERYTHING, seed=seed))


def test_no_more_reads_are_outstanding_than_nics_answer_again(seed: int) -> None:
    """At no time does a rank have READs of more than k waves of which not all packets are acknowledged; the last wave
    of a call is short."""
    spec = {"waves": 2, "wave": 4}
    run = PullRun(order(size=21 * 32, spec=spec, faults=EVERYTHING, repeat=8, seed=seed))
    switch, first = run.network.switches["s0"], run.first_psns[0]
    most = 0

    def watch(_: Passage) -> None:
        nonlocal most
        active = words.ACTIVE.unpack(switch.register("track_call.active", 0))
        if not active["packets"]:
            return
        held = [words.ACKED.unpack(switch.register(f"receive_ack.edge_{edge}.acked", 0)) for edge in (1, 2, 3, 4)]
        left = min((ack["psn"] + 1 if ack["epoch"] else first) - active["first"] for ack in held) % (1 << 24)
        read = (words.NEXT_READ.unpack(switch.register("issue_wave.next_read", 0))["psn"] - active["first"]) % (1 << 24)
        most = max(most, -(-read // 4) - left // 4)

    run.network.watch(watch)
    result = run.run()
    assert (result.stuck, result.errors) == ((), ())
    assert most == 2


@pytest.mark.sample(1)
@pytest.mark.parametrize("hosts", [8, 32])
@pytest.mark.parametrize("collective", FACET.collectives)
@pytest.mark.parametrize("resumption", FACET.options["resumption"].values)
@pytest.mark.parametrize("trouble", ["bursts", "loss of 10 %"])
@pytest.mark.long
def test_more_ranks(hosts: int, collective: str, resumption: str, trouble: str, seed: int) -> None:
    size = None if collective == Collective.BARRIER else hosts * 68
    spec = {"edges": hosts, "ports": hosts, "contexts": hosts}
    options, faults = {"resumption": resumption}, TROUBLES[trouble]
    passed(order(of(hosts), collective, size=size, spec=spec, options=options, faults=faults, seed=seed))


@pytest.mark.parametrize("kind", ["UP_CONTROL", "UP_DATA", "UP_ACK", "DOWN_DATA", "DOWN_ACK"])
def test_scripted_losses(kind: str) -> None:
    """Of every kind of packet that a rank sends or gets, the second and the third are lost."""
    result = passed(order(faults=Faults(scripts=(Script.parse(f"drop 2-3 {kind} of rank 1"),)), repeat=4))
    assert sum(count for reason, count in result.drops.items() if "script" in reason) == 2


@pytest.mark.parametrize("kind", ["UP_DATA", "DOWN_DATA"])
@pytest.mark.parametrize("completion", COMPLETIONS)
def test_many_attempts_in_a_row_may_be_lost(kind: str, completion: str) -> None:
    """As bursts lose them: with doubled waits, 4,000 ticks had no thirteenth."""
    faults = Faults(scripts=(Script.parse(f"drop 6-35 {kind} of rank 1"),))
    passed(order(spec={"waves": 1, "wave": 1, "completion": completion}, repeat=1, faults=faults))


@pytest.mark.parametrize("icrc", ["recompute", "set", "ignore"])
def test_nics_check_the_icrc_that_programs_give(icrc: str) -> None:
    passed(order(spec={"icrc": icrc}))


@pytest.mark.parametrize("completion", COMPLETIONS)
def test_a_dead_rank_ends_the_calls_of_all_others_with_a_status(completion: str) -> None:
    outage = Outage("h2", 2 * US, FOREVER)
    spec = {"patience": 5, "completion": completion}
    result = PullRun(order(spec=spec, size=4096, faults=Faults(outages=(outage,)))).run()
    assert not result.ok
    assert "no packet has arrived since" in result.stuck[0]
    assert result.errors == tuple(f"rank {rank}, call 1: has ended with the status 3, silence" for rank in (0, 1, 3))


def test_a_rank_that_dies_before_it_has_its_result_ends_the_next_call_of_all_others() -> None:
    """Where results are flags the others have theirs."""
    outage = Outage("h2", 4 * US + US // 2, FOREVER)  # when all operands have been read
    spec = {"patience": 5, "completion": "ordered"}
    result = PullRun(order(spec=spec, size=64, faults=Faults(outages=(outage,)))).run()
    assert result.errors == tuple(f"rank {rank}, call 2: has ended with the status 3, silence" for rank in (0, 1, 3))


def test_a_rank_that_learns_of_an_abort_between_calls_ends_its_next_one_so() -> None:
    spec = ScinSpec.model_validate(SMALL | {"patience": 5, "completion": "ordered"})
    faults = Faults(outages=(Outage("h2", 3_700_000, FOREVER),))
    run = PullSimulation(PullConfig(STAR, spec, (Pattern(0b1111, 0b1111),), faults=faults, engine="jit"))
    buffers = {rank: run.register(rank, np.zeros(8, ">i4")) for rank in range(4)}
    run.start(0, 1, buffers, buffers)
    others = [run.members[0][rank] for rank in (0, 1, 3)]
    run.settle(lambda: all(member.done for member in others))
    assert not run.members[0][2].done
    run.settle(lambda: run.network.loop.now > 400 * US)
    for member in others:
        member.arrive(0)
    run.settle(lambda: all(member.done for member in others))
    assert [member.statuses for member in others] == [[Status.SUCCESS, Status.SILENCE]] * 3


def test_a_rank_that_was_away_gets_its_flag() -> None:
    """Its link is down for longer than a call has patience, when all data has come."""
    script = Script.parse("drop 4-12 DOWN_DATA of rank 2")  # after a READ and two WRITEs: flags
    result = passed(order(spec={"patience": 3}, size=64, repeat=1, faults=Faults(scripts=(script,))))
    assert result.values["again"] == 9


def test_the_call_whose_number_is_that_before_the_first_one_gets_its_lost_flag_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The 2^24th call of a context. The register holds what the calls before have left; ranks count from there."""
    configured = control.configuration

    def later(spec: ScinSpec, contexts: Sequence[PullContext]) -> SwitchConfig:
        return configured(spec, [replace(c, first_psn=serial.add(c.first_psn, 1)) for c in contexts])

    monkeypatch.setattr(simulation, "configuration", later)
    spec = ScinSpec.model_validate(SMALL)
    faults = Faults(outages=(Outage("s0>h1", 0, 8 * US),))  # the flag of a barrier is its first packet on that link
    run = PullSimulation(PullConfig(of(2), spec, (Pattern(0b11, 0b11),), faults=faults, seed=3, engine="jit"))
    (number,) = run.first_psns
    left = {"epoch": 1, "first": serial.add(number, 1), "packets": 0, "call": serial.add(number, -1), "status": 0}
    run.network.switches["s0"].write_register("active", 0, words.active(spec).pack(**left, begun=1))
    run.start(0, 0, {}, {})
    run.settle()
    assert run.drops()["s0>h1 link_down"] > 0
    assert all(member.done for member in run.members[0].values())


@pytest.mark.parametrize("collective", [Collective.REDUCE_SCATTER, Collective.ALLGATHER, CALL])
@pytest.mark.parametrize("in_place", [True, False])
def test_memory_that_differs_is_told(collective: str, in_place: bool) -> None:
    """One wrong byte anywhere: in an operand, in a result, where a rank gets none, in what fills a packet."""
    call = PullCall(str(collective), 4, 44, 0, Pattern(0b0101, 0b0110), in_place)
    run = PullSimulation(PullConfig(STAR, ScinSpec.model_validate(SMALL), call.patterns, engine="jit"))
    drawn = draw(call, run.config.spec, np.random.default_rng(1))
    ranks = run.communicators(range(len(call.patterns)))
    held = []
    for communicator, values in zip(ranks, drawn.values, strict=True):
        operand = communicator.register(values, call.operand_parts)
        result = None
        if not in_place:
            result = communicator.register(np.zeros(call.result_elements, values.dtype), call.result_parts)
        held.append((operand, result))
    for rank in call.participants:
        call.start(ranks[rank], *held[rank])
    run.settle()
    for rank in call.participants:
        operand, result = held[rank]
        assert ranks[rank].status is Status.SUCCESS
        assert drawn.problem(rank, operand, result) == ""
        for memory, name in ((operand, "operand"), *(((result, "result"),) if result else ())):
            buffer = memory.region.buffer
            for at in (0, len(buffer) // 2, len(buffer) - 1):
                buffer[at] ^= 1
                assert f"bytes of its {name}: {buffer[at]} at {at:,}, not" in drawn.problem(rank, operand, result)
                buffer[at] ^= 1


def test_a_run_with_wrong_memory_fails() -> None:
    """A rank's operand is changed while the switch reads it."""
    run = PullRun(order(repeat=1))
    caller = run.groups[0].callers[1]

    def change(_: object) -> None:
        caller.held["int32"][0].region.buffer[3] ^= 1

    run.network.loop.at(US, change)
    wrong = run.run().errors
    assert [error.partition(":")[0] for error in wrong] == [f"rank {rank}, call 1" for rank in range(4)]
    assert "bytes of its operand: " in wrong[0]


def test_operands_are_what_the_program_reduces() -> None:
    masks = Pattern(0b1111, 0b1111)
    run = PullSimulation(PullConfig(STAR, ScinSpec.model_validate(SMALL), (masks,), engine="jit"))
    rank = run.communicators(range(1))[2]
    values = np.arange(12, dtype=np.int32)
    operand = rank.register(values, 4)
    assert (operand.packets, operand.part(2).offset, operand.array().tolist()) == (1, 64, values.tolist())
    with pytest.raises(InputError, match="elements are uint32; scin_sum_int32_x8_k4_p4_e4 reduces int32"):
        rank.register(values.astype(np.uint32))
    with pytest.raises(InputError, match="10 elements do not divide among 4"):
        rank.register(values[:10], 4)
    with pytest.raises(InputError, match="rank 2 is in no context of sources 0xf and destinations 0x2"):
        rank.reduce(1, operand)
    with pytest.raises(InputError, match="root 4 is not a rank of this group of 4"):
        rank.broadcast(4, operand)
    with pytest.raises(InputError, match="an array of 1 parts; there are 4 ranks"):
        rank.reduce_scatter(rank.register(values))
    with pytest.raises(InputError, match="an operand of 1 packets, with room for a result of 2"):
        rank.all_reduce(operand, rank.register(values))


def test_the_program_is_fitted_to_the_run_unless_it_says_otherwise() -> None:
    spec = fitted(ScinSpec(), of(16), 17)
    assert (spec.contexts, spec.edges, spec.waves) == (17, 16, 16)
    with pytest.raises(InputError, match="context 2: the program has 2"):
        PullRun(order(collective=Collective.ALLGATHER, spec={"contexts": 2}))


@pytest.mark.parametrize(
    ("collective", "fields", "cause"),
    [
        (Collective.ALLREDUCE, {"size": 10}, "allreduce of 10 bytes: it has to be a positive multiple of 4"),
        (CALL, {"size": 10}, "call of 10 bytes: it has to be a positive multiple of 4"),
        (Collective.ALLGATHER, {"size": 20}, "allgather of 20 bytes: it has to be a positive multiple of 16"),
        (Collective.ALLREDUCE, {"size": 0}, "a positive multiple of 4"),
        (Collective.BARRIER, {"size": 4}, "a barrier has no data"),
        (Collective.ALLREDUCE, {"size": 1 << 28}, "size: error: 8,388,608 packets; a call has 8,388,607 at most"),
        (Collective.ALLREDUCE, {"size": 1 << 29}, "all ranks' data together have 1,024 MiB at most"),
        (Collective.REDUCE, {"root": 4}, "root 4 is not a rank"),
        (Collective.REDUCE, {"options": {"sources": "1"}}, "sources: error: is for call, not for reduce"),
        (CALL, {"options": {"destinations": "4"}}, "destinations: error: there are the ranks 0 to 3"),
        (Collective.ALLREDUCE, {"dcqcn": DcqcnConfig()}, "dcqcn: error: "),
        (Collective.ALLREDUCE, {"recovery": Recovery.IDEAL}, "recovery: error: ideal is not for"),
        (
            Collective.REDUCE,
            {"spec": {"waves": 32}, "faults": EVERYTHING},
            "waves: error: NICs answer their 16 newest",
        ),
        (Collective.ALLGATHER, {"concurrent": 100}, "the run takes 400 contexts; a switch has 256 at most"),
        (Collective.BARRIER, {"topology": load_topology("tree-3-2")}, "SCIN's groups are around one"),
        (Collective.BARRIER, {"topology": of(33)}, "star-33 has 33 ranks; a group has 32 at most"),
    ],
)
def test_what_cannot_be_run(collective: str, fields: dict[str, Any], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        PullRun(order(collective=collective, **fields))


@pytest.mark.parametrize(
    ("name", "text", "cause"),
    [
        ("sources", "0,x", "ranks such as 0,3, or all, not '0,x'"),
        ("destinations", "32", "ranks such as 0,3"),
        ("in_place", "maybe", "must be one of yes, no, not 'maybe'"),
        ("late", "11ms", "10ms late at most"),
        ("resumption", "never", "must be one of strict, rxe, not 'never'"),
    ],
)
def test_options_with_other_values(name: str, text: str, cause: str) -> None:
    with pytest.raises(ValueError, match=cause):
        FACET.options[name].read(text)


@pytest.mark.parametrize("completion", COMPLETIONS)
@pytest.mark.parametrize("patience", [64, 255])
def test_a_slow_link_does_not_collapse(completion: str, patience: int) -> None:
    """A window takes 0.6 ms of a link of 1 Gb/s, thirty ticks: what is asked for again is little of it all."""
    topology = TopologySpec.model_validate(
        {
            "name": "slow",
            "switches": ["s0"],
            "hosts": ["h0", "h1"],
            "defaults": {"bandwidth": "1G", "delay": "10us"},
            "links": [["h0", "s0"], ["h1", "s0"]],
        }
    )
    spec = {"lanes": 256, "waves": 16, "edges": 2, "ports": 2, "contexts": 1, "patience": patience}
    result = passed(order(topology, size=256 << 10, repeat=1, spec=spec | {"completion": completion}))
    packets = 2 * 256
    assert result.packet_hops < 3 * packets, "each is read, written and acknowledged, a READ asks for four"
