from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.vocabulary.topology import packaged_folder

SMALL = ["--lanes", "8", "--window", "4", "--message", "2", "--engine", "interp", "--seed", "1"]


def p4gen(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def sim(*arguments: str, command: Sequence[str] = ("run",)) -> Result:
    return p4gen("sim", *command, "star-4", *SMALL, *arguments)


def test_a_run_reports_and_succeeds(tmp_path: Path) -> None:
    result = sim("--size", "2K", "--loss", "5%", "--capture", f"{tmp_path}/c.pcapng", "--ladder", f"{tmp_path}/l.svg")
    assert result.return_value == 0, result.output
    for text in (
        "seed 1",
        "algorithm throughput",
        "completion time",
        "busiest links",
        "every rank's result equals NumPy's",
    ):
        assert text in result.output
    assert (tmp_path / "c.pcapng").stat().st_size > 1000
    assert (tmp_path / "l.svg").read_text().startswith("<svg")


def test_json_is_one_object() -> None:
    result = sim("--size", "1K", "--json")
    report = json.loads(result.output)
    assert (report["passed"], report["seed"], report["size"], report["errors"]) == (True, 1, 1024, [])


def test_the_seed_is_given_or_that_of_the_environment_or_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    def seed(*arguments: str) -> int:
        result = p4gen("sim", "run", "star-4", *SMALL[:-2], "--size", "1K", "--json", *arguments)
        found: int = json.loads(result.output)["seed"]
        return found

    monkeypatch.setenv("P4GEN_SEED", "77")
    assert (seed(), seed("--seed", "5")) == (77, 5)
    monkeypatch.setenv("P4GEN_SEED", "some")
    with pytest.raises(click.BadParameter, match="'some' is not a valid integer"):
        raise p4gen("sim", "run", "star-4").exception or AssertionError
    monkeypatch.delenv("P4GEN_SEED")
    assert len({seed() for _ in range(3)}) > 1


def test_a_hang_exits_with_1_and_its_cause() -> None:
    result = sim("--size", "1K", "--timeout", "0", "--script", "drop every UP_DATA of rank 2")
    assert result.return_value == 1
    assert "deadlock" in result.output
    assert "waits for rank 2" in result.output


WRITES = ("sim", "run", "star-4", "--mode", "multiwrite", "--payload", "64", "--engine", "interp", "--seed", "1")


def test_a_run_that_a_family_brings_itself(tmp_path: Path) -> None:
    files = ("--capture", f"{tmp_path}/c.pcapng", "--ladder", f"{tmp_path}/l.svg")
    result = p4gen(*WRITES, "--size", "512", "--script", "drop the 2nd UP_DATA of rank 1", *files)
    assert result.return_value == 0, result.output
    for text in (
        "seed 1",
        "allgather of 512 bytes, 4 ranks on star-4, multiwrite_r32_x8_subset_p64, gbn",
        "completion time",
        "h1>s0 script",
        "busiest links",
        "every rank's results and memory are as NumPy says",
    ):
        assert text in result.output
    assert (tmp_path / "c.pcapng").stat().st_size > 1000
    assert (tmp_path / "l.svg").read_text().startswith("<svg")


def test_a_run_that_a_family_brings_itself_as_json() -> None:
    said = p4gen(*WRITES, "--collective", "dispatch", "--tokens", "2", "--hidden", "56", "--choice", "next", "--json")
    report = json.loads(said.output)
    # two tokens and a fence from each rank; each rank gets two tokens, and three fences
    assert (report["passed"], report["sent"], report["received"], report["errors"]) == (True, 12, 20, [])


PULLS = ("sim", "run", "star-4", "--mode", "scin", "--lanes", "8", "--edges", "4", "--engine", "interp", "--seed", "1")


def test_a_run_with_a_root_and_groups_at_once(tmp_path: Path) -> None:
    call = ("--collective", "reduce", "--root", "2", "--concurrent", "2", "--size", "96", "--json")
    result = p4gen(*PULLS, *call, "--ladder", f"{tmp_path}/l.svg")
    assert result.return_value == 0, result.output
    report = json.loads(result.output)
    # each of two groups has four ACKs of arrivals, four READs of three packets, three WRITEs, four flags
    assert (report["passed"], report["to_ranks"], report["again"]) == (True, 2 * (4 + 4 + 3 + 4), 0)
    assert (tmp_path / "l.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([*PULLS, "--collective", "dispatch"], "'dispatch' is none of those of scin: allreduce, reduce, broadcast"),
        ([*PULLS, "--sync", "refined"], "--sync: error: is for collectives of IncTrees, not for scin"),
        ([*PULLS, "--in-place", "maybe"], "--in-place: error: "),
        (["sim", "star-4", "--late", "1us"], "--late: error: is for runs of scin's programs"),
        (["sim", "star-4", "--collective", "call"], "--collective: error: 'call' is none of those of epic"),
        ([*WRITES, "--collective", "allreduce"], "'allreduce' is none of those of multiwrite: allgather, dispatch"),
        ([*WRITES, "--root", "1"], "--root: error: is for collectives of IncTrees, not for multiwrite"),
        ([*WRITES, "--tokens", "many"], "--tokens: error: "),
        ([*WRITES, "--choice", "best"], "--choice: error: "),
        (["sim", "star-4", "--tokens", "4"], "--tokens: error: is for runs of multiwrite's programs"),
        (["sim", "star-4", "--collective", "dispatch"], "--collective: error: 'dispatch' is none of those of epic"),
    ],
)
def test_options_of_other_families(arguments: list[str], cause: str) -> None:
    assert cause in str(p4gen(*arguments).exception)


