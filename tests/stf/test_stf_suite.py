"""Folders of tests: which belong together, what each comes to, and the verbs that run them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.stf.suite import FAILED, PASSED, SKIPPED, find_tests, run_test, run_tests

CORPUS = Path(__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("bench.p4h", "drop.p4", "drop.undone.stf"):
        shutil.copy(CORPUS / name, tmp_path)
    return tmp_path


def p4gen(*args: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)


def test_a_script_belongs_to_the_program_whose_name_it_begins_with(folder: Path) -> None:
    (folder / "deeper").mkdir()
    for name in ("drop.stf", "drop.a.b.stf", "dropped.stf", "deeper/drop.stf"):
        (folder / name).write_text("")
    programs = {test.name: test.program for test in find_tests(folder)}
    drop = folder / "drop.p4"
    assert programs == {
        "drop": drop,
        "drop.a.b": drop,
        "drop.undone": drop,
        "dropped": None,
        "deeper/drop": None,
    }


def test_verdicts(folder: Path) -> None:
    scripts = {
        "drop.passes": "packet 0 01 00000000",
        "drop.fails": "packet 0 02 00000000",
        "drop.unreadable": "pocket 0",
        "orphan": "",
        "psa": "",
        "broken": "",
        "foreign": "",
    }
    for name, text in scripts.items():
        (folder / f"{name}.stf").write_text(text)
    (folder / "psa.p4").write_text("#include <psa.p4>\n")
    (folder / "broken.p4").write_text("#include <core.p4>\n#include <nowhere.p4>\n")
    (folder / "foreign.p4").write_text("#include <core.p4>\npackage P();\nP() main;\n")
    found = {result.name: result for result in run_tests(find_tests(folder))}
    verdicts = {name: result.verdict for name, result in found.items()}
    assert verdicts == {
        "drop.passes": PASSED,
        "drop.undone": PASSED,
        "drop.fails": FAILED,
        "drop.unreadable": FAILED,
        "broken": FAILED,
        "orphan": SKIPPED,
        "psa": SKIPPED,
        "foreign": SKIPPED,
    }
    assert "another architecture, psa.p4" in found["psa"].reasons[0].message
    assert "the program is for P" in found["foreign"].reasons[0].message
    assert "no program" in found["orphan"].reasons[0].message
    assert all(result.reasons for result in found.values() if result.verdict != PASSED)


def test_processes_change_nothing(folder: Path) -> None:
    (folder / "drop.fails.stf").write_text("packet 0 02 00000000")
    tests = find_tests(folder)
    alone, together = ([(r.name, r.verdict, r.reasons) for r in run_tests(tests, jobs=jobs)] for jobs in (1, 2))
    assert alone == together


def test_an_extern_of_the_program_itself_is_a_reason_to_skip(folder: Path) -> None:
    text = (folder / "drop.p4").read_text().replace("struct meta_t { }", "struct meta_t { }\nextern void mine();")
    (folder / "own.p4").write_text(text.replace("if (hdr.request.op == 1) {", "mine();\nif (hdr.request.op == 1) {", 1))
    (folder / "own.stf").write_text("")
    (test,) = (test for test in find_tests(folder) if test.name == "own")
    result = run_test(test)
    assert (result.verdict, len(result.reasons)) == (SKIPPED, 1)
    assert "extern mine" in result.reasons[0].message


def test_stf_prints_a_line_a_test_and_totals(folder: Path) -> None:
    done = p4gen("stf", folder, "--jobs", "1")
    assert (done.returncode, done.stdout) == (0, "drop.undone  passed\n1 passed, 0 failed, 0 skipped\n")
    (folder / "drop.wrong.stf").write_text("packet 0 02 00000000\nexpect 2 03\n")
    (folder / "orphan.stf").write_text("")
    done = p4gen("stf", folder, "--jobs", "1")
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "drop.undone  passed",
        "drop.wrong   failed",
        "orphan       skipped: there is no program for orphan.stf",
        "1 passed, 1 failed, 1 skipped",
    ]
    assert "drop.wrong.stf:2:1: error: port 2, packet 1: byte 0 is 02, not 03" in done.stderr
    assert p4gen("stf", folder, "--match", "undone").returncode == 0


def test_stf_json_is_one_object(folder: Path) -> None:
    content = json.loads(p4gen("stf", folder, "--json", "--jobs", "1").stdout)
    assert {key: content[key] for key in ("passed", "failed", "skipped")} == {"passed": 1, "failed": 0, "skipped": 0}
    assert content["tests"][0]["verdict"] == "passed"


def test_stf_without_tests_is_wrong_usage(tmp_path: Path) -> None:
    done = p4gen("stf", tmp_path)
    assert done.returncode == 2
    assert "no .stf files" in done.stderr


def test_run_traces_and_fails_with_exit_1(folder: Path) -> None:
    done = p4gen("run", folder / "drop.p4", "--stf", folder / "drop.undone.stf", "--trace")
    assert done.returncode == 0, done.stderr
    assert "dropped at the end of ingress" in done.stdout
    assert "drop.p4:" in done.stdout
    assert done.stdout.splitlines()[-1].endswith("passed; 2 packets in, 1 out")
    (folder / "wrong.stf").write_text("packet 0 02 00000000\n")
    done = p4gen("run", folder / "drop.p4", "--stf", folder / "wrong.stf")
    assert done.returncode == 1
    assert "a packet came out that is not expected" in done.stderr
    (folder / "wrong.stf").write_text("add nothing k:1 a()\n")
    done = p4gen("run", folder / "drop.p4", "--stf", folder / "wrong.stf")
    assert done.returncode == 2
    assert "wrong.stf:1:1: error: table nothing" in done.stderr


def test_run_json_is_one_object(folder: Path) -> None:
    done = p4gen("run", folder / "drop.p4", "--stf", folder / "drop.undone.stf", "--json", "--trace")
    content = json.loads(done.stdout)
    assert content["passed"] is True
    assert [(o["port"], o["packet"]) for o in content["outputs"]] == [(2, "0200000000")]
    assert content["trace"]


def test_check_says_what_is_wrong_with_exit_1(folder: Path) -> None:
    done = p4gen("check", folder / "drop.p4")
    assert done.returncode == 0
    assert "V1Switch, 0 tables" in done.stdout
    text = (folder / "drop.p4").read_text()
    (folder / "drop.p4").write_text(text.replace("truncate(hdr.request.length);", "truncate(nothing);"))
    done = p4gen("check", folder / "drop.p4")
    assert done.returncode == 1
    assert "drop.p4:36:22: error: " in done.stderr
    content = json.loads(p4gen("check", folder / "drop.p4", "--json").stdout)
    assert content["ok"] is False
    assert [(e["line"], e["column"]) for e in content["errors"]] == [(36, 22), (51, 22)]


@pytest.mark.long
def test_check_lints_on_demand_and_knows_what_bmv2_cannot_do(folder: Path) -> None:
    text = (CORPUS / "register.p4").read_text()
    twice = folder / "twice.p4"
    twice.write_text(text.replace("bit<32> held;", "bit<32> held;\n        cells.read(held, index);"))
    assert p4gen("check", twice).stderr == ""
    linted = p4gen("check", twice, "--lint")
    assert linted.returncode == 0
    assert "warning: register 'Pipe.cells'" in linted.stderr
    assert "^" in linted.stderr
    text = (folder / "drop.p4").read_text()
    wide = text.replace("bit<32> length;", "bit<31> length;").replace(
        "hdr.request.length = standard_metadata", "hdr.request.length = (bit<31>) standard_metadata"
    )
    (folder / "drop.p4").write_text(
        wide.replace("truncate(hdr.request.length)", "truncate((bit<32>) hdr.request.length)")
    )
    refused, warned = p4gen("check", folder / "drop.p4"), p4gen("check", folder / "drop.p4", "--lenient")
    assert (refused.returncode, warned.returncode) == (1, 0)
    assert "error: " in refused.stderr
    assert "warning: " in warned.stderr
