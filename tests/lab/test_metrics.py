"""Metrics of a lab, from outside its namespaces."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from .labs import SMALL, lab, start, wait_until_up
from .traces import Traces


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return answer.read().decode()  # type: ignore[no-any-return]


@pytest.mark.long
def test_metrics_of_a_lab(tmp_path: Path, machine: Traces) -> None:
    with start(tmp_path, "star-2", *SMALL, "--metrics", "127.0.0.1:0") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        found = re.fullmatch(r"metrics: (http://127\.0\.0\.1:\d+/metrics)\n", process.stdout.readline())
        assert found is not None
        wait_until_up(tmp_path, process)
        process.stdin.write("run allreduce 4K repeat 3\n")
        process.stdin.flush()
        until(lambda: 'p4gen_group_data_bytes_total{group="all",tenant=""} 12288.0' in read(found[1]))
        assert 'p4gen_switch_reachable{switch="s0"} 1.0' in read(found[1])
        assert read(found[1].replace("metrics", "readyz")) == "ready; 1 of 1 switches answer\n"
        printed, _ = process.communicate("exit\n")
    assert process.returncode == 0, printed
    with pytest.raises(urllib.error.URLError):
        read(found[1])


def test_a_labs_metrics_are_for_this_machine(tmp_path: Path, machine: Traces) -> None:
    done = lab(tmp_path, "star-2", *SMALL, "--metrics", "0.0.0.0:0")
    assert done.returncode == 2
    assert "0.0.0.0:0: other machines can reach it; a lab's metrics are for this one" in done.stderr
