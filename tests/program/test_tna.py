"""Programs of EPIC's Mode II for TNA and T2NA: they build, say what they lack, and take static groups only."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from p4gen.builder import build
from p4gen.cli.build import command
from p4gen.errors import InputError
from p4gen.groups.config import configure
from p4gen.groups.group import Edge, Endpoint, GroupContext, NextHop, Pattern, Route
from p4gen.model import Model
from p4gen.model.entries import Action, Entry, Exact, Ternary
from p4gen.p4 import ir
from p4gen.p4.compile import compile_text
from p4gen.papers.epic.control import FACET
from p4gen.papers.epic.spec import EpicSpec
from p4gen.program import compose, render
from p4gen.rocev2.codes import ARP_REQUEST
from p4gen.vocabulary import DType, Icrc, Op, Overflow, Reliability
from p4gen.vocabulary.message import Collective

ARCHITECTURES = ("tna", "t2na")
PROGRAMS = [
    {"lanes": 8, "op": Op.MAX, "dtype": DType.UINT32, "icrc": Icrc.RECOMPUTE},
    {"lanes": 16},
    {"lanes": 16, "op": Op.MIN, "icrc": Icrc.SET},
    {"lanes": 32, "overflow": Overflow.WRAP, "fan_in": 8},
]


def of(arch: str, **fields: object) -> EpicSpec:
    return EpicSpec.model_validate({"arch": arch, **fields})


def group(*patterns: Pattern, edges: int = 3, slots: int = 128, epoch: int = 7) -> GroupContext:
    ends = (
        Edge(5 + i, 8 + i, Endpoint(1, 0x0A000001, 16 + i), Endpoint(2, 0x0A000100 + i, 32 + i)) for i in range(edges)
    )
    return GroupContext(0, tuple(ends), 256, slots, epoch, patterns or (Pattern(Collective.ALLREDUCE),))


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("fields", PROGRAMS, ids=lambda fields: "-".join(map(str, fields.values())))
def test_programs_build(arch: str, fields: dict[str, object], tmp_path: Path) -> None:
    """``build`` refuses warnings, broken rules, and modules that do not say what they do."""
    spec = of(arch, **fields)
    built = build(spec, tmp_path)
    program = built.compiled.program
    assert (program.package, program.arch) == ("Switch", arch)
    actions = [extern for extern in program.externs if extern.extern.startswith("RegisterAction")]
    by_register: dict[str, int] = {}
    for action in actions:
        register = action.arguments["reg"]
        assert isinstance(register, ir.ExternInstance)
        by_register[register.name] = by_register.get(register.name, 0) + 1
    assert len(by_register) == spec.lanes + (2 if arch == "t2na" else 1)
    assert max(by_register.values()) <= 4
    manifest = json.loads((built.folder / "manifest.json").read_text())
    assert {"announcements", "broadcast"} <= manifest["capabilities"].keys()
    assert ("icrc" in manifest["capabilities"]) == (spec.icrc is Icrc.IGNORE)
    assert ("stale" in manifest["capabilities"]) == (arch == "tna")
    (kinds,) = re.findall(r"enum bit<8> kind_t \{(.*?)\}", built.program.read_text(), re.DOTALL)
    assert manifest["passes"] == dict.fromkeys(re.findall(r"(\w+) +=", kinds), 1)
    assert manifest["target"] == {"tna": "Tofino", "t2na": "Tofino 2"}[arch]
    (pipe,) = manifest["resources"]
    assert pipe["rows"]["meter ALU"]["used"] == len(by_register)
    assert pipe["excess"] == []
    templates = {module["name"]: module["template"] for module in manifest["modules"]}
    assert templates["TranslateHeader"] == "epic/translate_header.p4.j2"
    assert templates["CheckDuplicate"] == f"epic/{arch}/check_duplicate.p4.j2"
    assert templates["Forward"] == "shared/tna/forward.p4.j2"
    assert templates.get("CheckIcrc") == ("shared/tna/check_icrc.p4.j2" if spec.icrc.checked else None)
    assert templates.get("SetIcrc") == ("shared/tna/set_icrc.p4.j2" if spec.icrc.right else None)
    hashes = [extern.name for extern in program.externs if extern.extern == "Hash" and "crc" in extern.name]
    assert bool(hashes) == spec.icrc.right


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_broadcasts_take_a_register_for_each_edge(arch: str) -> None:
    program = compose(of(arch, lanes=8, serves="all"))
    assert program.has("CombineAcks")
    assert not compose(of(arch, lanes=8)).has("CombineAcks")
    with pytest.raises(ValidationError, match="8 edges at most"):
        EpicSpec.model_validate({"arch": arch, "serves": "all", "fan_in": 16})


def test_other_programs_serve_all_collectives_anyway() -> None:
    for fields in ({}, {"mode": "III", "arch": "t2na"}):
        with pytest.raises(ValidationError, match="other programs serve all collectives"):
            EpicSpec.model_validate({"serves": "all", **fields})


def test_v1model_programs_lack_nothing(tmp_path: Path) -> None:
    built = build(EpicSpec(lanes=8), tmp_path, use_p4c=False)
    assert not {"capabilities", "passes", "target", "resources"} & built.manifest.keys()
    assert all("/tna/" not in module["template"] for module in built.manifest["modules"])


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        (
            {"lanes": 64},
            "64 lanes need (16 stages of stateful ALUs; 12|64 normal containers of 32 bits, .*; 48) there are. "
            "Use --lanes 32 or --payload-pipes 2",
        ),
        ({"op": Op.DYNAMIC}, "op dynamic needs 8 actions a lane; a register has at most 4"),
        ({"reliability": Reliability.GBN}, "reliability gbn compares PSNs of 24 bits"),
        ({"pipelines": 2}, "2 pipelines recirculate every partial result"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(arch: str, fields: dict[str, object], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        compose(of(arch, **fields))


@pytest.mark.parametrize("icrc", [Icrc.SET, Icrc.RECOMPUTE])
def test_the_icrc_is_behind_the_payload(icrc: Icrc) -> None:
    """Egress has to parse what is in front of it: on Tofino, that is too much where the payload is long."""
    with pytest.raises(InputError, match=rf"icrc {icrc} with 32 lanes needs an egress parser of 197 bytes.* 133:"):
        compose(of("tna", lanes=32, icrc=icrc))
    compose(of("t2na", lanes=32, icrc=icrc))


def test_the_icrc_is_checked_before_any_state() -> None:
    with pytest.raises(InputError, match=r"icrc recompute with 16 lanes needs 13 stages, 6 .*; there are 12: use"):
        compose(of("tna", lanes=16, icrc=Icrc.RECOMPUTE))
    compose(of("tna", lanes=8, icrc=Icrc.RECOMPUTE))
    compose(of("tna", lanes=16, icrc=Icrc.SET))


def test_check_is_another_name() -> None:
    assert EpicSpec.model_validate({"icrc": "check"}) == EpicSpec(icrc=Icrc.RECOMPUTE)
    with pytest.raises(ValidationError, match="icrc"):
        EpicSpec.model_validate({"icrc": "checked"})


def test_defaults_of_the_architecture() -> None:
    spec = of("t2na")
    assert (spec.lanes, spec.icrc) == (16, Icrc.IGNORE)
    assert (EpicSpec().lanes, EpicSpec().icrc) == (64, Icrc.RECOMPUTE)


def test_two_targets_two_texts() -> None:
    """What only Tofino 2 can do is not in programs for Tofino 1, and no text asks which it is."""
    one, two = (render(compose(of(arch, lanes=8)), line_directives=False).text for arch in ARCHITECTURES)
    assert "CheckDuplicate_stale" in two
    assert "CheckDuplicate_stale" not in one
    assert "#if" not in one + two


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ordinary_packets_bypass_egress(arch: str) -> None:
    """They leave a program that drops all in egress, and leave it without the bridge."""
    spec = of(arch, lanes=8)
    text, start = render(compose(spec), line_directives=False).text, "        hdr.bridge.setInvalid();\n"
    assert text.count(start) == 1
    mutated = text.replace(start, f"{start}        eg_dprsr_md.drop_ctl = 1;\n")
    model = Model(compile_text(mutated, "drops.p4").program)
    ours = group().edges[0].local
    model.insert(Entry("neighbours", {"hdr.arp.dst_addr": Exact(ours.ip)}, Action("answer", {"mac": ours.mac})))
    macs, ethertype = (1 << 48) - 1 << 48 | 2, 0x0806
    asked = b"".join(
        (macs.to_bytes(12), ethertype.to_bytes(2), ARP_REQUEST.to_bytes(8), (2).to_bytes(6), (9).to_bytes(4), bytes(6),
         ours.ip.to_bytes(4))
    )  # fmt: skip
    assert [(port, frame[:6], len(frame)) for port, frame in model.process(1, asked)] == [(1, asked[6:12], len(asked))]


def test_entries_of_a_static_group() -> None:
    spec = of("t2na", lanes=8)
    config = configure(spec, [group()])
    flows = [entry for entry in config.entries if entry.table == "flows"]
    at_first = {(entry.match["kind"], entry.match.get("announced")): entry.action for entry in flows[:5]}
    assert {entry.match["edge"] for entry in flows[:5]} == {Exact(5)}
    data = at_first[Exact(1), None]
    assert data.name == "aggregate"
    assert dict(data.args, out_group=0) == {"base": 256, "epoch": 7, "source_mask": 7, "out_group": 0, "alone": 1}
    announced = {key for kind, key in at_first if kind == Exact(2)}
    assert len(announced) == 2  # AllReduce and Barrier
    assert all(isinstance(key, Ternary) and key.mask == 0xFFF80000 for key in announced)
    assert {at_first[Exact(kind), None].name for kind in (3, 4)} == {"reflect"}
    endpoints = [entry for entry in config.entries if entry.table == "endpoints"]
    assert [entry.action.args["mask"] for entry in endpoints] == [127] * 3
    assert not [entry for entry in config.entries if entry.table in ("contexts", "patterns")]


def test_edge_toward_the_root() -> None:
    spec = of("tna", lanes=8)
    below = group(Pattern(Collective.ALLREDUCE, 0, 1))
    flows = [entry for entry in configure(spec, [below]).entries if entry.table == "flows"]
    down = {entry.action.name for entry in flows if entry.match["edge"] == Exact(6)}
    assert down == {"replicate"}


@pytest.mark.parametrize(
    ("served", "cause"),
    [
        (group(Pattern(Collective.BROADCAST, 0, 0)), "lack broadcast"),
        (group(Pattern(Collective.ALLREDUCE), Pattern(Collective.REDUCE, 0, 0)), "lack patterns"),
    ],
    ids=["broadcast", "two patterns"],
)
def test_groups_that_cannot_be_served(served: GroupContext, cause: str) -> None:
    spec = of("t2na", lanes=8)
    assert any(cause in problem for problem in FACET.problems(spec, served))
    with pytest.raises(InputError, match=cause):
        configure(spec, [served])
    assert not list(FACET.problems(EpicSpec(lanes=8), served))


def test_next_hops_are_a_power_of_two() -> None:
    hops = [NextHop(i, 8 + i, 1, 2) for i in range(4)]
    configure(of("t2na"), [], [Route("10.0.0.0/8", 0, 4)], hops)
    configure(EpicSpec(), [], [Route("10.0.0.0/8", 0, 3)], hops)
    with pytest.raises(InputError, match="3 next hops; t2na takes a power of two"):
        configure(of("t2na"), [], [Route("10.0.0.0/8", 0, 3)], hops)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ports_of_several_pipes(arch: str) -> None:
    spec = of(arch, lanes=8, ports=256)
    front = spec.architecture.front_ports(256)
    assert [sum(port >> 7 == pipe for port in front) for pipe in range(4)] == [64] * 4
    assert not {port & 0x7F for port in front} & ({2, 6} if arch == "t2na" else {64, 68, 69, 70, 71})
    with pytest.raises(ValidationError, match=f"must be at most 256 for {arch}"):
        of(arch, ports=257)
    with pytest.raises(InputError, match="its edges are in the pipes 0 and 3, each of which has registers of its own"):
        configure(spec, [replace(group(), edges=(group().edges[0], replace(group().edges[1], port=front[-1])))])
    elsewhere = tuple(replace(edge, port=256 + edge.port) for edge in group().edges)
    configure(spec, [replace(group(), edges=elsewhere)])
    with pytest.raises(InputError, match=f"port 100 of {arch} is no port of hosts"):
        configure(spec, [replace(group(), edges=(replace(group().edges[0], port=100),))])


def test_ports_that_are_not_for_hosts_are_no_next_hops() -> None:
    with pytest.raises(InputError, match="next hop 0: port 6 of t2na is no port of hosts"):
        configure(of("t2na"), [], [], [NextHop(0, 6, 1, 2)])
    configure(of("tna"), [], [], [NextHop(0, 6, 1, 2)])
    configure(EpicSpec(), [], [], [NextHop(0, 6, 1, 2)])


@pytest.mark.parametrize(("arch", "advice"), [("t2na", "--lanes 64 --payload-pipes 2"), ("v1model", "--lanes 64")])
def test_a_warning_advises_what_there_is(
    arch: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = CliRunner().invoke(command, ["--mode", "II", "--arch", arch, "--lanes", "8", "--out", str(tmp_path)])
    assert done.exit_code == 0
    assert f"the least path MTU is 256: {advice}\n" in done.output
