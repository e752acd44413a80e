"""p4c's back end for Tofino accepts the programs that p4gen makes by default, and the largest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4gen.builder import build
from p4gen.chips.tna.p4c import absent, find
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.switchml.spec import SwitchmlSpec
from p4gen.vocabulary import ServingSpec


@pytest.mark.parametrize(
    "fields",
    [{}, {"kind": SwitchmlSpec}, {"kind": SwitchmlSpec, "offsets": "carried"}],
    ids=["epic", "checked", "carried"],
)
@pytest.mark.parametrize(("arch", "lanes"), [("t2na", 16), ("t2na", 32), ("tna", 16), ("tna", 32)])
def test_p4c_accepts(arch: str, lanes: int, fields: dict[str, Any], tmp_path: Path) -> None:
    if find(arch) is None:
        pytest.skip(absent(arch))
    kind: type[ServingSpec] = fields.get("kind", EpicSpec)
    given = {"arch": arch, "lanes": lanes} | {name: value for name, value in fields.items() if name != "kind"}
    built = build(kind.model_validate(given), tmp_path)
    assert built.p4c is not None


def test_p4c_accepts_icrcs_of_several_pipes(tmp_path: Path) -> None:
    if find("tna") is None:
        pytest.skip(absent("tna"))
    built = build(EpicSpec.model_validate({"arch": "tna", "lanes": 64, "payload_pipes": 4, "icrc": "set"}), tmp_path)
    assert built.p4c is not None
