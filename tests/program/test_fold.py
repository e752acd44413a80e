"""Programs of EPIC's Mode II that fold payloads over the pipes of a Tofino."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from pydantic import ValidationError

from p4gen.builder import build
from p4gen.chips.tna.machine import TofinoModel
from p4gen.cli.options import flags_of
from p4gen.errors import InputError
from p4gen.groups.config import configure
from p4gen.groups.group import Edge, Endpoint, GroupContext, NextHop, Pattern, Route
from p4gen.model import Model, Trace
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.tofino.folding import copy_visits, fold, passes, recirculation, report
from p4gen.program import compose
from p4gen.program.compilation import compile_spec
from p4gen.rocev2.headers import BTH, UDP, Ethernet, IPv4
from p4gen.rocev2.opcodes import Opcode
from p4gen.rocev2.packet import RocePacket, parse
from p4gen.vocabulary import Icrc
from p4gen.vocabulary.message import Collective

BTH_END = 54
SMALL: dict[str, object] = {"lanes": 8, "window": 2, "message": 2, "groups": 2, "fan_in": 4, "ports": 256}


def of(**fields: object) -> EpicSpec:
    return EpicSpec.model_validate({"arch": "t2na", **fields})


def pair(first_port: int) -> GroupContext:
    """Two edges on neighbouring ports."""
    ends = ((Endpoint(1, 0x0A000001, 16 + i), Endpoint(2, 0x0A000100 + i, 32)) for i in range(2))
    edges = tuple(Edge(1 + i, first_port + i, *both) for i, both in enumerate(ends))
    return GroupContext(0, edges, 0, 8, 1, (Pattern(Collective.ALLREDUCE),))


def contribution(edge: Edge, payload: bytes) -> RocePacket:
    packet = RocePacket(
        Ethernet(1, 2), IPv4(edge.remote.ip, edge.local.ip), UDP(), BTH(Opcode.SEND_ONLY, edge.local.qp, 3),
        payload=payload,
    )  # fmt: skip
    return packet.sealed()


@cache
def model(spec: EpicSpec) -> Model:
    return Model(compile_spec(spec).program)


def serving(spec: EpicSpec, group: GroupContext) -> Model:
    switch = model(spec)
    switch.reset()
    configure(spec, [group], [Route("0.0.0.0/0", 1)], [NextHop(1, 0, 1, 2)]).install(switch)
    return switch


@pytest.mark.parametrize(
    ("arch", "fold", "recirculation", "port", "there", "back"),
    [
        ("tna", 2, None, 0, [196], [68]),
        ("t2na", 2, None, 395, [6], [390]),
        ("t2na", 4, None, 139, [262, 390, 6], [390, 262, 134]),
        ("t2na", 2, "262,6", 8, [262], [6]),
    ],
)
def test_a_payload_visits_pipes_and_its_result_comes_back(
    arch: str, fold: int, recirculation: str | None, port: int, there: list[int], back: list[int]
) -> None:
    """And every pipe keeps the part that is its own."""
    spec = of(arch=arch, payload_pipes=fold, recirculation=recirculation, **SMALL)
    group = pair(port)
    switch = serving(spec, group)
    payload = b"".join(lane.to_bytes(4) for lane in range(8))
    visited = []
    for edge, ports in zip(group.edges, (there, there + back), strict=True):
        trace = Trace()
        sent = switch.process(edge.port, contribution(edge, payload).to_bytes(), trace)
        hops = [event.data["port"] for event in trace.of("decision") if event.what.startswith("recirculate")]
        visited.append((hops, ports))
    assert [hops for hops, _ in visited] == [ports for _, ports in visited]
    assert sorted(out for out, _ in sent) == [port, port + 1]
    doubled = b"".join((2 * lane).to_bytes(4) for lane in range(8))
    assert {parse(frame).payload for _, frame in sent} == {doubled}
    part, machine = 8 // fold, switch.machine
    assert isinstance(machine, TofinoModel)
    for number, pipe in enumerate([port >> 7, *(hop >> 7 for hop in there)]):
        lanes = [machine.registers(f"lane_{i}.partial", pipe)[3] for i in range(part)]
        assert lanes == [2 * (number * part + i) for i in range(part)]


def test_what_loses_its_group_between_pipes_does_not_leave() -> None:
    """What comes from another pipe for nobody is neither routed nor sent on, but counted."""
    spec = of(payload_pipes=2, **SMALL)
    group = pair(0)
    switch = serving(spec, group)
    stranger = replace(group.edges[0], local=Endpoint(1, 0x0A00EEEE, 16))
    for visits in (2, 1):
        for edge in (stranger, group.edges[1]):
            front = fold(spec).word.pack(visits=visits, zeros=0, again=0, sender=edge.port).to_bytes(fold(spec).size)
            before = lost(spec, switch)
            frame = contribution(edge, bytes(32)).to_bytes()
            assert switch.process(134, front + frame[:BTH_END] + frame[BTH_END + 16 :]) == []
            assert lost(spec, switch) - before == int(edge is stranger or visits == 2)


def test_copies_recirculate_where_egress_does_not_reach_the_icrc() -> None:
    """Each copy takes as much as a whole packet: 4 of 322 bytes, and the result's part of 258."""
    fields: dict[str, object] = {"lanes": 64, "payload_pipes": 4, "fan_in": 4, "icrc": Icrc.SET}
    far, near = of(arch="tna", **fields), of(**fields)
    assert recirculation(of(**{**fields, "lanes": 128})).copy == 578
    assert [recirculation(spec).copy for spec in (far, near)] == [322, 0]
    assert recirculation(far).payload_gbps == round(100 * 4 * 256 / (4 * 322 + 258), 1)
    assert [passes(spec)["DATA"] for spec in (far, near)] == [11, 7]
    assert "each of its copies 1 more and 322 bytes" in str(report(far))


