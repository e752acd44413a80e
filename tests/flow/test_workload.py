"""Workloads from YAML: what they mean, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.plan.flow.fabric import FABRICS
from p4gen.plan.flow.workload import FOLDER, load_workload

GOOD = """\
fabric: {pods: 1, leaves: 2, spines: 2, hosts: 8, bandwidth: 200G}
policy: temporal
slots: 4
volume: exact
jobs:
  - {name: a, model: llama-7b, tp: 4, dp: 2, iterations: 2, start: 1s}
  - {name: b, tp: 2, dp: 2, compute: 10ms, tp_volume: 1M, dp_volume: 2M, count: 3}
failures:
  - {link: leaf0-spine1, at: 1s, until: 2s}
  - {switch: spine0, at: 3s}
"""


def load(tmp_path: Path, text: str) -> str:
    file = tmp_path / "w.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        load_workload(file)
    return str(refused.value).replace(str(tmp_path), "")


def test_a_workload_is_what_it_says(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(GOOD)
    workload = load_workload(tmp_path / "w.yaml")
    assert workload.policies == ("temporal",)
    jobs = workload.jobs(0)
    assert [(job.name, job.gpus, job.start) for job in jobs] == [
        ("a", 8, 1.0), ("b.0", 4, 0.0), ("b.1", 4, 0.0), ("b.2", 4, 0.0)
    ]  # fmt: skip
    assert (jobs[1].phases[0].compute, jobs[1].phases[1].volume) == (0.01, 2 << 20)
    setting = workload.setting("ring", 3)
    assert (setting.slots, setting.volume.paper, setting.fabric.bandwidth) == (4, False, 200e9)
    assert [len(failure.links) for failure in setting.failures] == [1, 3]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (GOOD.splitlines()[0][8:], "epic-129", "/w.yaml:1:9: error: there is no fabric 'epic-129'; there are epic-128"),
        ("hosts: 8", "hosts: 0", "/w.yaml:1:48: error: 0: input should be greater than or equal to 1"),
        ("slots: 4", "slotz: 4", "/w.yaml:3:8: error: unknown field 'slotz'"),
        ("policy: temporal", "policy: best", "/w.yaml:1:1: error: there is no policy 'best'"),
        ("model: llama-7b", "model: llama", "/w.yaml:6:5: error: there is no model 'llama'; there are gpt-3-175b"),
        ("compute: 10ms", "compute: 10", "/w.yaml:7:38: error: 10 is not a duration such as 1us"),
        ("compute: 10ms", "compute: 10ms, ep: 3", "/w.yaml:7:5: error: groups of 3 experts do not divide its"),
        ("dp: 2, compute", "dp: 1024, ep: 1024, compute", "/w.yaml:7:5: error: its experts are 1,047,552 pairs;"),
        ("compute: 10ms, ", "", "/w.yaml:7:5: error: a job has a model, or compute with tp_volume and dp_volume"),
        ("leaf0-spine1", "leaf0-spine7", "/w.yaml:1:1: error: there is no spine7; the last one is spine1"),
        ("until: 2s", "until: 1s", "/w.yaml:9:5: error: until is not after at"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_with_line_and_cause(tmp_path: Path, old: str, new: str, says: str) -> None:
    assert old in GOOD
    assert says in load(tmp_path, GOOD.replace(old, new))


def test_shares_of_a_trace_add_up_to_one(tmp_path: Path) -> None:
    text = "fabric: epic-128\ntrace:\n  jobs: 3\n  every: 1s\n  classes:\n    - {share: 50%, compute: 1s}\n"
    assert "/w.yaml:3:3: error: the shares add up to 0.5, not to 1" in load(tmp_path, text)


@pytest.mark.parametrize("file", sorted(FOLDER.glob("trace*.yaml")), ids=lambda file: file.stem)
def test_built_in_mixes_are_drawn_by_the_seed(file: Path) -> None:
    workload = load_workload(file.stem)
    assert workload.jobs(1) == workload.jobs(1) != workload.jobs(2)
    assert workload.fields.fabric == FABRICS["epic-2048"]


def test_the_first_mix_has_the_papers_sizes() -> None:
    trace = load_workload("trace1").fields.trace
    assert trace is not None
    assert [(each.tp * each.dp, each.share) for each in trace.classes] == [
        (8, 0.3), (16, 0.3), (32, 0.25), (64, 0.1), (128, 0.05)
    ]  # fmt: skip


def test_a_name_that_is_neither_a_file_nor_built_in_is_refused() -> None:
    with pytest.raises(InputError, match="neither a file nor a workload 'trace9'; there are lingjun, trace1, trace2"):
        load_workload("trace9")
