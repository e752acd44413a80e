"""The processes of the target tofino-model, with stand-ins for both: their start, their end, their deaths."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError, MissingToolError
from p4gen.switch.running import Program
from p4gen.switch.tofino import process, tools
from p4gen.switch.tofino.process import running_tofino

from .described import HERE
from .standins import StandIns


def _may_unshare() -> bool:
    if os.geteuid():
        return False
    if child := os.fork():
        return os.waitpid(child, 0)[1] == 0
    os._exit(int(ctypes.CDLL(None).unshare(0x40000000) != 0))


needs_root = pytest.mark.skipif(not _may_unshare(), reason="may not make network namespaces")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    out = tmp_path / "route.tofino"
    (out / "pipe").mkdir(parents=True)
    (out / "bfrt.json").write_text('{"tables": []}')
    (out / "pipe/context.json").write_text("{}")
    (out / "pipe/tofino2.bin").write_bytes(b"\0")
    return Program(HERE / "route.p4", HERE / "route.p4", tofino=out)


def interfaces() -> list[str]:
    """Those of the calling thread's network namespace with names as the harness gives them: other tests make others."""
    lines = Path("/proc/thread-self/net/dev").read_text().splitlines()
    names = (line.split(":")[0].strip() for line in lines if ":" in line)
    return sorted(name for name in names if name.startswith("veth"))


def _await_end(pid: int) -> None:
    until(lambda: not Path(f"/proc/{pid}").exists(), lambda: f"process {pid} has not ended")


def network() -> str:
    return os.readlink("/proc/thread-self/ns/net")


@pytest.fixture
def nothing_left(tmp_path: Path) -> Callable[[StandIns], None]:
    before, links = network(), interfaces()

    def check(sde: StandIns) -> None:
        assert network() == before
        assert interfaces() == links
        for event in sde.events():
            if "pid" in event:
                _await_end(event["pid"])

    return check


@needs_root
def test_start_order_arguments_and_clean_end(
    program: Program, tmp_path: Path, nothing_left: Callable[[StandIns], None]
) -> None:
    sde = StandIns(tmp_path / "sde", driver={"not_ready": 2})
    outside = network()
    place = tmp_path / "run"
    with running_tofino(program, place, range(4), find=sde.sde, timeout=PATIENCE_S) as running:
        assert network() != outside
        assert running.target == "tofino-model"
        assert running.platform_args["interfaces"] == {0: "veth1", 1: "veth3", 3: "veth7"}
        assert running.platform_args["slower"] == 20
        assert running.bfrt is not None
        assert running.bfrt["ports"] == [(0, 8), (1, 9), (3, 10)]
        assert running.slower == 20
        assert len(running.pids) == 2
        assert sde.order() == ["tofino-model started", "bf_switchd started"]
    assert sde.order() == ["tofino-model started", "bf_switchd started", "bf_switchd stopped", "tofino-model stopped"]
    model, driver, *asked = (event for event in sde.events() if event["what"] in ("started", "asked"))
    assert [(event["device"], event["ready"]) for event in asked] == [("0", False), ("0", False), ("0", True)]
    conf, install = f"{place}/route.conf", str(sde.folder)
    assert model["argv"] == [
        "--p4-target-config", conf, "-f", f"{place}/ports.json", "-d", "1", "--chip-type", "5",
        "--install-dir", install, "--logs-disable", "--port-monitor",
    ]  # fmt: skip
    status = driver["argv"][driver["argv"].index("--status-port") + 1]
    grpc = running.address.removeprefix("127.0.0.1:")
    assert driver["argv"] == [
        "--install-dir", install, "--conf-file", conf, "--init-mode=cold", "--status-port", status,
        "--bfrt-grpc-port", grpc, "--server-listen-local-only", "--background",
    ]  # fmt: skip
    assert status != grpc
    assert {event["cwd"] for event in (model, driver)} == {str(place)}
    assert {event["libraries"] for event in (model, driver)} == {f"{install}/lib"}
    assert {event["install"] for event in (model, driver)} == {install}
    assert model["interfaces"] == ["lo", *(f"veth{n}" for n in (0, 1, 2, 3, 6, 7))]
    nothing_left(sde)


@needs_root
@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"model": {"dies": 3}}, r"tofino-model has ended.*exit status 3.*it hurts"),
        ({"model": {"dies": 1, "last": "error while loading shared libraries: libx"}}, "is SDE_INSTALL right"),
        ({"driver": {"dies": 5}}, r"bf_switchd has ended.*exit status 5.*it hurts"),
        ({"driver": {"not_ready": 9, "dies_when_asked": 2}}, r"bf_switchd has ended.*exit status 9"),
    ],
)
def test_a_death_before_it_is_ready(
    plan: dict[str, dict[str, object]],
    message: str,
    program: Program,
    tmp_path: Path,
    nothing_left: Callable[[StandIns], None],
) -> None:
    sde = StandIns(tmp_path / "sde", **plan)
    with (
        pytest.raises(FailedError, match=f"(?s){message}"),
        running_tofino(program, tmp_path / "run", range(2), find=sde.sde, timeout=PATIENCE_S),
    ):
        pytest.fail("it is not ready")
    nothing_left(sde)


