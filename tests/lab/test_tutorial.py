"""What the tutorial shows at its centre: who gets over a cut link, and how."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .labs import SMALL, lab
from .traces import Traces

NO_OTHER_TREE = """\
run allreduce 64K
fail link s0 s1
groups
restore link s0 s1
run allreduce 64K
groups
"""
SHORT = """\
run allreduce 4K
fail link s0 s1 after 300ms for 15ms
run allreduce 128K repeat 5
groups
"""
ANOTHER_TREE = """\
run allreduce 64K
fail link spine0 leaf0 after 500ms
run allreduce 128K repeat 5
groups
"""
RIGHT = "every rank's result equals NumPy's"


@pytest.mark.long
def test_without_another_tree_a_group_is_broken_until_the_link_is_back(tmp_path: Path, machine: Traces) -> None:
    done = lab(tmp_path, "tree-3-2", *SMALL, "--mode", "III", script=NO_OTHER_TREE)
    assert done.returncode == 0, done.stdout + done.stderr
    story = [
        RIGHT,
        "s0-s1 is down",
        "group all is broken, generation 1: no path between h2 and s1: link s1-s0 is down",
        "s0-s1 is up",
        "group all is active, generation 2: s0 (root) s1→s0 s2→s0",
        RIGHT,
    ]
    assert_in_order(story, done.stdout)


@pytest.mark.long
def test_another_tree_is_taken_under_a_run(tmp_path: Path, machine: Traces) -> None:
    done = lab(tmp_path, "leaf-spine", *SMALL, "--mode", "III", script=ANOTHER_TREE)
    assert done.returncode == 0, done.stdout + done.stderr
    story = [
        "group all: spine0 (root)",
        RIGHT,
        "spine0-leaf0 goes down in 0.5 s",
        "spine0-leaf0 is down",
        RIGHT,
        "placed again meanwhile: generation 2, spine1 (root)",
    ]
    assert_in_order(story, done.stdout)


@pytest.mark.long
def test_a_short_cut_costs_hosts_nothing_in_mode_iii(tmp_path: Path, machine: Traces) -> None:
    # Whether the link monitor looks just then is chance; so there are a few tries.
    for attempt in range(5):
        out = tmp_path / str(attempt)
        done = lab(out, "tree-3-2", *SMALL, "--mode", "III", "--timeout", "60s", script=SHORT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert_in_order([RIGHT, "s0-s1 is down", "s0-s1 is up", RIGHT], done.stdout)
        (log,) = out.rglob("s1/switch.log")
        lost = re.search(r"^ +0 .* (\d+)$", log.read_text(), re.MULTILINE)
        assert lost is not None, log.read_text()
        if "placed again" not in done.stdout and int(lost[1]):
            break
    else:
        raise AssertionError("no cut lost something and was not noticed")
    ranks = re.findall(r"^\d +h\d +[\d,]+ +(\d+) +(\d+)", done.stdout, re.MULTILINE)
    assert ranks == [("0", "0")] * 8  # resent, timeouts; two runs of four ranks
    assert re.search(r"^all +active +1 ", done.stdout, re.MULTILINE)


def assert_in_order(story: list[str], text: str) -> None:
    at = 0
    for sentence in story:
        found = text.find(sentence, at)
        assert found >= 0, f"'{sentence}' does not come after the others in:\n{text}"
        at = found + len(sentence)
