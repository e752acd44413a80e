"""Programs of EPIC's Mode II for TNA and T2NA: they build, say what they lack, and take static groups only."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p4gen.builder import build
from p4gen.errors import InputError
from p4gen.families.epic.control import FACET
from p4gen.families.epic.spec import EpicSpec, Mode
from p4gen.groups.config import configure
from p4gen.groups.group import Edge, Endpoint, GroupContext, NextHop, Pattern, Route
from p4gen.host.collectives.control import Collective
from p4gen.model.entries import Exact, Ternary
from p4gen.p4 import ir
from p4gen.program import compose, render
from p4gen.spec import DType, Icrc, Op, Overflow, Reliability

ARCHITECTURES = ("tna", "t2na")
PROGRAMS = [
    {"lanes": 8, "op": Op.MAX, "dtype": DType.UINT32},
    {"lanes": 16},
    {"lanes": 16, "op": Op.MIN},
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
    assert len(by_register) == spec.lanes + 1
    assert max(by_register.values()) <= 4
    manifest = json.loads((built.folder / "manifest.json").read_text())
    assert {"announcements", "broadcast", "icrc"} <= manifest["capabilities"].keys()
    assert ("stale" in manifest["capabilities"]) == (arch == "tna")
    templates = {module["name"]: module["template"] for module in manifest["modules"]}
    assert templates["TranslateHeader"] == "epic/translate_header.p4.j2"
    assert templates["CheckDuplicate"] == f"epic/{arch}/check_duplicate.p4.j2"
    assert templates["Forward"] == "shared/tna/forward.p4.j2"


def test_v1model_programs_lack_nothing(tmp_path: Path) -> None:
    built = build(EpicSpec(lanes=8), tmp_path, use_p4c=False)
    assert "capabilities" not in built.manifest
    assert all("/tna/" not in module["template"] for module in built.manifest["modules"])


@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"lanes": 64}, "64 lanes need 64 results of stateful ALUs in a pass; 32 have a place: use --lanes 32"),
        ({"op": Op.DYNAMIC}, "op dynamic needs 8 actions a lane; a register has at most 4"),
        ({"reliability": Reliability.GBN}, "reliability gbn compares PSNs of 24 bits"),
        ({"pipelines": 2}, "2 pipelines need recirculation"),
        ({"icrc": Icrc.RECOMPUTE}, "CheckIcrc and SetIcrc need CRCs over whole packets"),
        ({"mode": Mode.III}, "need clones of arriving packets"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(arch: str, fields: dict[str, object], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        compose(of(arch, **fields))


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
        (group(Pattern(Collective.BROADCAST, 0, 0)), "there is no Broadcast"),
        (group(Pattern(Collective.ALLREDUCE), Pattern(Collective.REDUCE, 0, 0)), "one pattern; it has 2"),
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
    hops = [NextHop(i, i, 1, 2) for i in range(4)]
    configure(of("t2na"), [], [Route("10.0.0.0/8", 0, 4)], hops)
    configure(EpicSpec(), [], [Route("10.0.0.0/8", 0, 3)], hops)
    with pytest.raises(InputError, match="3 next hops; t2na takes a power of two"):
        configure(of("t2na"), [], [Route("10.0.0.0/8", 0, 3)], hops)
