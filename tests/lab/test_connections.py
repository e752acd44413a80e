"""Labs whose hosts run collectives over connections that leaves spray: results are right, also when a link fails."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S

from .labs import BMV2, lab
from .traces import Traces

SMALL = ("--mode", "themis", "--connections", "64", "--queue", "32", "--queue-banks", "8")
"""A program that compiles quickly."""
RIGHT = "every rank's result equals NumPy's"
STEPS = 8


def row(text: str, number: int) -> list[str]:
    """The cells of a connection, in the last table of connections."""
    lines = [line for line in text.splitlines() if re.match(rf"{number} +h\d+→h\d+ ", line)]
    return re.split(r"  +", lines[-1].strip())


def run_suite(out: Path, *arguments: str, seed: int) -> dict[str, str]:
    """The notes of the suite's steps."""
    done = lab(out, "leaf-spine", "--suite", *SMALL, "--seed", str(seed), "--json", *arguments)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["seed"]) == (0, True, seed), done.stdout
    assert len(report["steps"]) == STEPS
    return {step["name"]: step["note"] for step in report["steps"]}


@pytest.mark.long
def test_suite(tmp_path: Path, machine: Traces, seed: int) -> None:
    notes = run_suite(tmp_path, seed=seed)
    cut = notes["a link between switches cut under alltoalls, and restored"]
    assert cut == "leaf0-spine0 cut: 26 connections went over to 1 path, and back; 8 alltoalls right"
    assert "alltoall: 48 connections, ring: 4 connections" in notes.values()
    assert re.search(r"NACKs [\d,]+, blocked", notes["the same, sprayed, with a delay on one path"])
    assert not (tmp_path / "lab" / "manager").exists()


@BMV2
def test_suite_on_bmv2(tmp_path: Path, machine: Traces, seed: int) -> None:
    notes = run_suite(tmp_path, "--target", "bmv2", seed=seed)
    assert "26 connections went over to 1 path" in notes["a link between switches cut under alltoalls, and restored"]


@pytest.mark.parametrize("target", ["embedded", pytest.param("bmv2", marks=BMV2)])
def test_suite_over_ipv6(target: str, tmp_path: Path, machine: Traces, seed: int) -> None:
    notes = run_suite(tmp_path, "--ip", "6", "--target", target, seed=seed)
    assert "26 connections went over to 1 path" in notes["a link between switches cut under alltoalls, and restored"]
    assert re.search(r"NACKs [\d,]+, blocked", notes["the same, sprayed, with a delay on one path"])


