"""``p4gen check`` and P4Info files."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from google.protobuf import json_format

from p4gen.p4.compile import compile_file
from p4gen.p4.info.text import parse_text
from p4gen.protos import p4info

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "tests" / "stf" / "tables.p4"
CLONE = ROOT / "tests" / "stf" / "clone.p4"


def p4gen(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


def test_check_loads_nothing_that_runs_switches_or_computes(tmp_path: Path) -> None:
    watched = ("grpc", "numpy", "llvmlite", "google.protobuf", "pydantic", "scapy", "rich")
    script = (
        "import contextlib, sys\n"
        "from p4gen.cli.app import cli\n"
        "with contextlib.suppress(SystemExit):\n"
        f"    cli.main(['check', {str(TABLES)!r}, '--json'], standalone_mode=False)\n"
        f"print([name for name in {watched!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert json.loads(done.stdout)["ok"] is True
    assert done.stderr.splitlines()[-1] == "[]"


def test_several_programs_are_checked_in_one_go(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.p4"
    wrong.write_text("const bit<8> a = b;\n")
    done = p4gen("check", TABLES, wrong, CLONE, cwd=tmp_path)
    assert done.returncode == 1
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == [str(TABLES), str(wrong), str(CLONE)]
    assert f"{wrong}:1:18: error:" in done.stderr
    told = json.loads(p4gen("check", TABLES, wrong, "--json", cwd=tmp_path).stdout)
    assert told["ok"] is False
    assert [program["ok"] for program in told["programs"]] == [True, False]


def read(path: Path) -> p4info.P4Info:
    if path.suffix in (".txtpb", ".txt"):
        return parse_text(path.read_text())
    if path.suffix == ".json":
        found = p4info.P4Info()
        json_format.Parse(path.read_text(), found)
        return found
    return p4info.P4Info.FromString(path.read_bytes())


@pytest.mark.parametrize("suffix", ["txtpb", "txt", "json", "bin", "binpb"])
@pytest.mark.sample(2)
def test_p4info_is_written_in_the_form_of_its_suffix(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"tables.{suffix}"
    done = p4gen("check", TABLES, "--p4info", file, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"wrote {file}")
    assert read(file) == compile_file(TABLES).p4info


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([TABLES, "--p4info", "tables.yaml"], "P4Info is text (.txtpb, .txt), JSON (.json) or binary (.bin, .binpb)"),
        ([TABLES, "--p4info", "nowhere/tables.bin"], "there is no folder nowhere"),
        ([TABLES, CLONE, "--p4info", "tables.bin"], "--p4info takes one program; 2 are given"),
        (["plain.p4", "--p4info", "plain.bin"], "for t2na, tna, v1model, and plain.p4 is without a main"),
        ([], "missing argument"),
    ],
)
def test_wrong_wishes_are_refused_and_nothing_is_written(
    tmp_path: Path, arguments: list[str | Path], cause: str
) -> None:
    (tmp_path / "plain.p4").write_text("const bit<8> a = 1;\n")
    done = p4gen("check", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert cause in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["plain.p4"]


def test_a_program_with_errors_has_no_p4info(tmp_path: Path) -> None:
    (tmp_path / "wrong.p4").write_text("const bit<8> a = b;\n")
    assert p4gen("check", "wrong.p4", "--p4info", "wrong.bin", cwd=tmp_path).returncode == 1
    assert not (tmp_path / "wrong.bin").exists()


@pytest.mark.long
def test_build_writes_p4info_where_asked_and_leaves_line_directives_out(tmp_path: Path) -> None:
    done = p4gen("build", "--lanes", "8", "--no-line", "--p4info", "program.bin", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["files"][-1] == "program.bin"
    program = tmp_path / told["folder"] / f"{told['program']}.p4"
    assert "#line" not in program.read_text()
    assert told["line_directives"] is False
    assert told["digest"] == hashlib.sha256(program.read_bytes()).hexdigest()
    assert read(tmp_path / "program.bin") == read(program.with_suffix(".p4info.txtpb"))
    # Nothing else of the program changes.
    assert p4gen("build", "--lanes", "8", "--name", "other", cwd=tmp_path).returncode == 0
    with_lines = (tmp_path / "build" / "other" / "other.p4").read_text().splitlines()
    same = [line for line in with_lines if not line.startswith("#line ")]
    assert same[3:] == program.read_text().splitlines()[3:]
    assert len(same) < len(with_lines)

    spoilt = tmp_path / "spoilt.p4"
    spoilt.write_text(program.read_text().replace("meta.drop ==", "meta.dorp ==", 1))
    line = next(i for i, text in enumerate(spoilt.read_text().splitlines(), 1) if "meta.dorp" in text)
    complaint = p4gen("check", "spoilt.p4", cwd=tmp_path).stderr
    assert f"spoilt.p4:{line}:" in complaint
    assert "generated from here" not in complaint


def test_build_refuses_a_p4info_file_before_it_builds(tmp_path: Path) -> None:
    done = p4gen("build", "--lanes", "8", "--p4info", "program", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "by its suffix" in done.stderr
    assert list(tmp_path.iterdir()) == []
