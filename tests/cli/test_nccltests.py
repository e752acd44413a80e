"""``--nccl-tests`` of simulations: rows are runs of their own; labs' command lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

import p4gen as library
from p4gen.cli.app import cli
from p4gen.errors import InputError

SMALL = ("--lanes", "8", "--window", "4", "--message", "2", "--engine", "interp", "--seed", "1")


def p4gen(*arguments: str) -> Result:
    return CliRunner().invoke(cli, arguments, standalone_mode=False)


def table(*arguments: str) -> dict[str, Any]:
    done = p4gen("sim", "star-3", *SMALL, "--nccl-tests", "--json", *arguments)
    assert done.return_value == 0, done.output
    found: dict[str, Any] = json.loads(done.output)
    return found


@pytest.mark.parametrize(
    ("collective", "sizes"),
    [
        ("allreduce", [36, 1332]),
        ("reduce", [36, 1332]),
        ("broadcast", [36, 1332]),
        ("reducescatter", [1296]),
        ("allgather", [1296]),
        ("barrier", [0]),
    ],
)
def test_a_row_is_a_run_of_its_size(collective: str, sizes: list[int]) -> None:
    """Also of sizes that are no multiple of a packet's 32 bytes, nor of the number of ranks."""
    rooted = ("--root", "2") if collective in ("reduce", "broadcast") else ()
    wanted = () if collective == "barrier" else ("-b", "36", "-e", "1400", "-f", "37")
    report = table("--collective", collective, *wanted, *rooted, "--repeat", "2")
    assert (report["passed"], report["ranks"], report["root"]) == (True, 3, 2 if rooted else -1)
    assert [row["size"] for row in report["rows"]] == sizes
    for row in report["rows"]:
        program = library.generate(lanes=8, window=4, message=2)
        asked: dict[str, Any] = {} if collective == "barrier" else {"size": str(row["size"])}
        asked |= {"collective": collective, "repeat": 2, "engine": "interp", "seed": 1, "root": 2 if rooted else 0}
        alone = library.simulate("star-3", program, **asked)
        assert row["us"] == pytest.approx(alone.duration / 2 / 1e6)
        assert row["wrong"] == 0
        if collective != "barrier":
            assert row["algbw"] == pytest.approx(row["size"] / row["us"] / 1e3)


def test_the_table_as_text() -> None:
    done = p4gen("sim", "star-3", *SMALL, "--nccl-tests", "-b", "64", "-e", "256", "-f", "4", "--loss", "5%")
    assert done.return_value == 0
    lines = done.output.splitlines()
    assert lines[0] == "seed 1"
    assert lines[1].startswith("# allreduce, 3 ranks on star-3, modeii_sum_int32_x8; virtual time, of one call")
    assert [line.split()[:5] for line in lines if not line.startswith("#")][1:] == [
        ["64", "16", "int32", "sum", "-1"], ["256", "64", "int32", "sum", "-1"],
    ]  # fmt: skip
    assert lines[-2] == "# Out of bounds values : 0 OK"
    assert lines[-1].startswith("# Avg bus bandwidth    : ")


def rows(text: str) -> list[str]:
    """The sizes that a table has."""
    return [line.split()[0] for line in text.splitlines() if line.startswith(" ") and "int32" in line]


def test_a_run_that_does_not_end_ends_the_table() -> None:
    stopped = ("--timeout", "0", "--script", "drop every UP_DATA of rank 2")
    done = p4gen("sim", "star-3", *SMALL, "--nccl-tests", "-b", "32", "-e", "8K", "-f", "16", *stopped)
    assert (done.return_value, rows(done.output)) == (1, [])
    assert "deadlock" in done.output


def test_a_script_has_to_drop_something_of_each_size() -> None:
    late = ("--script", "drop the 9th UP_DATA of rank 2")
    done = p4gen("sim", "star-3", *SMALL, "--nccl-tests", "-b", "32", "-e", "8K", "-f", "16", *late)
    assert (done.return_value, rows(done.output)) == (1, ["32", "512", "8192"])
    told = "# 'drop the 9th UP_DATA of rank 2' dropped nothing"
    assert [line.startswith(told) for line in done.output.splitlines()].count(True) == 1


def test_an_alltoall_over_connections() -> None:
    asked = ("--pattern", "alltoall", "--mode", "themis", "--nccl-tests", "-b", "1000", "-e", "1000", "--json")
    done = p4gen("sim", "traffic", "leaf-spine", *asked, "--hosts", "h0,h2,h4", "--seed", "1")
    report = json.loads(done.output)
    assert done.return_value == 0
    (row,) = report["rows"]
    assert (report["collective"], report["type"], row["size"], row["count"]) == ("alltoall", "int32", 960, 80)
    assert row["busbw"] == pytest.approx(row["algbw"] * 2 / 3)


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("sim star-4 -b 4K", "--minbytes goes with --nccl-tests"),
        ("sim star-4 --nccl-tests --size 4K", "not --size"),
        ("sim star-4 --nccl-tests -b 4K -e 2K", "--minbytes 4096 must be at least 1, and at most --maxbytes, 2048"),
        ("sim star-4 --nccl-tests -b 4Q", "'4Q' is not a size"),
        ("sim star-4 --nccl-tests --collective barrier -f 4", "a barrier has no data: omit --stepfactor"),
        ("sim star-4 --nccl-tests --concurrent 2", "--concurrent does not go with --nccl-tests"),
        ("sim star-4 --nccl-tests --ladder l.svg", "--nccl-tests is many runs, without l.svg"),
        ("sim star-4 --nccl-tests --mode multiwrite --collective dispatch", "'dispatch' has no bus bandwidth"),
        ("sim traffic star-4 --nccl-tests", "'next' has no bus bandwidth"),
        ("sim traffic leaf-spine --nccl-tests --series s.csv", "--nccl-tests is many runs"),
        ("sim traffic star-4 --pattern alltoall --nccl-tests --hosts h0,h1 --hosts h2", "needs groups of one size"),
        ("lab star-4 -e 4K", "--maxbytes goes with --nccl-tests"),
        ("lab star-4 --nccl-tests --suite", "--nccl-tests or --suite, not both"),
        ("lab star-4 --nccl-tests --size 4K", "not --size"),
        ("lab star-4 --nccl-tests --ranks h0,h1 --ranks h2,h3", "--nccl-tests is about one group"),
        ("lab star-4 --nccl-tests --collective allgather -e 4", "allgather by 4 ranks takes 64 bytes at least"),
        ("lab star-4 --nccl-tests -e 100G -b 100G", "bytes are the limit"),
    ],
)
def test_command_lines_that_are_refused(
    words: str, cause: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    options = () if words.startswith("lab") else ("--seed", "1")
    done = p4gen(*words.split(), *options)
    assert isinstance(done.exception, InputError | click.UsageError), done.output
    assert cause in str(done.exception)
    assert not list(tmp_path.iterdir())
