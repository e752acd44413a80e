"""A program that its switch has no room for is refused before the compiler starts; the paper's table of resources."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from p4gen.builder import build
from p4gen.errors import InputError
from p4gen.families import family_of, parse_spec
from p4gen.families.hardware import Hardware
from p4gen.p4.resources import Resources
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
    command = [sys.executable, "-m", "p4gen", "hardware", "--mode", "II", "--arch", "tna", "--lanes", "16"]
    told = json.loads(subprocess.run([*command, "--json"], capture_output=True, check=True).stdout)
    assert (told["paper"], told["table"]) == ("EPIC", 17)
    assert [size["slots"] for size in told["sizes"]] == [512, 2048, 8192, 32768]
    shares = [size["paper"]["map RAM"] for size in told["sizes"]]
    assert [round(share * 576 / 100) for share in shares] == [71, 71, 103, 299]
    ours = [size["estimate"]["rows"]["map RAM"]["used"] for size in told["sizes"]]
    # Beside one to spare, a lane's register is 1, 1, 2 and 8 RAMs, and that of the slots, of 64 bits, 1, 1, 4 and 16.
    assert [b - a for a, b in pairwise(ours)] == [0, 16 + 3, 6 * 16 + 12]
    assert all(size["compiler"] is None for size in told["sizes"])
    table = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert "EPIC, Table 17: share of Tofino, and our program on Tofino by p4gen's model" in table
    assert any(line.startswith("map RAM") and " 51.91 | " in line for line in table.splitlines())


def test_the_tables_rows_are_reports_rows() -> None:
    found = family_of(spec()).facet(Hardware)
    of = found.sized(spec(arch="tna"), 512)
    program = compile_spec(of).program
    (report,) = of.architecture.facet(Resources).estimate(program)
    assert found.rows.keys() <= report.rows.keys()
    assert all(len(shares) == len(found.sizes) for shares in found.rows.values())


@pytest.mark.parametrize("arguments", [["--mode", "II"], ["--mode", "themis"]])
def test_other_architectures_and_families_have_no_such_table(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "p4gen", "hardware", *arguments]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
