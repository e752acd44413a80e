"""EPIC's Mode III for Tofino 2, an experiment: it builds, says so and what it lacks; what has no form is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from p4gen.builder import build
from p4gen.chips.tna.replication import copies_of_session
from p4gen.errors import InputError
from p4gen.groups.config import configure
from p4gen.groups.group import Edge, Endpoint, GroupContext, Pattern
from p4gen.model.entries import CloneSession, Exact
from p4gen.p4 import ir
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.tofino import iii as static_iii
from p4gen.papers.epic.traffic.across import AcrossTraffic
from p4gen.program import compose
from p4gen.vocabulary import Icrc, Reliability
from p4gen.vocabulary.message import Collective


def of(arch: str = "t2na", **fields: Any) -> EpicSpec:
    return EpicSpec.model_validate({"arch": arch, "mode": Mode.III, "lanes": 8, **fields})


def test_the_program_builds_as_an_experiment(tmp_path: Path) -> None:
    """``build`` refuses warnings, broken rules of the chip, and modules that do not say what they do."""
    spec = of()
    built = build(spec, tmp_path)
    text = built.program.read_text()
    assert "AN EXPERIMENT" in text[:800]
    manifest = json.loads((built.folder / "manifest.json").read_text())
    assert "experiment" in manifest["experiment"]
    assert built.composition.report == manifest["experiment"]
    assert {"announcements", "selective", "notifications", "timers"} <= manifest["capabilities"].keys()
    assert "broadcast" not in manifest["capabilities"]
    (kinds,) = re.findall(r"enum bit<8> kind_t \{(.*?)\}", text, re.DOTALL)
    assert manifest["passes"].keys() == set(re.findall(r"(\w+) +=", kinds))
    assert (manifest["passes"]["DATA"], manifest["passes"]["ANSWER"]) == (1, 3 + static_iii.BURST)
    (pipe,) = manifest["resources"]
    assert pipe["rows"]["stages"] == {"used": 20, "available": 20}
    assert (pipe["excess"], pipe["doubts"]) == ([], [])
    registers = {each.name for each in built.compiled.program.externs if each.extern == "Register"}
    assert pipe["rows"]["meter ALU"]["used"] == len(registers) == spec.lanes + spec.fan_in + 9
    of_register: dict[str, int] = {}
    for action in (each for each in built.compiled.program.externs if each.extern == "RegisterAction"):
        register = action.arguments["reg"]
        assert isinstance(register, ir.ExternInstance)
        of_register[register.name] = of_register.get(register.name, 0) + 1
    assert max(of_register.values()) <= 4


@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        ({"arch": "tna"}, r'three comparisons; a stateful ALU of this chip has 2.*"we cannot implement Mode-I/III'),
        ({"fan_in": 9}, "fan_in 9 needs the minimum of 9 registers in a pass; at most 8"),
        ({"reliability": Reliability.SR}, "reliability sr shifts words of 128 bits"),
        ({"congestion": "cnp"}, "congestion cnp needs a second mirrored copy"),
        ({"icrc": Icrc.RECOMPUTE}, "icrc recompute needs a CRC over the payload"),
        ({"ports": 80}, "80 ports are of several pipes"),
        ({"lanes": 64}, "64 lanes need 64 normal containers"),
        ({"pipelines": 2}, "2 pipelines recirculate every partial result"),
        ({"variant": "no-nak"}, "there is no variant no-nak"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], cause: str) -> None:
    with pytest.raises(InputError, match=cause):
        compose(of(**fields))


def test_its_answers_are_not_compared_with_those_of_v1model() -> None:
    with pytest.raises(InputError, match="answers of mode III are not the same on all architectures"):
        AcrossTraffic(of("v1model", fan_in=8), of(), 1)


def test_defaults() -> None:
    assert (of().fan_in, of().notifies, of().loss_recovery) == (8, False, Reliability.GBN)
    assert (of("v1model").fan_in, of("v1model").notifies) == (32, True)
    assert EpicSpec(arch="t2na").fan_in == 32


def test_entries_and_sessions() -> None:
    """A node below the root: its two pipes have words of their own, and an edge's answers are about its output."""
    spec = of(ports=8)
    edges = tuple(
        Edge(1 + i, (0, 1, 3)[i], Endpoint(1, 0x0A000001, 16 + i), Endpoint(2, 0x0A000100 + i, 32 + i), first_hop=i < 2)
        for i in range(3)
    )
    group = GroupContext(
        1, edges, 256, 128, 7, (Pattern(Collective.ALLREDUCE, toward=2),), base_down=384, first_psn=0xFFFFFE
    )
    config = configure(spec, [group])
    flows = [entry for entry in config.entries if entry.table == "flows"]
    found = {(entry.match["edge"], entry.match["kind"]): entry.action for entry in flows}
    data, answer, tick = 1, 3, 6
    up, down = found[Exact(1), Exact(data)], found[Exact(3), Exact(data)]
    assert (up.args["pipe"], up.args["source_mask"], down.args["pipe"], down.args["source_mask"]) == (2, 3, 3, 4)
    assert up.args["origin"] == (2 << 8)
    assert up.args["outside"] == 0xFFFFFFFF & ~(128 * 256 - 1)
    of_child, of_parent = found[Exact(1), Exact(answer)], found[Exact(3), Exact(answer)]
    assert (of_child.args["pipe"], of_child.args["out_mask"]) == (3, 3)
    assert (of_parent.args["pipe"], of_parent.args["out_mask"]) == (2, 4)
    assert found[Exact(1), Exact(tick)].args["out_mask"] == 1
    sessions = {session.session_id: session for session in config.clone_sessions}
    recirculates = sessions[spec.architecture.recirculation_port + 1]
    assert isinstance(recirculates, CloneSession)
    assert (copies_of_session(recirculates, "ingress")[0].port, recirculates.packet_length) == (6, 0)
    assert sessions[4].packet_length == static_iii.KEPT
    assert static_iii.BRIDGE.size + 18 + 20 + 8 + 12 == static_iii.KEPT
