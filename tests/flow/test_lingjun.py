"""Jobs of Alibaba's Lingjun data set, from a made-up copy of it: what is taken of its lines, and what is refused."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

from p4gen.cli.app import cli
from p4gen.errors import InputError
from p4gen.plan.flow.lingjun import Recorded, recorded
from p4gen.plan.flow.workload import load_workload

TIMES = ("gmt_job_submitted", "gmt_job_running", "gmt_job_finished")
JOBS = (
    ("late", "llama", "2023/8/2 10:05", "2023/8/2 10:06", "2023/8/2 12:06"),
    ("early", "gpt-7B", "2023/8/2 10:00", "2023/8/2 10:00", "2023/8/2 10:30"),
    ("small", "resnet", "2023/8/2 10:01", "2023/8/2 10:01", "2023/8/2 10:02"),
    ("never", "llama", "2023/8/2 10:01", "", "2023/8/2 10:02"),
    ("at once", "llama", "2023/8/2 10:01", "2023/8/2 10:02", "2023/8/2 10:02"),
    ("none", "preprocess", "2023/8/2 10:01", "2023/8/2 10:01", "2023/8/2 11:01"),
)
GPUS = {"late": (8, 8, 8), "early": (8, 4), "small": (1, 1), "never": (8,), "at once": (8,), "none": (0,)}


def written(
    folder: Path, jobs: Sequence[Sequence[str]] = JOBS, more: Sequence[Sequence[str]] = (), heads: str = "job_name"
) -> Path:
    with (folder / "job.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", heads, "model", *TIMES), *((i, *job) for i, job in enumerate(jobs))])
    workers = [(name, json.dumps({"cpu": "90", "nvidia.com/gpu": n})) for name, all_ in GPUS.items() for n in all_]
    with (folder / "worker.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("job_name", "RES"), *workers, ("late", ""), *more])
    return folder


def test_jobs_that_ran_with_gpus_are_taken_in_order(tmp_path: Path) -> None:
    assert recorded(written(tmp_path)) == [
        Recorded("early", 12, 0, 1800),
        Recorded("small", 2, 60, 60),
        Recorded("late", 24, 300, 7200),
    ]


def test_a_workload_has_whole_groups_and_as_many_iterations_as_fill_the_time(tmp_path: Path) -> None:
    jobs = load_workload(f"lingjun:{written(tmp_path)}").jobs(1)
    assert [(job.name, job.gpus, job.iterations, job.start) for job in jobs] == [
        ("early", 16, 30, 0), ("late", 24, 120, 300)
    ]  # fmt: skip


def test_a_file_of_ones_own_says_what_is_taken(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    written(tmp_path / "data")
    fields = "{data: data, jobs: 2, least: 1, speed: 10, tp: 4, compute: 1s, iteration: 60s}"
    (tmp_path / "own.yaml").write_text(f"fabric: epic-128\nlingjun: {fields}\n")
    jobs = load_workload(tmp_path / "own.yaml").jobs(1)
    assert [(job.name, job.gpus, job.iterations, job.start) for job in jobs] == [
        ("early", 12, 30, 0), ("small", 2, 1, 6)
    ]  # fmt: skip


def test_it_is_simulated(tmp_path: Path) -> None:
    arguments = ["flow", f"lingjun:{written(tmp_path)}", "--policy", "temporal", "--seed", "1", "--json"]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    found = json.loads(done.stdout)
    assert found["workload"] == "lingjun"
    assert [job["name"] for job in found["policies"]["temporal"]["jobs"]] == ["early", "late"]


def test_what_cannot_be_read_is_refused_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read: No such file"):
        recorded(tmp_path)
    with pytest.raises(InputError, match=r"job\.csv:1: error: there is no column job_name"):
        recorded(written(tmp_path, heads="name"))
    with pytest.raises(InputError, match=r"worker\.csv:13: error: RES is '8', and should be a JSON object"):
        recorded(written(tmp_path, more=[("late", "8")]))
    with pytest.raises(InputError, match=r"job\.csv:2: error: 'soon' is no time such as"):
        recorded(written(tmp_path, [("late", "llama", "soon", "soon", "soon")]))
    with pytest.raises(InputError, match="it has no job of 8 to 512 GPUs"):
        load_workload(f"lingjun:{written(tmp_path, JOBS[2:])}").jobs(1)
    with pytest.raises(InputError, match="the data set is not part of p4gen"):
        load_workload("lingjun").jobs(1)
