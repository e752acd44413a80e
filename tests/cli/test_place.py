"""``p4gen manager place``, ``jobs`` and ``release``: plans without a manager, and jobs at one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator

import pytest

from p4gen.cli.app import main
from p4gen.manager.api import GroupState, Manager
from p4gen.manager.onpaper import on_paper
from p4gen.manager.remote.service import ManagerServer
from p4gen.papers.epic.spec import EpicSpec
from p4gen.scratch import scratch
from p4gen.vocabulary.topology import load_topology

Ask = Callable[..., tuple[int, str, str]]


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    """Exit status, standard output and standard error of ``p4gen manager`` with these arguments."""
    monkeypatch.delenv("P4GEN_MANAGER", raising=False)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["p4gen", "manager", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return int(ended.value.code or 0), *capsys.readouterr()

    return run


@pytest.fixture
def site() -> Iterator[tuple[Manager, str]]:
    """A manager with two contexts on each switch, and its address."""
    spec = EpicSpec.model_validate({"mode": "III", "groups": 2})
    with (
        on_paper(load_topology("leaf-spine"), spec, "lowest-common-switch") as manager,
        scratch() as folder,
        ManagerServer(manager, f"unix:{folder / 'm.sock'}") as server,
    ):
        yield manager, server.address


def test_plans_compare_placements(ask: Ask) -> None:
    """A packed job's trees run over fewer links, and that is what is printed."""
    found = {}
    for placement in ("packed", "spread"):
        plan = ("place", "j", "--tp", "2", "--dp", "4", "--topology", "fat-tree-k4", "--placement", placement)
        status, text, _ = ask(*plan)
        assert status == 0
        _, as_json, _ = ask(*plan, "--json")
        groups = json.loads(as_json)["groups"]
        assert [len(group["ranks"]) for group in groups] == [2] * 4 + [4] * 2
        links = sum(group["links"] for group in groups)
        assert text.splitlines()[-1] == f"6 trees: {sum(len(g['tree']) for g in groups)} switches, {links} links"
        found[placement] = links
    assert found == {"packed": 4 * 2 + 2 * 10, "spread": 4 * 4 + 2 * 12}


def test_long_lists_of_hosts_are_cut(ask: Ask) -> None:
    _, text, _ = ask("place", "j", "--ranks", "16", "--topology", "fat-tree-k4")
    assert text.splitlines()[0] == f"j, packed: {' '.join(f'h{n}' for n in range(16))}"
    assert " ".join(text.splitlines()[2].split()) == "world h0 h1 h2 h3 h4 h5 h6 ... h15 (16) core0 13 28"


def test_a_job_at_a_manager_comes_and_goes(ask: Ask, site: tuple[Manager, str]) -> None:
    manager, address = site
    at = ("--manager", address)
    assert ask("jobs", *at) == (0, "no jobs\n", "")
    status, text, _ = ask("place", "one", "--ranks", "3", "--group", "a=0,1", "--group", "b=2", *at)
    assert status == 0
    assert text.startswith("one, packed: h0 h1 h2\n")
    assert [group.state for group in manager.groups()] == [GroupState.ACTIVE] * 2
    status, text, error = ask("place", "big", "--ranks", "6", *at)
    assert (status, text) == (1, "")
    assert error == "p4gen: error: job big: 6 hosts are needed; 5 are free; 3 have jobs or groups\n"
    status, text, _ = ask("place", "full", "--tp", "2", "--dp", "2", "--fallback", *at)
    assert status == 0
    _, text, _ = ask("jobs", *at, "--json")
    assert [(job["job"], len(job["hosts"]), len(job["groups"])) for job in json.loads(text)] == [
        ("full", 4, 4),
        ("one", 3, 2),
    ]
    assert [line.split()[0] for line in ask("jobs", *at)[1].splitlines()] == ["job", "full", "one"]
    assert ask("cordon", *at) == (0, "no node is cordoned\n", "")
    assert ask("cordon", "h0", *at) == (0, "h0\n", "")
    assert ask("cordon", "h0", "--off", *at) == (0, "no node is cordoned\n", "")
    assert "there is no switch and no host 'x'" in ask("cordon", "x", *at)[2]
    for job in ("full", "one"):
        assert ask("release", job, *at) == (0, "", "")
    assert not manager.groups()
    status, _, error = ask("release", "one", *at)
    assert (status, error) == (1, "p4gen: error: there is no job 'one'\n")


def test_windows_of_groups_are_the_jobs(ask: Ask) -> None:
    plan = ("place", "j", "--tp", "2", "--dp", "2", "--placement", "spread", "--topology", "leaf-spine")
    windows = ("--window", "tp=0%-50%", "--window", "dp=50%-75%", "--window", "dp=75%-100%")
    status, text, _ = ask(*plan, *windows, "--policy", "time-shared")
    assert status == 0
    roots = [line.split()[-3] for line in text.splitlines()[2:6]]
    assert roots[0] != roots[1]
    assert roots[2] != roots[3]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("place", "j", "--ranks", "6", "--tp", "4"), "--ranks 6: TP x DP x PP is 4"),
        (("place", "j", "--group", "a"), "--group 'a': it is not NAME=RANK,RANK"),
        (("place", "j", "--group", "a=0,x"), "--group 'a=0,x': it is not NAME=RANK,RANK"),
        (("place", "j", "--tp", "2", "--group", "tp0.0=0"), "there is a group 'tp0.0' already"),
        (("place", "j", "--policy", "ring"), "--policy is for plans, with --topology"),
        (("place", "j", "--topology", "star-4", "--manager", "unix:x"), "--topology is for a plan"),
        (("place", "j", "--group", "a=1", "--topology", "star-4"), "group a: its ranks are some of 0 to 0, each once"),
        (("place", "j", "--placement", "pakced"), "did you mean 'packed'?"),
        (("place", "j", "--window", "tp=0-1"), "--window 'tp=0-1': no group is called 'tp' or begins so"),
        (("place", "j", "--window", "world=1"), "--window 'world=1': it is not NAME=FROM-TO"),
        (("place", "j", "--window", "world=0-2"), "--window: error: "),
        (("place", "j", "--window", "world=0.5-0.1", "--topology", "star-4"), "a window from 0.5 to 0.1"),
        (("place", "j"), "the manager is not given, and P4GEN_MANAGER is not set"),
        (("cordon", "--off"), "--off is of a node"),
        (("release",), "missing argument 'NAME'"),
    ],
)
def test_wrong_requests_say_why(ask: Ask, arguments: tuple[str, ...], said: str) -> None:
    status, text, error = ask(*arguments)
    assert (status, text) == (2, "")
    assert said in error
