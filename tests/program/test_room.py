"""A program that its switch has no room for is refused before the compiler starts; the paper's table of resources."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.builder import build
from p4gen.errors import InputError
from p4gen.experiments.experiment import Order
from p4gen.families import parse_spec
from p4gen.p4.resources import Resources
from p4gen.papers.epic.experiments.resources import PAPER, RESOURCES
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import ProgramSpec


def spec(**fields: object) -> ProgramSpec:
    return parse_spec({"mode": "II", "lanes": 16, **fields})


def excess(of: ProgramSpec) -> list[str]:
    program = compile_spec(of).program
    return [line for report in of.architecture.facet(Resources).estimate(program) for line in report.excess]


def test_what_cannot_fit_is_refused_before_p4c_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "p4c-barefoot"
    compiler.write_text(f"#!/bin/sh\ntouch {tmp_path}/started\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("P4C_TOFINO", str(compiler))
    with pytest.raises(InputError) as caught:
        build(spec(arch="tna", groups=64, slots=2048), tmp_path / "out")
    assert str(caught.value) == (
        "error: tna: IncIngress.check_duplicate: IncIngress.check_duplicate.slots needs 65 map RAMs in one stage;"
        " 48 there are. Use --slots 1024 or --groups 32"
    )
    assert not (tmp_path / "started").exists()
    assert list((tmp_path / "out").glob("*")) == []


def test_the_options_that_are_named_would_do() -> None:
    assert excess(spec(arch="tna", groups=64, slots=2048))
    assert not excess(spec(arch="tna", groups=64, slots=1024))
    assert not excess(spec(arch="tna", groups=32, slots=2048))


def test_a_payload_of_more_pipes_is_named_where_it_would_do(tmp_path: Path) -> None:
    large = {"arch": "tna", "lanes": 32, "slots": 65536, "groups": 1}
    with pytest.raises(InputError, match=r"581 map RAMs .*\. Use --lanes 16, --payload-pipes 2, --slots 32768 or "):
        build(spec(**large), tmp_path)
    assert not excess(spec(**large, payload_pipes=2))


@pytest.mark.long
def test_epics_table_17_stands_beside_programs_of_the_same_sizes() -> None:
    report = RESOURCES.perform(Order("tofino2", 1))
    (rams,) = (row for row in report.rows if row[0] == "map RAM")
    paper = [share for share in rams[2::2] if isinstance(share, float)]
    assert [round(share * 576 / 100) for share in paper] == [71, 71, 103, 299]
    assert [row[0] for row in report.rows] == list(PAPER)
    ours = [share for share in rams[1::2] if isinstance(share, float)]
    assert ours == sorted(ours)
    assert ours[0] < ours[-1]
