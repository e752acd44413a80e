"""p4c's back end for Tofino accepts the programs that p4gen makes by default, and the largest."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.builder import build
from p4gen.chips.tna.p4c import absent, find
from p4gen.papers.epic.spec import EpicSpec


@pytest.mark.parametrize(("arch", "lanes"), [("t2na", 16), ("t2na", 32), ("tna", 16), ("tna", 32)])
def test_p4c_accepts(arch: str, lanes: int, tmp_path: Path) -> None:
    if find(arch) is None:
        pytest.skip(absent(arch))
    built = build(EpicSpec.model_validate({"arch": arch, "lanes": lanes}), tmp_path)
    assert built.p4c is not None
