"""What p4c says of a program's tables, beside what p4gen's P4Info says. ``P4C_TOFINO`` names the compiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from p4gen.chips.tna.p4c import compile_for_tofino, find
from p4gen.families import parse_spec
from p4gen.p4.compile import compile_text
from p4gen.p4.p4c import CompilerCall
from p4gen.program import compose, render
from p4gen.switch.tofino.bfrt.schema import Bfrt

from .described import CHIP
from .from_p4info import bfrt

SPEC = {"mode": "II", "arch": "t2na", "lanes": 8, "ports": 8, "groups": 2, "fan_in": 4}


def known(description: dict[str, Any]) -> dict[str, Any]:
    """What the control plane relies on, by name, of tables that it uses: keys, actions, data, operations."""
    found: dict[str, Any] = {}
    for table in description["tables"]:
        kind = table["table_type"]
        if kind not in ("MatchAction_Direct", "Counter", "Register"):
            continue
        singles = [entry["singleton"] for entry in table["data"]]
        found[table["name"]] = {
            "id": table["id"] if kind == "MatchAction_Direct" else None,
            "type": kind,
            "size": table["size"],
            "key": [(k["id"], k["name"], k["match_type"], k["mandatory"], k["type"]) for k in table["key"]],
            "actions": [
                (a["id"], a["name"], a["action_scope"], [(d["id"], d["name"], d["type"]) for d in a["data"]])
                for a in table.get("action_specs", [])
            ],
            "data": [(d["id"], d["name"], d["type"]["type"], d["type"].get("width")) for d in singles],
            "operations": table["supported_operations"],
            "attributes": table["attributes"],
            "fixed": bool(table.get("has_const_default_action")),
        }
    return found


@pytest.mark.skipif(find("t2na") is None, reason="P4C_TOFINO, p4c's back end for Tofino, is not there")
def test_p4info_and_bfrt_agree(tmp_path: Path) -> None:
    text = render(compose(parse_spec(SPEC))).text
    source = tmp_path / "program.p4"
    source.write_text(text, encoding="utf-8")
    compiler = find("t2na")
    assert compiler is not None
    compile_for_tofino(compiler, "t2na", CompilerCall(source, tmp_path / "out"))
    theirs = json.loads((tmp_path / "out/bfrt.json").read_text(encoding="utf-8"))
    ours = known(bfrt(compile_text(text, "program.p4").p4info))
    assert ours.keys() == known(theirs).keys()
    for name, table in known(theirs).items():
        assert ours[name] == table, name
    tables = Bfrt(theirs, CHIP)
    assert tables.typed("next_hops", "MatchAction", "table").actions.named("send").data.named("port").bits == 9
