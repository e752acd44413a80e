"""p4c's reports on resources, read: what is counted, whose it is, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tna_programs import ACTION, compiled, ingress

from p4gen.chips.tna.resources.compiled import OTHERS
from p4gen.chips.tna.resources.compiled import compiled as read
from p4gen.errors import InputError
from p4gen.p4 import ir

TEXT = ingress(
    "meta.y = add.execute(meta.x); t.apply();",
    ACTION + " table t { key = { hdr.h.a: exact; } actions = { NoAction; } }",
)


def usages(*names: str, unused: bool = False) -> dict[str, Any]:
    found = [{"used_by": name, "used_for": "match_entry_ram"} for name in names]
    return {"usages": [*found, *([{"used_by": "--UNUSED--", "used_for": "gateway"}] if unused else [])]}


def stage(number: int, tables: tuple[str, ...] = ()) -> dict[str, Any]:
    """A stage as p4c reports it; where there are tables it has some of everything."""
    some = bool(tables)
    vliw = {"instruction_number": 0, "color_usages": [{"color": 0, "gress": "ingress", **usages("Ig.t", unused=True)}]}
    return {
        "stage_number": number,
        "hash_bits": {
            "nBits": 52,
            "nFunctions": 8,
            "bits": [
                {"hash_bit": i, "hash_function": 0, "used_by_table": "Ig.t", "usages": []} for i in range(40 * some)
            ],
        },
        "gateways": {"nRows": 8, "nUnits": 2, "gateways": [usages("cond-3")] if some else []},
        "rams": {"nRows": 8, "nColumns": 10, "srams": [usages("Ig.t")] * 4 + [usages("Ig.reg")] * 2 if some else []},
        "map_rams": {"nRows": 8, "nUnits": 6, "maprams": [usages("Ig.reg")] * 2 if some else []},
        "tcams": {"nRows": 12, "nColumns": 2, "tcams": [usages("Eg.acl"), usages("Ig.t", "Eg.acl")] if some else []},
        "vliw": {"size": 32, "instructions": [vliw] if some else []},
        "meter_alus": {"nAlus": 4, "meters": [usages("Ig.reg")] if some else []},
        "statistic_alus": {"nAlus": 4, "stats": []},
        "logical_tables": {"size": 16, "ids": [{"id": i, "table_name": name} for i, name in enumerate(tables)]},
    }


RESOURCES: Mapping[str, Any] = {
    "program_name": "t",
    "compiler_version": "9.13.5",
    "schema_version": "2.4.2",
    "resources": {
        "mau": {"nStages": 12, "mau_stages": [stage(0, ("Ig.t", "tbl_t5")), stage(1), stage(2, ("Eg.acl",))]}
    },
}
CONTAINERS = [
    {"phv_number": 0, "bit_width": 32, "container_type": "normal", "slices": [{}]},
    {"phv_number": 64, "bit_width": 8, "container_type": "dark", "slices": [{}]},
    {"phv_number": 256, "bit_width": 32, "container_type": "tagalong", "slices": [{}]},
]
METRICS = {
    "compiler_version": "9.13.5",
    "schema_version": "1.1.0",
    "mau": {"srams": 76, "tcams": 4, "map_rams": 71, "logical_tables": 40},
    "phv": {
        "normal": [{"bit_width": 8, "containers_occupied": 3}, {"bit_width": 32, "containers_occupied": 40}],
        "tagalong": [{"bit_width": 32, "containers_occupied": 9}],
    },
}


@pytest.fixture(scope="module")
def program() -> ir.Program:
    return compiled(TEXT).program


def write(folder: Path, **files: object) -> Path:
    """p4c's output folder, with these reports on the pipe ``pipe``."""
    logs = folder / "pipe" / "logs"
    logs.mkdir(parents=True)
    for name, said in files.items():
        (logs / f"{name}.json").write_text(said if isinstance(said, str) else json.dumps(said), encoding="utf-8")
    return folder


