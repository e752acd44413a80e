"""The command line: exit codes, where output goes, JSON that is one object."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.program import compose

ROOT = Path(__file__).parents[2]


def p4gen(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False)


@pytest.mark.long
def test_build_prints_a_table_and_what_to_type_next(tmp_path: Path) -> None:
    done = p4gen("build", "--mode", "II", "--lanes", "8", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "CheckDuplicate" in done.stdout
    assert "Next:" in done.stdout
    assert "ptf run --mode II --lanes 8 " in done.stdout
    assert "ptf mutate --mode II --lanes 8 " in done.stdout
    assert (tmp_path / "build" / "modeii_sum_int32_x8" / "manifest.json").exists()


def test_build_json_is_one_object(tmp_path: Path) -> None:
    done = p4gen("build", "--lanes", "8", "--json", cwd=tmp_path)
    content = json.loads(done.stdout)
    assert content["program"] == "modeii_sum_int32_x8"
    assert all((tmp_path / file).exists() for file in content["files"])


def test_wrong_flags_and_files_are_refused_with_exit_2_and_nothing_written(tmp_path: Path) -> None:
    (tmp_path / "spec.yaml").write_text("mode: II\nlanes: 48\nfan_in: 33\nlane: 64\n")
    done = p4gen("build", "spec.yaml", "--op", "avg", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if "error:" in line]
    assert [line.split(": error:")[0] for line in lines] == [
        "--op",
        "spec.yaml:2:8",
        "spec.yaml:3:9",
        "spec.yaml:4:1",
    ]
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize(
    "args",
    [
        ["frobnicate"],
        ["build", "--nope"],
        ["ptf", "--trace"],
        ["ptf", "mutate", "--trace"],
        ["sim", "sweep", "star-4"],
        ["diff", "--mode", "III"],
        ["difftest", "--fault", "no-such-fault@bmv2"],
        ["difftest", "--mode", "III", "--fault", "epoch-ignored@elsewhere"],
        ["bench", "--mode", "II", "--mode", "III", "--lanes", "8", "--lanes", "16", "--lanes", "32"],
    ],
)
@pytest.mark.sample(3)
def test_wrong_usage_is_exit_2(tmp_path: Path, args: list[str]) -> None:
    done = p4gen(*args, cwd=tmp_path)
    assert done.returncode == 2
    assert ": error: " in done.stderr.splitlines()[0]


def test_signals_that_the_starter_blocked_arrive_all_the_same(tmp_path: Path) -> None:
    code = """if True:
        import signal
        blocked = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
        signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
        from p4gen.cli import main
        try:
            main()
        finally:
            assert not signal.pthread_sigmask(signal.SIG_BLOCK, ()) & blocked
    """
    done = subprocess.run(
        [sys.executable, "-c", code, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_schema_is_a_json_schema_of_the_spec(tmp_path: Path) -> None:
    schema = json.loads(p4gen("schema", cwd=tmp_path).stdout)
    assert schema["properties"]["lanes"]["enum"] == [8, 16, 32, 64, 128, 256, 512, 1024]
    assert schema["additionalProperties"] is False


def test_doctor_reports_every_part(tmp_path: Path) -> None:
    parts = json.loads(p4gen("doctor", "--json", cwd=tmp_path).stdout)["parts"]
    assert {"Python", "p4c-bm2-ss", "simple_switch_grpc", "tofino-model", "Mininet"} <= {part["part"] for part in parts}
    assert all(part["found"] or part["get"] for part in parts)
    found = {part["part"]: part for part in parts}
    assert {"p4c for Tofino", "huge pages", "root"} <= set(found)
    assert "open-p4studio" in found["tofino-model"]["get"] or found["tofino-model"]["found"]
    pages = int(Path("/proc/sys/vm/nr_hugepages").read_text())
    assert (found["huge pages"]["found"] is None) == (pages < 196)
    assert (found["root"]["found"] is None) == bool(os.geteuid())


@pytest.mark.long
def test_ptf_runs_one_scenario_with_its_trace(tmp_path: Path) -> None:
    scenario = "test_reliability.StalePsnIsIgnored"
    done = p4gen("ptf", "--lanes", "8", "--seed", "7", "--test", scenario, "--trace", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "seed 7" in done.stdout
    assert "program.p4 below is build/modeii_sum_int32_x8/modeii_sum_int32_x8.p4" in done.stdout
    assert "count IncIngress.drops[CheckDuplicate_stale (" in done.stdout
    assert "\n1 passed, 0 failed, 0 not run\n" in done.stdout


@pytest.mark.long
def test_build_names_the_registers_of_mode_iii_with_their_widths(tmp_path: Path) -> None:
    done = p4gen("build", "--mode", "III", "--lanes", "8", "--pipelines", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "receive 512 x 57 bit" in done.stdout
    assert (tmp_path / "build" / "modeiii_sum_int32_x8_p2" / "manifest.json").exists()


@pytest.mark.long
def test_check_knows_how_many_pipelines_a_generated_program_has(tmp_path: Path) -> None:
    assert p4gen("build", "--lanes", "8", "--pipelines", "2", cwd=tmp_path).returncode == 0
    program = tmp_path / "build" / "modeii_sum_int32_x8_p2" / "modeii_sum_int32_x8_p2.p4"
    assert p4gen("check", program, cwd=tmp_path).returncode == 0
    spoilt = program.with_name("spoilt.p4")
    text = program.read_text()
    assert "meta.lookup.pipeline ++ (base +" in text
    spoilt.write_text(text.replace("meta.lookup.pipeline ++ (base +", "1w0 ++ (base +"))
    done = p4gen("check", spoilt, cwd=tmp_path)
    assert done.returncode == 1
    assert "not provably a pipeline's number" in done.stderr


def test_the_docs_list_every_drop_reason() -> None:
    """Each with its modes and its meaning, and no others."""
    modes: dict[tuple[str, str], list[str]] = {}
    for mode, reliability in itertools.product(Mode, ("sr", "gbn", "sack")):
        if mode.stores and reliability != "gbn":
            continue  # which takes packets in order
        locks = 0 if mode.stores else 1
        spec = EpicSpec.model_validate({"mode": mode, "reliability": reliability, "locks": locks})
        for drop in compose(spec).drops:
            found = modes.setdefault((drop.symbol, drop.drop.meaning), [])
            if mode not in found:
                found.append(str(mode))
    text = (ROOT / "docs" / "modes.md").read_text().partition("## What is dropped")[2].partition("\n## ")[0]
    rows = {line for line in text.splitlines() if line.startswith("| `")}
    assert rows == {f"| `{symbol}` | {', '.join(found)} | {meaning} |" for (symbol, meaning), found in modes.items()}