def test_a_barrier() -> None:
    assert "synchronised" in sim("--collective", "barrier", "--repeat", "3").output


def test_a_sweep_writes_csv_and_plot(tmp_path: Path) -> None:
    result = sim("--values", "4K,8K", "--out", str(tmp_path), command=("sweep", "size"))
    assert result.return_value == 0, result.output
    assert (tmp_path / "size.csv").read_text().count("\n") == 3
    assert (tmp_path / "size.svg").exists()
    assert " 6.1 " in result.output


@pytest.mark.long
def test_tables_are_printed_and_written_with_a_ratio_for_each_cell(tmp_path: Path) -> None:
    asked = ["paper", "epic", "table-25", "--seed", "1", "--scale", "quick", "--out", str(tmp_path), "--json"]
    report = json.loads(CliRunner().invoke(cli, asked, standalone_mode=False).output)
    assert report["passed"]
    assert [row["message size"] for row in report["rows"]] == ["4 KiB", "64 KiB"]
    for solution in ("EPIC-II", "EPIC-III", "Ring"):
        for row in report["rows"]:
            assert row[f"{solution}: ratio"] == pytest.approx(row[solution] / row[f"{solution}: paper"])
    assert all(Path(file).stat().st_size > 100 for file in report["files"])
    assert (tmp_path / "epic" / "table-25-runs.csv").read_text().count("\n") == 7


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--collective", "broadcast", "--root", "4"], "root 4 is not a rank"),
        (["--loss", "150%"], "--loss"),
        (["--loss", "5%@h9"], "'h9' matches no link"),
        (["--size", "3"], "multiple of 4"),
        (["--timeout", "5"], "--timeout"),
        (["--script", "drop it"], "script"),
        (["--down", "h0"], "outage"),
        (["--lanes", "7"], "lanes = 7"),
        (["--mode", "III", "--recovery", "ideal"], "recovery ideal needs switches that know selective NAKs"),
        (["--mode", "III", "--reliability", "sack", "--recovery", "gbn"], "takes a selective NAK for a bad response"),
    ],
)
def test_wrong_input_is_refused(arguments: list[str], cause: str) -> None:
    result = sim(*arguments)
    assert isinstance(result.exception, InputError)
    assert cause in str(result.exception)


