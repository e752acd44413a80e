"""``p4gen top``: rates from differences, one object a line, a table that refreshes in place."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from patience import PATIENCE_S
from rich.console import Console

from p4gen.cli.do_top import screen
from p4gen.manager.api import (
    Code,
    ConnectionCount,
    ConnectionSpec,
    ConnectionState,
    ConnectionStatus,
    GroupSpec,
    GroupState,
    GroupStatus,
    Manager,
    ManagerError,
    RankReport,
    Status,
    SwitchStatus,
)
from p4gen.manager.remote.service import ManagerServer
from p4gen.manager.statistics import connection_rows, statistics
from p4gen.switch.running import scratch

HOSTS = ("h0", "h1")
GROUP = GroupStatus(
    GroupSpec("training", HOSTS), GroupState.ACTIVE, 3, tree={"s1": "s0", "s0": None}, slots={"s0": 128},
    contexts={"s0": 1},
)  # fmt: skip
BROKEN = GroupStatus(GroupSpec("other", HOSTS), GroupState.BROKEN, 1, "no path between h0 and s0")
SWITCH = SwitchStatus(
    "s0", True, "", 1, 8, 128, 2048, 46, {"check_duplicate.stale": 5, "lookup_table.no_qp": 12}, ("s1",), 400.2
)
GONE = SwitchStatus("s1", False, "it does not answer")


def status(second: float, megabits: float = 0) -> Status:
    """The state after so many megabits of data in the first group."""
    data = int(megabits * 125_000)
    return Status(
        second,
        (BROKEN, GROUP),
        (replace(SWITCH, drops={**SWITCH.drops, "lookup_table.no_qp": 12 + int(second * 10)}), GONE),
        (
            RankReport("training", 0, 7, data, 1000, 3, 1, 2, 4, {"bad_icrc": 1}),
            RankReport("training", 1, 8, data + 250_000, 1100, 0, 2, 0, 0),
        ),
    )


CONNECTION = ConnectionStatus(
    7, ConnectionSpec("h0", "h2", 0x100, 0x101), ConnectionState.SPRAYED, 2, "", "leaf0", "leaf1", ("spine0", "spine1"),
    3, 4, 5,
    (
        ConnectionCount("sprayed", 900), ConnectionCount("NACKs", 12), ConnectionCount("passed: lost", 2),
        ConnectionCount("passed: late", 0), ConnectionCount("passed: last hop", 1), ConnectionCount("blocked", 9),
    ),
)  # fmt: skip


def test_connections_have_their_counters() -> None:
    now = replace(status(10), connections=(CONNECTION, replace(CONNECTION, number=8, counts=())))
    found = statistics(now)["connections"]
    json.dumps(found)
    assert found[0]["counts"] == {
        "sprayed": 900, "NACKs": 12, "passed: lost": 2, "passed: late": 0, "passed: last hop": 1, "blocked": 9,
    }  # fmt: skip
    assert (found[0]["source"], found[0]["source_qp"], found[0]["paths"]) == ("h0", 0x100, ["spine0", "spine1"])
    titles, rows = connection_rows(found)
    assert titles == [
        "connection", "hosts", "QPs", "state", "paths", "gen", "index", "epoch",
        "sprayed", "NACKs", "passed", "blocked",
    ]  # fmt: skip
    shown = ["h0→h2", "0x100→0x101", "sprayed", "3: spine0 spine1", "2", "4", "5"]
    assert rows[0] == ["7", *shown, "900", "12", "lost 2, last hop 1", "9"]
    assert rows[1] == ["8", *shown, "-", "-", "-", "-"]
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(screen(statistics(now)))
    assert "lost 2, last hop 1" in console.export_text()


def test_what_came_of_rdma_cm_is_shown() -> None:
    now = replace(status(10), handshakes={"no room": 1, "registered": 2})
    assert statistics(now)["handshakes"] == {"no room": 1, "registered": 2}
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(screen(statistics(now)))
    assert "RDMA CM: no room 1, registered 2" in console.export_text()
    console.print(screen(statistics(status(10))))
    assert "RDMA CM" not in console.export_text()


class FakeManager:
    """Each look is a second and 80 megabits later."""

    def __init__(self) -> None:
        self.looks = count()
        self.error: Exception | None = None

    def status(self) -> Status:
        if self.error is not None:
            raise self.error
        look = next(self.looks)
        return status(look, 80 * look)


@pytest.fixture
def manager() -> FakeManager:
    return FakeManager()


@pytest.fixture
def address(manager: FakeManager) -> Iterator[str]:
    with scratch() as folder, ManagerServer(cast("Manager", manager), f"unix:{folder / 'm.sock'}") as server:
        yield server.address


def top(*words: str, folder: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name != "P4GEN_MANAGER"}
    return subprocess.run(
        [sys.executable, "-m", "p4gen", "top", *words],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False, cwd=folder, env={**inherited, **environment},
    )  # fmt: skip


# --- statistics ---


def by_name(found: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in found}


def test_rates_are_differences_over_time() -> None:
    found = statistics(status(12, 200), status(10, 100))
    groups, switches = by_name(found["groups"]), by_name(found["switches"])
    training = groups["training"]
    assert training["mbps"] == pytest.approx(50)
    assert {name: training[name] for name in ("invocations", "sent", "resent", "timeouts", "naks", "cnps")} == {
        "invocations": 8, "sent": 2100, "resent": 3, "timeouts": 3, "naks": 2, "cnps": 4,
    }  # fmt: skip
    assert (training["state"], training["generation"], training["root"], training["ranks"]) == ("active", 3, "s0", 2)
    assert groups["other"]["mbps"] == 0
    assert groups["other"]["root"] is None
    assert switches["s0"]["drops_per_second"] == {"check_duplicate.stale": 0, "lookup_table.no_qp": 10}
    assert switches["s0"]["drops"]["lookup_table.no_qp"] == 132
    assert found["ranks"][0]["dropped"] == {"bad_icrc": 1}
    json.dumps(found)


def test_the_first_look_has_no_rates() -> None:
    for before in (None, status(10, 100)):
        found = statistics(status(10, 100), before)
        assert by_name(found["groups"])["training"]["mbps"] is None
        assert by_name(found["switches"])["s0"]["drops_per_second"] is None


def test_counters_that_begin_again_are_no_negative_rates() -> None:
    found = statistics(status(11, 8), status(10, 100))
    # Both ranks have counted 8 megabits, and one of them 250,000 bytes more, since they began again.
    assert by_name(found["groups"])["training"]["mbps"] == pytest.approx(9)
    found = statistics(status(1), status(0))
    assert by_name(found["groups"])["training"]["mbps"] == 0
    before = replace(status(10), switches=(replace(SWITCH, drops={"lookup_table.no_qp": 1000}),))
    assert by_name(statistics(status(11), before)["switches"])["s0"]["drops_per_second"] == {
        "check_duplicate.stale": 5, "lookup_table.no_qp": 0,
    }  # fmt: skip


# --- the command ---


def test_one_object(address: str) -> None:
    done = top("--manager", address, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == statistics(status(0))


def test_a_line_for_each_look(address: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "p4gen", "top", "--manager", address, "--json", "--interval", "0.05"],
        stdout=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    assert lines == [
        statistics(status(0)),
        statistics(status(1, 80), status(0)),
        statistics(status(2, 160), status(1, 80)),
    ]
    assert by_name(lines[1]["groups"])["training"]["mbps"] == pytest.approx(80)


def test_a_table(address: str) -> None:
    done = top("--once", P4GEN_MANAGER=address)
    assert done.returncode == 0
    rows = [re.split(r"\s{2,}", line.strip()) for line in done.stdout.splitlines()]
    assert ["training", "active", "3", "s0", "2", "-", "8", "2100", "3", "3", "2", "4"] in rows
    assert ["other", "broken", "1", "-", "2", "-", "0", "0", "0", "0", "0", "0"] in rows
    assert ["other: no path between h0 and s0"] in rows
    assert ["s0", "1/8", "128/2048", "46", "400", "s1", "yes"] in rows
    assert ["s1", "0/0", "0/0", "0", "0", "-", "no: it does not answer"] in rows
    assert ["s0", "lookup_table.no_qp", "12", "-"] in rows
    assert rows[-1] == ["s0", "check_duplicate.stale", "5", "-"], "the most frequent ones come first"


def test_it_refreshes_in_place_until_ctrl_c(address: str) -> None:
    ours, theirs = pty.openpty()
    words = ["top", "--manager", address, "--interval", "0.1"]
    process = subprocess.Popen(
        [sys.executable, "-m", "p4gen", *words], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "150", "LINES": "40"}, start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    deadline = time.monotonic() + PATIENCE_S
    while said.count(b"80.0") < 3 and time.monotonic() < deadline:
        if select.select([ours], [], [], 0.5)[0]:
            said += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    os.close(ours)
    assert said.count(b"80.0") >= 3, said
    assert b"\x1b[1A" in said, "the cursor goes back up"
    assert b"Traceback" not in said


# --- no manager ---


def test_no_manager_is_known(tmp_path: Path) -> None:
    done = top(folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no manager is known: give --manager ADDRESS, set P4GEN_MANAGER, or start a lab" in done.stderr


def test_the_running_lab_s_manager(tmp_path: Path, address: str) -> None:
    (tmp_path / "build" / "lab").mkdir(parents=True)
    (tmp_path / "build" / "lab" / "manager").write_text(address + "\n")
    assert json.loads(top("--json", folder=tmp_path).stdout)["groups"]
    elsewhere = top("--json", folder=tmp_path, P4GEN_MANAGER="unix:/nowhere/at.all")
    assert elsewhere.returncode == 1, "the environment comes first"


@pytest.mark.parametrize("word", ["--once", "--json"])
def test_a_manager_that_is_not_there(tmp_path: Path, word: str) -> None:
    done = top("--manager", f"unix:{tmp_path}/none", word)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(f"p4gen: error: no manager answers at unix:{tmp_path}/none")
    assert "Traceback" not in done.stderr


def test_a_manager_that_fails(manager: FakeManager, address: str) -> None:
    manager.error = ManagerError(Code.REFUSED, "the file is gone")
    done = top("--manager", address, "--json")
    assert (done.returncode, done.stderr) == (1, "p4gen: error: the file is gone\n")