def test_leaves_and_spines_of_both_kinds_of_ip(tmp_path: Path, machine: Traces) -> None:
    """Connections are over IPv6; hosts reach each other over either."""
    script = "h0 ping -c 1 fd00:0:0:1::3\nh0 ping -c 1 10.0.0.3\nrun alltoall 16K\n"
    done = lab(tmp_path, "clos:2x2x2", *SMALL, "--ip", "both", script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    for said in ("bytes from fd00:0:0:1::3", "bytes from 10.0.0.3", RIGHT):
        assert said in done.stdout, done.stdout


@pytest.mark.long
def test_the_prompt(tmp_path: Path, machine: Traces) -> None:
    script = """\
connections
run alltoall 64K h0 h2 h4 h6
connections
spray off
run alltoall 64K h0 h2 h4 h6
connections
run allreduce 4K h0 h2
spray on
fail link leaf0 spine1
connections
run alltoall 64K h0 h2 h4 h6
restore link leaf0 spine1
connections
groups
"""
    done = lab(tmp_path, "leaf-spine", *SMALL, script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    parts = re.split(r"^lab> .*$", done.stdout, flags=re.MULTILINE)
    assert "no connections" in parts[1]
    assert "alltoall of 64K, 4 ranks over alltoall h0 h2 h4 h6, 12 connections" in parts[2]
    numbers = [number for number in range(1, 13) if "h0→" in row(parts[3], number)[1]]
    first = numbers[0]
    sprayed = row(parts[3], first)
    assert sprayed[3:6] == ["sprayed", "0: spine0 spine1", "1"]
    assert int(sprayed[8]) >= 16  # a fourth of 64K in packets of 1K
    assert "12 connections are on the paths that ECMP gives them" in parts[4]
    off = row(parts[6], first)
    assert (off[3], off[8]) == ("ecmp", sprayed[8])  # no packet more
    assert "spraying is off" in parts[6]
    assert "14 connections are sprayed" in parts[8]
    assert "leaf0-spine1 is down" in parts[9]
    assert re.search(r"\d connections are sprayed over spine0, generation 3", parts[9])
    assert row(parts[10], first)[4] == "1: spine0"
    assert int(row(parts[10], first)[8]) >= int(off[8])
    assert row(parts[13], first)[4:6] == ["0: spine0 spine1", "4"]
    assert done.stdout.count(RIGHT) == 4


@pytest.mark.long
def test_a_link_that_fails_under_load(tmp_path: Path, machine: Traces) -> None:
    script = """\
run alltoall 32K
fail link leaf0 spine1 after 200ms for 800ms
run alltoall 256K repeat 20
connections
"""
    done = lab(tmp_path, "leaf-spine", *SMALL, script=script)
    assert done.returncode == 0, done.stdout + done.stderr
    story = re.sub(r"\s+", " ", done.stdout)
    assert story.index("leaf0-spine1 is down") < story.index("leaf0-spine1 is up") < story.rindex(RIGHT)
    assert done.stdout.count(RIGHT) == 2
    generations = {row(done.stdout, number)[5] for number in range(1, 49)}
    assert generations <= {"1", "2", "3"}
    assert "3" in generations  # gone over to other paths, and back


@pytest.mark.long
def test_a_scenario_with_a_slow_spine_and_its_repetition(tmp_path: Path, machine: Traces, seed: int) -> None:
    arguments = ["--collective", "alltoall", "--size", "32K", "--repeat", "2", "--delay", "2ms@spine0"]
    done = lab(tmp_path, "leaf-spine", *SMALL, *arguments, "--loss", "1%@leaf3-spine1", "--seed", str(seed), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert (report["passed"], len(report["calls"]), len(report["connections"])) == (True, 2, 48)
    counted = [{count["name"]: count["packets"] for count in each["counts"]} for each in report["connections"]]
    assert all(counts["sprayed"] >= 8 for counts in counted)  # two calls of an eighth of 32K, in packets of 1K
    assert sum(counts["blocked"] for counts in counted)
    record = json.loads((Path(report["folder"]) / "run.json").read_text())
    assert record["verb"] == "lab"
    again = subprocess.run(
        [sys.executable, "-m", "p4gen", "rerun", report["folder"]],
        capture_output=True, text=True, timeout=4 * PATIENCE_S, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert again.returncode == 0, again.stdout + again.stderr
    assert "alltoall" in again.stdout


@pytest.mark.long
def test_mistakes_are_told(tmp_path: Path, machine: Traces) -> None:
    script = """\
run alltoal 4K
run alltoall 4
run alltoall 32K h0
run alltoall 32K h0 h9
spray maybe
delay spine7 1ms
delay leaf0-leaf1 1ms
init g h0 h2
run barrier h0 h2
heal
"""
    done = lab(tmp_path, "leaf-spine", *SMALL, script=script)
    assert done.returncode == 1
    for text in (
        "'alltoal' is not a collective; there are allreduce",
        "alltoall of 4 bytes: it has to be a positive multiple of 32",
        "alltoall: at least two hosts are needed",
        "there is no host 'h9'",
        "usage: spray on|off",
        "there is no host 'spine7', and no link between switches at it",
        "there is no host 'leaf0-leaf1'",
    ):
        assert text in done.stdout, text
    assert done.stdout.count("error: ") == 8, done.stdout
    assert done.stdout.count(RIGHT) == 1
    assert "Traceback" not in done.stdout + done.stderr
