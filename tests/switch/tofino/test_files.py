"""The files that tofino-model and bf_switchd read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.p4.compile import compile_file
from p4gen.switch.tofino import files
from p4gen.switch.tofino.files import TOFINO, TOFINO2, Compiled

from .described import HERE, ROUTE

GENERATOR = Path(os.environ.get("P4C_TOFINO_SOURCE", "/nowhere")) / "backends/tofino/scripts/p4c-gen-conf"


def compiled(folder: Path, chip: str, *pipes: str) -> Compiled:
    (folder / "bfrt.json").write_text('{"tables": []}')
    for pipe in pipes:
        (folder / pipe).mkdir()
        (folder / pipe / f"{chip}.bin").write_bytes(b"")
        (folder / pipe / "context.json").write_text("{}")
    return Compiled.of(folder, "route")


def test_the_program_of_these_tests_is_one_for_tna() -> None:
    program = compile_file(HERE / "route.p4")
    described = {table["name"].removeprefix("pipe.") for table in ROUTE["tables"] if "action_specs" in table}
    assert {table.preamble.name.removeprefix("pipe.") for table in program.p4info.tables} == described


def test_ports(tmp_path: Path) -> None:
    program = compiled(tmp_path, "tofino2", "pipe")
    assert files.device_ports(program.chip, range(2)) == {0: 8, 1: 9}
    _, path = files.write(program, {0: 8, 1: 9}, tmp_path)
    assert json.loads(path.read_text()) == {
        "PortToVeth": [{"device_port": 8, "veth1": 0, "veth2": 1}, {"device_port": 9, "veth1": 2, "veth2": 3}]
    }
    assert files.interfaces(1) == ("veth2", "veth3")
    assert files.device_ports(TOFINO, [3, 64, 128, 191]) == {3: 3, 128: 128, 191: 191}
    # Ports 2 and 6 of T2NA are not for hosts, in each pipe; so its last front port is 65.
    assert files.device_ports(TOFINO2, range(9)) == {0: 8, 1: 9, 3: 10, 4: 11, 5: 12, 7: 13, 8: 14}
    assert files.device_ports(TOFINO2, [65, 66, 128, 131]) == {65: 71, 128: 136, 131: 138}
    assert len(files.device_ports(TOFINO2, range(512))) == 256


def test_conf(tmp_path: Path) -> None:
    program = compiled(tmp_path, "tofino2", "pipe")
    path, _ = files.write(program, {}, tmp_path)
    assert path.name == "route.conf"
    conf = json.loads(path.read_text())
    assert conf["chip_list"][0]["chip_family"] == "tofino2"
    (one,) = conf["p4_devices"][0]["p4_programs"]
    assert one["program-name"] == "route"
    assert one["bfrt-config"] == str(tmp_path / "bfrt.json")
    assert one["p4_pipelines"] == [
        {
            "p4_pipeline_name": "pipe",
            "context": str(tmp_path / "pipe/context.json"),
            "config": str(tmp_path / "pipe/tofino2.bin"),
            "pipe_scope": [0, 1, 2, 3],
            "path": str(tmp_path),
        }
    ]


@pytest.mark.parametrize(("chip", "scopes"), [("tofino", [[0, 2], [1, 3]]), ("tofino2", [[0, 1], [2, 3]])])
def test_scopes_of_two_pipes(chip: str, scopes: list[list[int]], tmp_path: Path) -> None:
    (one,) = files.conf(compiled(tmp_path, chip, "a", "b"))["p4_devices"][0]["p4_programs"]
    assert [pipe["pipe_scope"] for pipe in one["p4_pipelines"]] == scopes


@pytest.mark.skipif(not GENERATOR.is_file(), reason="P4C_TOFINO_SOURCE names no checkout of p4c")
@pytest.mark.parametrize("chip", ["tofino", "tofino2"])
@pytest.mark.parametrize("pipes", [("pipe",), ("a", "b")])
def test_conf_is_that_of_p4c_gen_conf(chip: str, pipes: tuple[str, ...], tmp_path: Path) -> None:
    made = files.conf(compiled(tmp_path, chip, *pipes))
    words = ["--conf-type", "BF-RT", "--device", chip, "--name", "route", "--outputdir", str(tmp_path)]
    words += ["--bfrt-name", str(tmp_path / "bfrt.json"), "--p4-version", "p4-16", "--pipe", *pipes]
    subprocess.run([sys.executable, str(GENERATOR), *words], check=True)
    assert json.loads((tmp_path / "route.conf").read_text()) == made


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("bfrt.json", "has no bfrt.json: compile with p4c --bf-rt-schema"),
        ("pipe/tofino.bin", r"has no pipe with tofino.bin or tofino2.bin"),
        ("pipe/context.json", "has no context.json"),
    ],
)
def test_incomplete_output_of_p4c(gone: str, message: str, tmp_path: Path) -> None:
    compiled(tmp_path, "tofino", "pipe")
    (tmp_path / gone).unlink()
    with pytest.raises(InputError, match=message):
        Compiled.of(tmp_path, "route")
