"""Whole labs: all collectives, right, under loss, over links that fail; plain traffic passes. Then nothing is left."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from p4gen.labs.runs import groupsteps
from p4gen.manager.api import GroupSpec, GroupState, GroupStatus
from p4gen.rocev2.packet import problems
from p4gen.rocev2.places import IPV6, places_in
from p4gen.stf.captures import read_capture
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import load_topology

from .labs import BMV2, SMALL, lab
from .traces import Traces

NAMES = 7
"""Steps of the suite."""


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("topology", "mode"),
    [*((topology, mode) for topology in ("star-4", "tree-3-2") for mode in ("I", "II", "III")), ("leaf-spine", "III")],
)
@pytest.mark.long
def test_suite(topology: str, mode: str, tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, topology, "--suite", "--mode", mode, "--seed", str(seed), "--json")
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["seed"]) == (0, True, seed), done.stdout
    assert len(report["steps"]) == NAMES
    notes = {step["name"]: step["note"] for step in report["steps"]}
    cut = notes["a link cut under a collective, and restored"]
    if topology == "leaf-spine":
        assert "spine1" in cut
        assert "generation 2" in cut
    else:
        assert "broken (" in cut
        assert "generation" in cut
    assert not (tmp_path / "lab" / "manager").exists()
    record = json.loads((Path(report["folder"]) / "run.json").read_text())
    assert (record["verb"], record["passed"], record["seed"]) == ("lab", True, seed)


@pytest.mark.parametrize("mode", ["II", "III", "multiwrite", "scin"])
@pytest.mark.parametrize("target", ["embedded", pytest.param("bmv2", marks=BMV2)])
def test_suite_over_ipv6(mode: str, target: str, tmp_path: Path, machine: Traces, seed: int) -> None:
    topology, small = ("tree-3-2", SMALL) if mode in ("II", "III") else ("star-3", ())
    arguments = ["--mode", mode, "--ip", "6", "--target", target, *small, "--seed", str(seed), "--json"]
    done = lab(tmp_path, topology, "--suite", *arguments)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout


def test_every_frame_over_ipv6_is_right(tmp_path: Path, machine: Traces, seed: int) -> None:
    arguments = ["--mode", "III", "--ip", "both", "--collective", "allreduce", "--size", "16K", "--seed", str(seed)]
    done = lab(tmp_path, "tree-3-2", *SMALL, *arguments, "--pcap")
    assert done.returncode == 0, done.stdout + done.stderr
    for switch in ("s0", "s1"):
        (capture,) = tmp_path.glob(f"runs/*/{switch}/{switch}.pcapng")
        frames = [each.frame for each in read_capture(capture) if places_in(each.frame) is not None]
        assert len(frames) > 256, f"{len(frames):,} frames"
        assert all(places_in(frame) is IPV6 for frame in frames)
        wrong = [(frame.hex(), found) for frame in frames if (found := problems(frame))]
        assert not wrong, f"{len(wrong)} of {len(frames):,} frames are wrong, first {wrong[0]}"


@BMV2
@pytest.mark.parametrize(("topology", "mode"), [("star-4", "III"), ("tree-3-2", "II")])
def test_suite_on_bmv2(topology: str, mode: str, tmp_path: Path, machine: Traces, seed: int) -> None:
    arguments = ["--mode", mode, "--target", "bmv2", "--lanes", "16", "--seed", str(seed), "--json"]
    done = lab(tmp_path, topology, "--suite", *arguments)
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout


@pytest.mark.long
def test_scenario_with_faults_and_an_outage(tmp_path: Path, machine: Traces, seed: int) -> None:
    arguments = ["--collective", "reduce", "--size", "32K", "--root", "1", "--ranks", "h3,h0,h2", "--repeat", "4"]
    faults = ["--loss", "1%", "--loss", "5%@h0", "--delay", "1ms@h2", "--fail", "s0-s1@0.05s-0.3s"]
    done = lab(tmp_path, "tree-3-2", *SMALL, *arguments, *faults, "--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
    for text in ("reduce of 32K, 3 ranks, 4 times", "out loss", "s0-s1 is down", "every rank's result equals NumPy's"):
        assert text in done.stdout


@pytest.mark.long
def test_measurement_stands_beside_the_paper(tmp_path: Path, machine: Traces) -> None:
    done = lab(
        tmp_path, "star-4", "--measure", "--size", "64K", "--repeat", "2", "--mode", "III", "--lanes", "64", "--json"
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"]) == (0, True), done.stdout + done.stderr
    assert {row["collective"] for row in report["rows"]} == set(Collective)
    assert [row["paper"] for row in report["rows"] if row["collective"] == "allreduce"] == [15.69, 64.14, 88.69]
    for row in report["rows"]:
        assert 0 < row["mean"] <= row["best"]
        assert row["ratio"] == pytest.approx(row["mean"] / row["paper"])
        assert row["host_us"] > 0
        assert row["switch_us"] > 0


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "paper", "text"),
    [
        (("reducescatter", "--size", "16K"), [6.48, 24.63], r"Mb/s +24\.63 Mb/s"),
        (("broadcast", "--size", "4K", "--root", "2"), [48.3], r"Mb/s +48\.30 Mb/s"),
        (("barrier",), [2502.15], r"/s +2,502\.15 /s"),
    ],
)
def test_one_collective_is_measured(
    tmp_path: Path, machine: Traces, asked: tuple[str, ...], paper: list[float], text: str
) -> None:
    done = lab(tmp_path, "star-4", "--measure", "--collective", *asked, "--repeat", "2", "--mode", "III", *SMALL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(text, done.stdout)
    (record,) = tmp_path.glob("runs/*/run.json")
    rows = json.loads(record.read_text())["result"]["rows"]
    assert [row["paper"] for row in rows] == paper
    assert all(0 < row["mean"] <= row["best"] for row in rows)


@pytest.mark.long
@pytest.mark.parametrize(
    ("asked", "sizes"),
    [
        (("--collective", "reducescatter", *SMALL, "-b", "100", "-e", "20K", "-f", "25"), [64, 2496]),
        # Ranks' memory has room for one call: data of several are not drawn ahead.
        (("--collective", "allgather", "--mode", "multiwrite", "-b", "9K", "-e", "9K"), [8192]),
        (("--collective", "alltoall", "--mode", "themis", "-b", "1000", "-e", "1000"), [960]),
    ],
    ids=["tree", "memory", "connections"],
)
def test_time_and_bandwidth_by_size(tmp_path: Path, machine: Traces, asked: tuple[str, ...], sizes: list[int]) -> None:
    done = lab(tmp_path, "star-4", "--nccl-tests", *asked, "--repeat", "3", "--json", "--seed", "1")
    report = json.loads(done.stdout)
    assert (done.returncode, report["passed"], report["problems"]) == (0, True, []), done.stdout + done.stderr
    assert [(row["size"], row["wrong"]) for row in report["rows"]] == [(size, 0) for size in sizes]
    for row in report["rows"]:
        assert row["algbw"] == pytest.approx(row["size"] / row["us"] / 1e3)
        assert row["busbw"] == pytest.approx(row["algbw"] * 3 / 4)


def test_the_link_to_cut_is_one_of_the_tree() -> None:
    spine = load_topology("leaf-spine")
    spec = GroupSpec("g", ("h0", "h2"))
    group = GroupStatus(spec, GroupState.ACTIVE, 1, tree={"spine0": None, "leaf0": "spine0", "leaf1": "spine0"})
    link = groupsteps.tree_link(spine, group)
    assert set(link.ends) == {"leaf0", "spine0"}
    assert groupsteps.connected_without(spine, link)
    star = load_topology("star-4")
    group = GroupStatus(GroupSpec("g", ("h1", "h2")), GroupState.ACTIVE, 1, tree={"s0": None})
    link = groupsteps.tree_link(star, group)
    assert set(link.ends) == {"h1", "s0"}
    assert not groupsteps.connected_without(star, link)