@needs_root
def test_a_death_while_it_is_used(program: Program, tmp_path: Path, nothing_left: Callable[[StandIns], None]) -> None:
    sde = StandIns(tmp_path / "sde", model={"lives": "enough"})

    def fail() -> None:
        (sde.folder / "enough").touch()
        _await_end(sde.events()[0]["pid"])
        raise ValueError("what a test sees of it")

    with (
        pytest.raises(FailedError, match=r"(?s)tofino-model has ended.*exit status 4") as caught,
        running_tofino(program, tmp_path / "run", range(2), find=sde.sde, timeout=PATIENCE_S),
    ):
        fail()
    assert isinstance(caught.value.__cause__, ValueError)
    nothing_left(sde)


@needs_root
def test_never_ready(program: Program, tmp_path: Path, nothing_left: Callable[[StandIns], None]) -> None:
    sde = StandIns(tmp_path / "sde", driver={"not_ready": 10**9})
    with (
        pytest.raises(
            FailedError, match=r"(?s)bf_switchd does not say at 127.0.0.1:\d+ in time.*still running"
        ) as caught,
        running_tofino(program, tmp_path / "run", range(2), find=sde.sde, timeout=0.0),
    ):
        pytest.fail("it is not ready")
    assert str(tmp_path / "run" / process.DRIVER_LOG) in str(caught.value)
    nothing_left(sde)


@needs_root
def test_processes_that_ignore_being_ended(
    program: Program, tmp_path: Path, nothing_left: Callable[[StandIns], None]
) -> None:
    sde = StandIns(tmp_path / "sde", model={"deaf": True}, driver={"deaf": True})
    with running_tofino(program, tmp_path / "run", range(2), find=sde.sde, timeout=PATIENCE_S):
        pass
    assert sde.order() == ["tofino-model started", "bf_switchd started"]
    nothing_left(sde)


@needs_root
def test_the_tests_own_failure_stays(
    program: Program, tmp_path: Path, nothing_left: Callable[[StandIns], None]
) -> None:
    sde = StandIns(tmp_path / "sde")
    with (
        pytest.raises(ValueError, match="wrong frame"),
        running_tofino(program, tmp_path / "run", range(2), find=sde.sde, timeout=PATIENCE_S),
    ):
        raise ValueError("wrong frame")
    nothing_left(sde)


def test_the_p4runtime_server_is_asked_for_by_its_port(tmp_path: Path) -> None:
    command = process.driver_command(StandIns(tmp_path / "sde").sde(), Path("x.conf"), process.Ports(1, 2, 50051))
    assert command[-1] == "--p4rt-server=127.0.0.1:50051"


def test_tools_on_path_or_in_sde_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("SDE_INSTALL", raising=False)
    with pytest.raises(MissingToolError, match="tofino-model and bf_switchd are neither on PATH nor in"):
        tools.sde()
    sde = StandIns(tmp_path / "sde")
    monkeypatch.setenv("SDE_INSTALL", str(sde.folder))
    assert tools.sde() == sde.sde()
    monkeypatch.delenv("SDE_INSTALL")
    monkeypatch.setenv("PATH", str(sde.folder / "bin"))
    assert tools.sde() == sde.sde()
    (sde.folder / "bin/tofino-model").unlink()
    with pytest.raises(MissingToolError, match="tofino-model is neither"):
        tools.sde()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [("user", "only root"), ("pages", "needs 196 huge pages, there are 7"), ("proto", r"bfruntime\.proto is missing")],
)
def test_what_else_is_missing(wrong: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sde = StandIns(tmp_path / "sde")
    monkeypatch.setenv("SDE_INSTALL", str(sde.folder))
    monkeypatch.setattr(os, "geteuid", lambda: int(wrong == "user"))
    monkeypatch.setattr(tools, "huge_pages", lambda: 7 if wrong == "pages" else 196)
    if wrong == "proto":
        sde.sde().proto.unlink()
    with pytest.raises(MissingToolError, match=message) as caught:
        tools.check()
    assert len(caught.value.lines()) == 1


def test_all_that_is_missing_of_the_machine_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDE_INSTALL", str(StandIns(tmp_path / "sde").folder))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(tools, "huge_pages", lambda: 0)
    with pytest.raises(MissingToolError) as caught:
        tools.check()
    root, pages = caught.value.lines()
    assert "only root may make" in root
    assert "sysctl vm.nr_hugepages=196" in pages


@pytest.mark.long
def test_programs_that_are_not_for_tofino_are_refused() -> None:
    words = [sys.executable, "-m", "p4gen", "ptf", "run", "--mode", "II", "--target", "tofino-model"]
    done = subprocess.run([*words, "--arch", "v1model"], capture_output=True, text=True, check=False)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "tofino-model does not run programs for v1model" in done.stderr
