"""SwitchML's programs for Tofino: what fits, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.builder import build
from p4gen.errors import InputError
from p4gen.families import load_spec
from p4gen.papers.switchml.conformance import OFFSETS
from p4gen.papers.switchml.spec import SwitchmlSpec


@pytest.mark.parametrize("offsets", OFFSETS)
@pytest.mark.parametrize("lanes", [16, 32])
@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_programs_for_tofino_build(tmp_path: Path, arch: str, lanes: int, offsets: str) -> None:
    """With as many workers as there can be; the build checks them against the chip's limits."""
    spec = SwitchmlSpec.model_validate({"arch": arch, "lanes": lanes, "fan_in": 32, "offsets": offsets})
    lacked = build(spec, tmp_path, use_p4c=False).manifest["capabilities"]
    assert ("offsets" in lacked) is (offsets == "checked")


@pytest.mark.parametrize(("arch", "cause"), [("tna", "need 16 stages of stateful"), ("t2na", "48 there are: use 32")])
def test_more_lanes_are_refused(tmp_path: Path, arch: str, cause: str) -> None:
    file = tmp_path / "wide.yaml"
    file.write_text(f"family: switchml\narch: {arch}\nlanes: 64\n", encoding="utf-8")
    with pytest.raises(InputError, match=cause):
        load_spec(file)
