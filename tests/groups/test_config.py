"""What a context becomes in a switch, pattern by pattern; and placements that are refused with the reason."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pydantic import ValidationError

from p4gen.errors import InputError
from p4gen.groups import Edge, Endpoint, GroupContext, NextHop, Pattern, Route, SwitchConfig, configure
from p4gen.groups.group import Memory
from p4gen.model.entries import Action, CloneSession, Exact, Lpm, Replica
from p4gen.papers.epic.spec import EpicSpec, Mode, Verb
from p4gen.vocabulary import Reliability
from p4gen.vocabulary.message import Collective

SPEC = EpicSpec(lanes=8, fan_in=4, groups=2)
AUGMENTED = EpicSpec(mode=Mode.III, lanes=8, fan_in=4, groups=2, ports=8)
PIPED = EpicSpec(lanes=8, fan_in=4, groups=4, ports=8, pipelines=2)
ALLREDUCE, REDUCE, BROADCAST = Collective.ALLREDUCE, Collective.REDUCE, Collective.BROADCAST
ALL = Pattern(ALLREDUCE)
UP_DATA, DOWN_DATA, UP_ANSWER, DOWN_ANSWER = 1, 2, 3, 4


def group(context: int = 0, ranks: int = 2, base: int = 0) -> GroupContext:
    edges = tuple(
        Edge(
            edge_id=1 + context * 4 + i,
            port=i,
            local=Endpoint(mac=0x02, ip=0x0A000001, qp=0x100 + context * 16 + i),
            remote=Endpoint(mac=0x10 + i, ip=0x0A000010 + i, qp=0x200 + i),
        )
        for i in range(ranks)
    )
    return GroupContext(context, edges, base=base, slots=128)


def over_ipv6(of: GroupContext) -> GroupContext:
    """The same group at addresses of IPv6."""

    def end(endpoint: Endpoint) -> Endpoint:
        return replace(endpoint, ip=endpoint.ip | 0xFD00 << 112)

    return replace(of, edges=tuple(replace(e, local=end(e.local), remote=end(e.remote)) for e in of.edges))


def flows(config: SwitchConfig, context: int = 0) -> dict[tuple[int, int], tuple[str, dict[str, int]]]:
    """(pattern, traffic) → (action, its arguments); a multicast group is told by the bits of the edges it reaches."""
    bits = {0: 0}
    for tree in config.multicast_groups:
        bits[tree.group_id] = sum(1 << (replica.rid - 1 - context * 4) for replica in tree.replicas)
    found = {}
    for entry in config.entries:
        if entry.table == "flows" and entry.match["context"] == Exact(context):
            pattern, traffic = entry.match["pattern"], entry.match["traffic"]
            assert isinstance(pattern, Exact)
            assert isinstance(traffic, Exact)
            args = {
                name: bits[value] if name.endswith("_group") else value for name, value in entry.action.args.items()
            }
            found[pattern.value, traffic.value] = (entry.action.name, args)
    return found


def codes(config: SwitchConfig) -> dict[int, dict[str, int]]:
    """Collective and root, as on the wire → what ``set_pattern`` gets."""
    found = {}
    for entry in config.entries:
        if entry.table == "patterns":
            code = entry.match["code"]
            assert isinstance(code, Exact)
            found[code.value] = dict(entry.action.args)
    return found


def test_each_edge_gets_an_endpoint_an_address_and_a_copy() -> None:
    config = configure(SPEC, [group()])
    tables = [entry.table for entry in config.entries]
    assert {name: tables.count(name) for name in set(tables)} == {
        "addresses": 1,
        "neighbours": 1,
        "contexts": 1,
        "patterns": 2,
        "flows": 2,
        "endpoints": 2,
        "entrances": 2,
        "edges": 2,
    }
    (tree,) = config.multicast_groups
    assert tree.replicas == (Replica(0, 1), Replica(1, 2))
    assert config.clone_sessions == ()


def entrances(config: SwitchConfig) -> list[tuple[int, int]]:
    """QPs of endpoints, and the ports that their packets come in by."""
    keys = [entry.match for entry in config.entries if entry.table == "entrances"]
    found = [(key["hdr.bth.dest_qp"], key["port"]) for key in keys]
    return [(qp.value, port.value) for qp, port in found if isinstance(qp, Exact) and isinstance(port, Exact)]


def test_an_endpoint_has_the_ports_that_its_packets_come_in_by() -> None:
    first, second = group().edges
    config = configure(SPEC, [replace(group(), edges=(first, replace(second, more_ports=(5, 7))))])
    assert entrances(config) == [(first.local.qp, 0), (second.local.qp, 1), (second.local.qp, 5), (second.local.qp, 7)]
    (tree,) = config.multicast_groups
    assert tree.replicas == (Replica(0, 1), Replica(1, 2))


def test_an_internal_edge_has_no_port() -> None:
    spec = SPEC.model_copy(update={"pipelines": 2})
    inner = (Endpoint(1, 0x0A000001, 0x200), Endpoint(1, 0x0A000001, 0x201))
    ends = [
        replace(
            group().edges[1], local=inner[pipeline], remote=inner[1 - pipeline], first_hop=False, edge_id=2 + pipeline
        )
        for pipeline in (0, 1)
    ]
    upper = replace(group(), edges=(group().edges[0], replace(ends[0], to_pipeline=1)))
    far = replace(group().edges[0], port=16, edge_id=4, local=Endpoint(1, 0x0A000001, 0x300))
    lower = replace(group(context=1), edges=(replace(ends[1], to_pipeline=0, port=16), far), pipeline=1)
    ports = entrances(configure(spec, [upper, lower]))
    assert ports == [(upper.edges[0].local.qp, 0), (0x300, 16)]


def test_a_root_gives_results_back_and_reflects_acks() -> None:
    config = configure(SPEC, [replace(group(base=128, ranks=3), epoch=7)])
    aggregate = {"base": 128, "mask": 127, "source_mask": 7, "out_group": 7, "alone": 1}
    assert flows(config) == {(1, UP_DATA): ("aggregate", aggregate), (1, UP_ANSWER): ("reflect", {})}
    assert codes(config) == {1 << 5: {"pattern": 1, "toward": 0}, 4 << 5: {"pattern": 1, "toward": 0}}
    assert next(e.action.args for e in config.entries if e.table == "contexts") == {"epoch": 7}


SERVES_ALL = (Pattern(ALLREDUCE, 0, 2), Pattern(REDUCE, 5, 0), Pattern(BROADCAST, 5, 0))
"""A node with two children (edges 0 and 1) and a parent (edge 2); rank 5 is behind edge 0."""


def test_mode_ii_node_below_the_root() -> None:
    config = configure(SPEC, [replace(group(ranks=3), patterns=SERVES_ALL)])
    slots = {"base": 0, "mask": 127, "alone": 0}
    assert flows(config) == {
        (1, UP_DATA): ("aggregate", {**slots, "source_mask": 0b011, "out_group": 0b100}),
        (1, DOWN_DATA): ("replicate", {"out_group": 0b011}),
        (1, UP_ANSWER): ("reflect", {}),
        (2, UP_DATA): ("aggregate", {**slots, "source_mask": 0b110, "out_group": 0b001}),
        (2, DOWN_ANSWER): ("replicate", {"out_group": 0b110}),
        (3, DOWN_DATA): ("pass_on", {"base": 0, "mask": 127, "out_group": 0b110}),
        (3, UP_ANSWER): ("combine", {"out_mask": 0b110, "out_group": 0b001}),
    }
    assert codes(config) == {
        1 << 5: {"pattern": 1, "toward": 0b100},
        4 << 5: {"pattern": 1, "toward": 0b100},
        2 << 5 | 5: {"pattern": 2, "toward": 0b001},
        3 << 5 | 5: {"pattern": 3, "toward": 0b001},
    }
    assert len(config.multicast_groups) == len({frozenset(tree.replicas) for tree in config.multicast_groups}) == 4


def test_mode_iii_root_has_one_pipe() -> None:
    config = configure(AUGMENTED, [replace(group(ranks=3), first_psn=0xABCDEF)])
    pipe = {"base": 0, "mask": 127, "source_mask": 7, "pipe": 0, "sync": 0}
    assert flows(config) == {
        (1, UP_DATA): ("accept", {**pipe, "out_group": 7}),
        (1, UP_ANSWER): ("acknowledge", {**pipe, "out_mask": 7, "answer_group": 0}),
    }
    assert set(codes(config)) == {0, 1 << 5, 4 << 5}, "what comes unannounced belongs to the only pattern"
    assert next(e.action.args for e in config.entries if e.table == "contexts") == {"epoch": 1, "first_psn": 0xABCDEF}


def test_mode_iii_node_below_the_root_has_a_pipe_each_way() -> None:
    config = configure(AUGMENTED, [replace(group(ranks=3), patterns=SERVES_ALL, base_down=256)])
    up = {"base": 0, "mask": 127, "pipe": 0}
    down = {"base": 256, "mask": 127, "pipe": 1}
    all_up = {**up, "source_mask": 0b011, "sync": 0}
    all_down = {**down, "source_mask": 0b100, "sync": 0}
    reduce_up = {**up, "source_mask": 0b110, "sync": 1}
    broadcast_down = {**down, "source_mask": 0b001, "sync": 1}
    assert flows(config) == {
        (1, UP_DATA): ("accept", {**all_up, "out_group": 0b100}),
        (1, DOWN_ANSWER): ("acknowledge", {**all_up, "out_mask": 0b100, "answer_group": 0}),
        (1, DOWN_DATA): ("accept", {**all_down, "out_group": 0b011}),
        (1, UP_ANSWER): ("acknowledge", {**all_down, "out_mask": 0b011, "answer_group": 0}),
        (2, UP_DATA): ("accept", {**reduce_up, "out_group": 0b001}),
        (2, DOWN_ANSWER): ("acknowledge", {**reduce_up, "out_mask": 0b001, "answer_group": 0b110}),
        (3, DOWN_DATA): ("accept", {**broadcast_down, "out_group": 0b110}),
        (3, UP_ANSWER): ("acknowledge", {**broadcast_down, "out_mask": 0b110, "answer_group": 0b001}),
    }
    assert codes(config)[0] == codes(config)[1 << 5], "what comes unannounced is told so as in an AllReduce"


def test_mode_iii_endpoints_know_their_port_and_whether_a_rank_is_there() -> None:
    placed = group(ranks=3)
    edges = (*placed.edges[:2], replace(placed.edges[2], first_hop=False))
    config = configure(AUGMENTED, [replace(placed, edges=edges, patterns=SERVES_ALL, base_down=128)])
    ends = [entry.action.args for entry in config.entries if entry.table == "endpoints"]
    assert [(end["port"], end["first_hop"], end["edge_bit"]) for end in ends] == [(0, 1, 1), (1, 1, 2), (2, 0, 4)]
    ports = tuple(CloneSession(1 + port, (Replica(port),)) for port in range(8))
    assert config.clone_sessions == (*ports, CloneSession(511, (Replica(0),)))


def halves() -> tuple[GroupContext, GroupContext]:
    """Two ranks on either pipeline of ``PIPED``: the root in pipeline 0, joined to pipeline 1 by an internal edge."""
    here, there = Endpoint(0x02, 0x0A000001, 0x180), Endpoint(0x02, 0x0A000001, 0x181)
    first, second = group(ranks=2), group(1, ranks=2)
    down = Edge(15, 0, here, there, first_hop=False, to_pipeline=1)
    up = Edge(16, 0, there, here, first_hop=False, to_pipeline=0)
    moved = tuple(replace(edge, port=edge.port + 4) for edge in second.edges)
    return (
        replace(first, edges=(*first.edges, down)),
        replace(second, edges=(*moved, up), pipeline=1, patterns=(Pattern(ALLREDUCE, 0, 2),)),
    )


def test_internal_edges_are_recirculated_to_each_others_ends() -> None:
    config = configure(PIPED, halves())
    internal = {
        entry.match["edge"]: entry.action
        for entry in config.entries
        if entry.table == "edges" and entry.action.name == "set_internal"
    }
    ends = {
        "src_mac": 0x02, "dst_mac": 0x02, "src_address": 0x0A000001, "dst_address": 0x0A000001, "udp_src_port": 49152,
    }  # fmt: skip
    assert internal == {
        Exact(15): Action("set_internal", {**ends, "dest_qp": 0x181, "to_pipe": 1}),
        Exact(16): Action("set_internal", {**ends, "dest_qp": 0x180, "to_pipe": 0}),
    }
    assert (0, 16) in {(r.port, r.rid) for tree in config.multicast_groups for r in tree.replicas}


def test_numbers_of_multicast_groups_do_not_depend_on_what_else_is_configured() -> None:
    second = replace(group(1, ranks=3, base=128), patterns=SERVES_ALL)
    together = configure(SPEC, [group(), second]).multicast_groups
    assert set(configure(SPEC, [second]).multicast_groups) <= set(together)
    fewer = configure(SPEC, [replace(second, patterns=SERVES_ALL[:2])]).multicast_groups
    assert set(fewer) < set(together)
    assert len({tree.group_id for tree in together}) == len(together)


def test_routes_are_prefixes_over_next_hops() -> None:
    config = configure(
        SPEC, [], [Route("10.1.0.0/16", first=3), Route("0.0.0.0/0", first=4, count=2)], [NextHop(3, 1, 2, 3)]
    )
    single, several, hop = config.entries
    assert single.match == {"hdr.ipv4.dst_addr": Lpm(0x0A010000, 16)}
    assert (single.action.name, several.action.name, hop.action.name) == ("set_next_hop", "set_ecmp", "send")


def refused(spec: EpicSpec, *groups: GroupContext) -> list[str]:
    with pytest.raises(InputError) as caught:
        configure(spec, groups)
    return [diagnostic.message for diagnostic in caught.value.diagnostics]


def serving(*patterns: Pattern) -> GroupContext:
    return replace(group(), patterns=patterns)


@pytest.mark.parametrize(
    ("groups", "reason"),
    [
        ([group(ranks=5)], "takes 1 to 4"),
        ([group(context=2, base=0)], "contexts of this program are 0 to 1"),
        ([replace(group(), slots=64)], "at least 2 x W x M = 128"),
        ([replace(group(), slots=130)], "power of two"),
        ([group(base=192)], "exceed the switch's 256"),
        ([group(), group(context=1, base=64)], "overlap at slot 64"),
        ([replace(group(), epoch=0)], "epoch 0"),
        ([replace(group(), first_psn=1 << 24)], "24 bits"),
        ([replace(group(), pipeline=1)], "in pipeline 1; the program has 1"),
        ([group(), replace(group(), base=128)], "context 0 is used 2 times"),
        ([group(), replace(group(context=1, base=128), edges=group().edges)], "endpoint (10.0.0.1, QP 256) is used 2"),
        ([group(), replace(group(context=1, base=128), edges=group().edges)], "edge id 1 is used 2 times"),
        ([group(0), group(1, base=128), group(2)], "room for 2"),
        ([replace(group(), edges=(replace(group().edges[0], port=32),))], "the switch has 32 ports"),
        ([replace(group(), edges=(replace(group().edges[0], more_ports=(0,)),))], "edge 1: port 0 is given 2 times"),
        ([replace(group(), edges=(replace(group().edges[0], more_ports=(40,)),))], "edge 1: there is no port 40"),
        (
            [replace(group(), edges=(replace(group().edges[0], more_ports=tuple(range(1, 17))),))],
            "by 17 ports of endpoints; the program has room for 16",
        ),
        ([replace(group(), edges=(replace(group().edges[0], edge_id=65536),))], "edge id 65536 is not in 1 to 65535"),
        ([over_ipv6(group())], "fd00::a00:11 is an address of IPv6; the program takes RoCEv2 over IPv4 only"),
        ([serving()], "serves no pattern"),
        ([serving(ALL, ALL)], "allreduce 0 is given 2 times"),
        ([serving(Pattern(Collective.BARRIER))], "barrier is no pattern of its own"),
        ([serving(Pattern(ALLREDUCE, 1))], "allreduce has root 1"),
        ([serving(Pattern(REDUCE, 32, 0))], "a root is a rank from 0 to 31"),
        ([serving(Pattern(BROADCAST, 0))], "not said which edge"),
        ([serving(Pattern(REDUCE, 0, 2))], "edge number 2 leads toward the root; there are 2"),
    ],
)
def test_refused_placements(groups: list[GroupContext], reason: str) -> None:
    assert any(reason in message for message in refused(SPEC, *groups))


def test_all_reasons_are_given_at_once() -> None:
    messages = refused(SPEC, replace(group(ranks=5), epoch=0), group(context=7, base=1024))
    assert len(messages) >= 4


def test_edge_ids_index_registers() -> None:
    far = replace(group(), edges=tuple(replace(edge, edge_id=edge.edge_id + 8) for edge in group().edges))
    configure(SPEC, [far])
    for spec in (
        AUGMENTED,
        SPEC.model_copy(update={"reliability": Reliability.GBN}),
        SPEC.model_copy(update={"pipelines": 2}),
    ):
        assert "group 0: edge id 9 is not in 1 to 8" in refused(spec, far)


def test_mode_iii_needs_slots_for_both_ways() -> None:
    below = replace(group(ranks=3), patterns=SERVES_ALL)
    assert refused(AUGMENTED, below) == ["group 0: it has no slots for DOWN traffic (base_down)"]
    assert refused(AUGMENTED, replace(below, base_down=64)) == ["group 0 and group 0 overlap at slot 64"]
    assert refused(AUGMENTED, replace(below, base_down=512)) == ["group 0: slots 512 to 639 exceed the switch's 512"]
    configure(AUGMENTED, [replace(below, base_down=384)])


def test_groups_that_share_a_block() -> None:
    spec = SPEC.model_copy(update={"locks": 1})
    one = replace(group(), block=0)
    two = replace(group(1), base=one.base, epoch=2, block=0)
    entries = configure(spec, [one, two]).entries
    assert [entry.action.args for entry in entries if entry.table == "holders"] == [{"epoch": 1}, {"epoch": 2}]
    assert refused(spec, one, replace(two, epoch=1)) == ["block 0: 2 groups share it in the same epoch 1"]
    assert refused(spec, one, replace(two, block=1)) == ["group 1: block 1; the program has 1"]


def test_mode_ii_broadcasts_take_no_slots() -> None:
    reducing = group()
    broadcasting = replace(group(1), patterns=(Pattern(BROADCAST, 0, 0),))
    assert configure(SPEC, [reducing, broadcasting])


def test_ports_belong_to_pipelines() -> None:
    first, second = halves()
    assert "group 0: edge 2 is on port 4, which belongs to pipeline 1 and not to 0" in refused(
        PIPED, replace(first, edges=(first.edges[0], replace(first.edges[1], port=4), first.edges[2])), second
    )
    assert refused(PIPED, first) == ["group 0: edge 15 has no other end in pipeline 1"]
    lost = replace(first, edges=(*first.edges[:2], replace(first.edges[2], to_pipeline=0)))
    assert any("leads to pipeline 0, which is no other of" in message for message in refused(PIPED, lost, second))
    ranked = replace(first, edges=(*first.edges[:2], replace(first.edges[2], first_hop=True)))
    assert any("no rank is at its other end" in message for message in refused(PIPED, ranked, second))


def test_each_pipeline_has_memory_of_its_own() -> None:
    first, second = halves()
    assert first.base == second.base
    configure(PIPED, [first, second])
    third = replace(group(2, base=64), pipeline=0)
    assert refused(PIPED, first, second, third) == ["group 0 and group 2 overlap at slot 64 of pipeline 0"]


def test_a_program_of_both_kinds_knows_all_addresses_as_those_of_ipv6() -> None:
    groups = [group(), over_ipv6(group(1, base=128))]
    config = configure(EpicSpec(lanes=8, fan_in=4, groups=2, ip="both"), groups, gateways={5: 6, 0xFE80 << 112 | 1: 6})
    mapped, ipv6 = 0xFFFF0A000001, groups[1].edges[0].local.ip
    tables = {table: [e.match for e in config.entries if e.table == table] for table in ("addresses", "endpoints")}
    assert tables["addresses"] == [{"local": Exact(mapped)}, {"local": Exact(ipv6)}]
    assert [match["local"] for match in tables["endpoints"]] == [Exact(mapped)] * 2 + [Exact(ipv6)] * 2
    edges = [e.action.args for e in config.entries if e.table == "edges"]
    assert [(e["src_address"], e["dst_address"]) for e in edges[1:3]] == [(mapped, mapped + 0x10), (ipv6, ipv6 + 0xF)]
    asked = {e.table: e.match for e in config.entries if e.action.name == "answer"}
    assert asked == {
        "neighbours": {"hdr.arp.dst_addr": Exact(0x0A000001)},
        "ipv6_neighbours": {"hdr.ndp.target": Exact(0xFE80 << 112 | 1)},
    }


def test_a_group_has_addresses_of_one_kind_that_its_program_knows() -> None:
    both, only = (EpicSpec(lanes=8, fan_in=4, groups=2, ip=ip) for ip in ("both", "6"))
    mixed = replace(group(), edges=(group().edges[0], over_ipv6(group()).edges[1]))
    assert refused(both, mixed) == ["group 0: it has addresses of two kinds: 10.0.0.16 and fd00::a00:11"]
    wrong = "group 0: 10.0.0.17 is an address of IPv4; the program takes RoCEv2 over IPv6 only"
    assert refused(only, group()) == [wrong]
    mapped = replace(group().edges[0], local=Endpoint(2, 0xFFFF0A000001, 0x100), remote=Endpoint(3, 1 << 100, 5))
    assert any("stands for an IPv4 address" in message for message in refused(both, replace(group(), edges=(mapped,))))


def test_results_are_written_to_what_ranks_have_offered() -> None:
    spec = EpicSpec(lanes=8, fan_in=4, groups=2, verb=Verb.WRITE)
    size = spec.channel_memory
    assert (spec.ring, size) == (256, (256 + 3) * 32), "the power of two from (2W + 1) M on, and M - 1 packets more"
    bare = group()
    with pytest.raises(InputError, match="edge 1: the memory of the rank there is not known"):
        configure(spec, [bare])
    small, far = Memory(4096, 7, size - 1), Memory((1 << 64) - 32, 8, size)
    edges = tuple(replace(e, memory=m) for e, m in zip(bare.edges, (small, far), strict=True))
    with pytest.raises(InputError, match="edge 1: the rank there offers 8,287 bytes; its results take 8,288") as found:
        configure(spec, [replace(bare, edges=edges)])
    assert "edge 2: the memory of the rank there goes beyond the last address" in str(found.value)
    switch = replace(bare.edges[1], first_hop=False)
    rank = replace(bare.edges[0], memory=Memory(4096, 7, size))
    config = configure(spec, [replace(bare, edges=(rank, switch))])
    places = [(entry.match, entry.action) for entry in config.entries if entry.table == "memories"]
    assert places == [({"edge": Exact(1)}, Action("place", {"base": 4096, "rkey": 7}))]


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_programs_for_a_tofino_write_no_results(arch: str) -> None:
    with pytest.raises(ValidationError, match="write takes lengths of messages from announcements"):
        EpicSpec(arch=arch, verb=Verb.WRITE)