def test_options_that_do_not_go_together() -> None:
    assert "barrier has no data" in str(sim("--collective", "barrier", "--size", "4K").exception)
    assert "--burst: error: is the length of bursts of loss" in str(sim("--burst", "3").exception)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("star-4 --size 1K", "run star-4 --size 1K"),
        ("star-4 --sweep size --values 4K,8K", "sweep size star-4 --values 4K,8K"),
        ("--sweep=loss star-4 --size 4K --values 0,1", "sweep loss star-4 --size 4K --values 0,1"),
    ],
)
@pytest.mark.long
def test_spellings_from_before_there_were_commands(before: str, now: str, tmp_path: Path) -> None:
    more = [*SMALL, "--json", *(["--out", str(tmp_path)] if "--values" in now else [])]
    one, other = (p4gen("sim", *words.split(), *more) for words in (before, now))
    assert one.return_value == other.return_value == 0, one.output
    assert json.loads(one.output) == json.loads(other.output)


def test_topo_describes_networks_too_large_for_an_inc_tree() -> None:
    text = p4gen("topo", "clos:300x4x1@400G").output
    assert "clos-300x4x1: 304 switches, 300 hosts, 1500 links; 300 ranks, no IncTree: spine0 has 300 links" in text
    assert "10.0.1.0" in text
    assert "400 Gb/s" in text


def test_topo_describes_and_draws(tmp_path: Path) -> None:
    result = p4gen("topo", "leaf-spine", "--svg", f"{tmp_path}/t.svg")
    assert "6 switches, 8 hosts, 16 links; 8 ranks, IncTree rooted at spine0" in result.output
    assert (tmp_path / "t.svg").read_text().startswith("<svg")
    assert json.loads(p4gen("topo", "star-4", "--json").output)["name"] == "star-4"


def test_topologies_are_listed() -> None:
    built_in = sorted(file.stem for file in packaged_folder().glob("*.yaml"))
    assert json.loads(p4gen("topo", "--json").output) == {"topologies": built_in}
    assert [line.split()[0] for line in p4gen("topo").output.splitlines()[1:]] == built_in


def traffic(*arguments: str) -> Result:
    return p4gen("sim", "traffic", "clos:2x1x2", "--lanes", "8", "--groups", "1", "--seed", "1", *arguments)


def test_traffic_is_reported_flow_by_flow(tmp_path: Path) -> None:
    csv = tmp_path / "series.csv"
    result = traffic("--size", "64K", "--dcqcn", "--series", str(csv), "--interval", "2us")
    assert result.return_value == 0, result.output
    for text in ("seed 1", "2 groups of 2 hosts on clos-2x1x2", "h0>h2", "everything has arrived as it was sent"):
        assert text in result.output
    assert csv.read_text().startswith("time_us,flow,rate_gbps,useful")
    assert "<svg" in (tmp_path / "series.svg").read_text()


def test_traffic_says_that_nics_which_go_back_n_are_not_sprayed() -> None:
    said = "connections take ECMP's paths"
    themis = ("sim", "traffic", "clos:2x2x1", "--mode", "themis", "--size", "4K", "--seed", "1", "--nic", "gbn")
    assert said in p4gen(*themis).output
    assert said not in p4gen(*themis, "--spray-gbn").output
    assert said not in traffic("--size", "4K", "--nic", "gbn").output, "the program sprays nothing"


def test_traffic_as_json(tmp_path: Path) -> None:
    core = tmp_path / "core.yaml"
    core.write_text("lanes: 16\n")
    options = ("--pattern", "alltoall", "--size", "48K", "--hosts", "h0,h3,h1", "--core", str(core), "--json")
    report = json.loads(traffic(*options, "--nic", "oracle", "--loss", "5%").output)
    assert (report["passed"], report["errors"], len(report["flows"])) == (True, [], 6)
    assert {flow["resent"] - flow["lost"] for flow in report["flows"]} == {0}


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--size", "0"], "1 to"),
        (["--hosts", "h0,h9"], "no host h9"),
        (["--hosts", "h0"], "two different hosts"),
        (["--td", "0", "--dcqcn"], "--td"),
        (["--td", "4us"], "go with --dcqcn"),
        (["--interval", "4us"], "goes with --series"),
        (["--mtu", "66"], "multiple of 4"),
        (["--pattern", "alltoall", "--size", "12"], "multiple of 8"),
    ],
)
def test_traffic_that_cannot_be(arguments: list[str], cause: str) -> None:
    assert cause in str(traffic(*arguments).exception)