@pytest.mark.parametrize("cut", [1, 4, 5])
def test_a_copy_that_ends_before_its_icrc_does_not_leave(cut: int) -> None:
    spec = of(arch="tna", payload_pipes=2, icrc=Icrc.SET, **SMALL)
    group = pair(0)
    switch = serving(spec, group)
    front = fold(spec).word.pack(visits=copy_visits(spec), zeros=0, again=0, sender=5, crc=0)
    answer = contribution(group.edges[0], bytes(32))
    copy = replace(answer, ip=replace(answer.ip, dst=group.edges[0].remote.ip)).to_bytes()
    before = lost(spec, switch)
    assert switch.process(68, front.to_bytes(fold(spec).size) + copy) == [(5, copy)]
    assert switch.process(68, front.to_bytes(fold(spec).size) + copy[:-cut]) == []
    assert lost(spec, switch) - before == 1


def lost(spec: EpicSpec, switch: Model) -> int:
    (index,) = (reason.index for reason in compose(spec).drops if reason.symbol == "FoldPayload_lost")
    return switch.counter("IncIngress.drops", index).packets


def test_the_manifest_says_what_folding_costs(tmp_path: Path) -> None:
    spec = of(lanes=64, payload_pipes=2, fan_in=8)
    built = build(spec, tmp_path, use_p4c=False)
    manifest = json.loads((built.folder / "manifest.json").read_text())
    assert spec.program == "modeii_sum_int32_x64_fold2_noicrc_t2na"
    assert {kind for kind, passes in manifest["passes"].items() if passes != 1} == {"DATA"}
    assert manifest["passes"]["DATA"] == 3
    # 58 bytes of headers with the ICRC, 4 of what is in front, half of 256. Of 8 edges there are as many contributions.
    costs = {"contribution": [190], "result": [190], "copy": 0, "gbps": 100, "payload_gbps": 134.7}
    assert manifest["recirculation"] == costs
    assert {"truncated", "apart"} <= manifest["capabilities"].keys()
    (pipe,) = manifest["resources"]
    assert pipe["rows"]["meter ALU"]["used"] == 32 + 2
    assert built.composition.report == report(spec)
    assert "all edges of a pipe together contribute at most 134.7 Gb/s" in str(report(spec))
    assert report(of(lanes=32)) is None


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"lanes": 128, "payload_pipes": 2}, "64 lanes in a pass need .*. Use --lanes 64 or --payload-pipes 4"),
        ({"lanes": 256, "payload_pipes": 4}, "64 lanes in a pass need .*. Use --lanes 128$"),
        ({"lanes": 256}, "256 lanes need .*. Use --lanes 32$"),
        (
            {"lanes": 64, "payload_pipes": 2, "icrc": Icrc.SET},
            "icrc set with 32 lanes in a pass needs 17 stages.* are 12",
        ),
        ({"payload_pipes": 2, "icrc": Icrc.RECOMPUTE}, "icrc recompute with payload-pipes 2 needs a round through all"),
    ],
    ids=str,
)
def test_what_does_not_fold_is_refused(fields: dict[str, object], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        compose(of(arch="tna", **fields))


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"arch": "v1model", "payload_pipes": 2}, "reduces any payload in one pass"),
        ({"mode": Mode.III, "payload_pipes": 2}, "is for mode II"),
        ({"payload_pipes": 3}, "1, 2 or 4"),
        ({"payload_pipes": True}, "must be an integer"),
        ({"recirculation": "6,134"}, "goes with payload-pipes 2 or 4"),
        ({"payload_pipes": 2, "recirculation": "6,135"}, "no port 135 for it; there are 6, 134, 262, 390"),
        ({"payload_pipes": 4, "recirculation": "6,134"}, "payload-pipes 4 needs 4 ports or more, each once"),
        ({"payload_pipes": 2, "recirculation": "6,134,6"}, "each once"),
        ({"payload_pipes": 2, "recirculation": "6;134"}, "pattern"),
    ],
    ids=str,
)
def test_wrong_fields(fields: dict[str, object], cause: str) -> None:
    with pytest.raises(ValidationError, match=cause):
        of(**fields)


def test_a_group_needs_a_way_back_to_its_pipe() -> None:
    spec = of(payload_pipes=2, recirculation="6,134", **SMALL)
    configure(spec, [pair(139)])
    with pytest.raises(InputError, match="its edges are in pipe 2, which has none of the program's ports for recirc"):
        configure(spec, [pair(257)])


def test_flags_name_what_is_no_default_of_the_architecture() -> None:
    assert "--lanes 64" in flags_of(of(lanes=64, payload_pipes=2))
    assert "--lanes 64" not in flags_of(EpicSpec())