def test_units_are_counted_and_belong_to_modules(program: ir.Program, tmp_path: Path) -> None:
    (found,) = read(program, write(tmp_path, resources=RESOURCES, phv={"containers": CONTAINERS}))
    assert (found.source, found.pipe, found.target) == ("p4c 9.13.5", "pipe", "Tofino")
    assert {row: amount.used for row, amount in found.rows.items()} == {
        "hash bits": 80, "gateways": 2, "SRAM": 12, "TCAM": 4, "VLIW": 2, "map RAM": 4, "meter ALU": 2,
        "statistics ALU": 0, "logical tables": 3, "stages": 3, "PHV": 40,
    }  # fmt: skip
    assert found.rows["map RAM"].available == 12 * 48
    assert found.modules["Ig"] == {
        "hash bits": 80, "SRAM": 12, "TCAM": 2, "VLIW": 2, "map RAM": 4, "meter ALU": 2, "logical tables": 1,
    }  # fmt: skip
    assert found.modules["Eg"] == {"TCAM": 4, "logical tables": 1}
    assert found.modules[OTHERS] == {"gateways": 2, "logical tables": 1}


def test_a_compilation_that_failed_is_named(program: ir.Program, tmp_path: Path) -> None:
    folder = write(tmp_path, resources=RESOURCES)
    (folder / "manifest.json").write_text('{"compilation_succeeded": false}')
    assert [found.source for found in read(program, folder)] == ["p4c 9.13.5, whose compilation failed"]
    (folder / "manifest.json").write_text('{"compilation_succeeded": true}')
    assert [found.source for found in read(program, folder)] == ["p4c 9.13.5"]


def test_metrics_are_read_where_there_is_no_more(program: ir.Program, tmp_path: Path) -> None:
    (found,) = read(program, write(tmp_path, metrics=METRICS))
    assert {row: amount.used for row, amount in found.rows.items()} == {
        "SRAM": 76, "TCAM": 4, "map RAM": 71, "logical tables": 40, "PHV": 3 * 8 + 40 * 32,
    }  # fmt: skip
    assert f"{found.rows['map RAM'].share:.2f}" == "12.33"
    assert found.modules == {}


@pytest.mark.parametrize(
    ("said", "cause"),
    [
        ("{", "resources.json:1:2: error: no JSON"),
        ("[]", "not as p4c writes it: no object"),
        ({**RESOURCES, "schema_version": "3.0.0"}, "schema 3.0.0 of resources.json; 2.4.x is known"),
        ({**RESOURCES, "resources": {}}, "not as p4c writes it: KeyError('mau')"),
        ({**RESOURCES, "resources": []}, "not as p4c writes it: TypeError"),
        ({"schema_version": "2.4.0"}, "not as p4c writes it: KeyError('resources')"),
    ],
)
def test_what_p4c_does_not_write_is_refused(program: ir.Program, tmp_path: Path, said: object, cause: str) -> None:
    with pytest.raises(InputError, match=re.escape(cause)) as caught:
        read(program, write(tmp_path, resources=said))
    assert len(str(caught.value).splitlines()) == 1


def test_a_folder_without_reports_is_refused(program: ir.Program, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no resources\.json and no metrics\.json"):
        read(program, tmp_path)


def p4gen(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


def test_check_shows_both_beside_each_other(tmp_path: Path) -> None:
    (tmp_path / "t.p4").write_text(TEXT)
    out = write(tmp_path / "out", resources=RESOURCES)
    done = p4gen("check", "t.p4", "--resources", "--p4c-output", out, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["map", "RAM", "2", "576", "0.35", "%", "4", "0.69", "%"] in lines
    assert "By module, by p4c 9.13.5:" in done.stdout
    told = json.loads(p4gen("check", "t.p4", "--resources", "--json", cwd=tmp_path).stdout)
    (one,) = told["resources"]
    assert one["compiler"] is None
    assert one["estimate"]["rows"]["meter ALU"] == {"used": 1, "available": 48}
    assert one["estimate"]["modules"]["Ig"]["meter ALU"] == 1


def test_check_fails_for_what_cannot_fit(tmp_path: Path) -> None:
    (tmp_path / "t.p4").write_text(TEXT.replace("(1024, 7)", "(1000000, 7)"))
    done = p4gen("check", "t.p4", "--resources", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "t.p4: error: tna: Ig: Ig.reg needs 246 map RAMs in one stage; 48 there are\n"


def test_check_refuses_what_it_cannot_answer(tmp_path: Path) -> None:
    (tmp_path / "t.p4").write_text(TEXT)
    done = p4gen("check", "t.p4", "--p4c-output", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "--p4c-output takes one program, and needs --resources" in done.stderr
    done = p4gen("check", "t.p4", "--resources", "--p4c-output", ".", cwd=tmp_path)
    assert done.returncode == 2
    assert "no resources.json" in done.stderr
    done = p4gen("check", Path(__file__).parents[1] / "stf" / "clone.p4", "--resources", cwd=tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
