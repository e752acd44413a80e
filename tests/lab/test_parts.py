"""What needs neither root nor Mininet: what is wrong is said before anything is started."""

from __future__ import annotations

import importlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from patience import PATIENCE_S
from pydantic import TypeAdapter, ValidationError

from p4gen.cli.app import cli
from p4gen.cli.labrequest import LabRequest
from p4gen.cli.options import spec_fields
from p4gen.errors import FailedError, InputError, MissingToolError
from p4gen.families import serving
from p4gen.host.transport.clock import MS
from p4gen.labs import calls, prerequisites, scratch
from p4gen.labs.hosts.hosts import HostClient
from p4gen.labs.job import LabJob, Wanted
from p4gen.labs.network import faults, mininet
from p4gen.labs.network.hostnet import MANAGER_SOCKET
from p4gen.labs.processes import Process
from p4gen.labs.runs.figures import figures_of
from p4gen.labs.runs.timed import warm_up
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.switch.running import Program
from p4gen.vocabulary.topology import Name, TopologySpec, load_topology, packaged

from .traces import Traces

HOSTS = ("h0", "h1", "h2", "h3")


def p4gen_lab(*arguments: str) -> Result:
    return CliRunner().invoke(cli, ["lab", *arguments], standalone_mode=False)


TWO = ("--collective", "allreduce", "--ranks", "h0,h1", "--ranks", "h2,h3")


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["nowhere"], "neither a file nor a topology 'nowhere'"),
        (["star-4", "--lanes", "7"], "lanes = 7"),
        (["star-4", "--collective", "allreduce", "--ranks", "h0,h9"], "--ranks: there is no host 'h9'; there are h0"),
        (["star-4", "--collective", "allreduce", "--ranks", "h0,h0"], "can be only one rank"),
        (["star-4", "--collective", "allreduce", "--fail", "s0-s1"], "there is no link 's0-s1'; there are h0-s0"),
        (["star-4", "--collective", "allreduce", "--fail", "h0-s0@1s-0.5s"], "restored before it fails"),
        (["star-4", "--collective", "allreduce", "--fail", "h0-s0@5"], "--fail: "),
        (["star-4", "--collective", "allreduce", "--size", "3"], "allreduce of 3 bytes"),
        (["star-4", "--collective", "reduce", "--root", "4"], "root 4 is not a rank"),
        (["star-4", "--suite", "--loss", "150%"], "loss: "),
        (["star-4", "--suite", "--loss", "5%@s0"], "there is no host 's0'"),
        (["star-4", "--suite", "--delay", "7"], "delay: "),
        (["star-4", "--suite", "--duty", "0"], "a group that never communicates needs no switches"),
        (["star-4", "--suite", "--duty", "150%"], "'150%' is not a share"),
        (["star-4", *TWO, "--turn", "g2=0%-50%"], "--turn 'g2=0%-50%': no group is called 'g2' or begins so"),
        (["star-4", *TWO, "--turn", "g0=60%-50%"], "a window from 0.6 to 0.5: its ends are shares of a period"),
        (["star-4", *TWO, "--turn", "g0=0%-50%", "--period", "60s"], "1 periods of 60 s, and 2 to start, do not fit"),
        (["star-4", "--suite", "--bandwidth", "1M@s7"], "there is no node or link 's7'"),
        (["star-4", "--suite", "--timeout", "7"], "--timeout: "),
        (["star-4", "--suite", "--timeout", "1ps"], "in real time must be 1ms to 60s, not '1ps'"),
        (["star-4", "--suite", "--timeout", "0"], "in real time must be 1ms to 60s"),
        (["star-4", "--suite", "--delay", "11s"], "delay: must be at most 10s"),
        (["star-4", "--collective", "allreduce", "--size", "100G"], "bytes are the limit"),
        (["star-4", "--suite", "--policy", "nonsense"], "there is no placement policy 'nonsense'"),
        (["star-4", "--ports", "2"], "s0 has 4 links; the program has 2 ports"),
        (["star-4", "--arch", "t2na", "--collective", "allgather"], "t2na programs lack broadcast"),
        (["star-4", "--arch", "tna", "--suite", "--reorder", "1%"], "links must keep the order of packets"),
    ],
)
def test_wrong_input(arguments: list[str], cause: str, tmp_path: Path) -> None:
    result = p4gen_lab(*arguments, "--out", str(tmp_path))
    assert isinstance(result.exception, InputError), result.output
    assert cause in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--size", "4K"], "--size goes with a scenario"),
        (["--suite", "--measure"], "not both"),
        (["--measure", "--size", "1K"], "--size: EPIC-II has measured from 4K on"),
        (["--measure", "--collective", "barrier", "--size", "4K"], "a barrier has no data"),
        (["--measure", "--collective", "alltoall"], "--collective alltoall goes with --mode themis-s or themis-d"),
        (["--measure", "--nccl-tests"], "not both"),
        (["--suite", "--size", "4K"], "its own sizes and ranks"),
        (["--collective", "barrier", "--size", "4K"], "a barrier has no data"),
        (
            ["--collective", "alltoall", "--size", "4K"],
            "--collective alltoall goes with --mode themis-s or themis-d or themis; modeii",
        ),
        (["--suite", "--turn", "g0=0%-50%"], "--turn goes with --collective and --ranks several times"),
        ([*TWO, "--turn", "g0=0%-50%", "--duty", "50%"], "--turn goes neither with --duty nor with guests"),
        ([*TWO, "--period", "1s"], "--period goes with --turn"),
        (["--spray", "off"], "--spray goes with programs that know connections"),
        (["--mode", "themis", "--measure"], "--measure goes with programs that take part in collectives"),
        (["--mode", "themis", "--policy", "lowest-common-switch"], "--policy goes with programs that take part"),
        (["--mode", "themis", "--collective", "alltoall", "--size", "20"], "a positive multiple of 16"),
        (["--mode", "themis", "--delay", "1ms@s7"], "--delay 1ms@s7: there is no host 's7'"),
        (["--mode", "themis", "--lanes", "8"], "'lanes' is a field of atp, epic, scin and switchml"),
    ],
)
def test_options_that_do_not_go_together(arguments: list[str], cause: str) -> None:
    assert cause in str(p4gen_lab("star-4", *arguments).exception)


def test_the_memory_that_there_is_bounds_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "free_memory", lambda: 32 << 20)
    spec = EpicSpec()
    assert calls.CallOrder.wanted(spec, Wanted(size=1 << 20), 4).size == 1 << 20
    with pytest.raises(InputError, match=r"every rank draws all ranks' data.* 64 MiB; 32 MiB.* 1,024K is"):
        calls.CallOrder.wanted(spec, Wanted(size=2 << 20), 4)
    monkeypatch.undo()
    assert calls.free_memory() > 0


def test_large_sizes_are_measured_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten calls of a small size, one of a large one; 1 GiB is four calls."""
    monkeypatch.setattr(calls, "free_memory", lambda: 16 << 30)
    spec = EpicSpec(mode=Mode.II)
    name, found = figures_of(spec, Wanted("measure", "allreduce", 1 << 30, repeat=10), 4)
    assert name == "EPIC-II"
    assert [(each.size, each.calls, each.parts) for each in found] == [
        *((4 << 10 << 2 * power, 10, 1) for power in range(6)),
        (16 << 20, 4, 1), (64 << 20, 1, 1), (256 << 20, 1, 1), (1 << 30, 1, 4),
    ]  # fmt: skip
    assert found[-1].call.size == 256 << 20
    assert [warm_up(each.size) for each in found] == [2] * 7 + [0] * 3


@pytest.mark.parametrize(
    ("wanted", "contexts"), [(Wanted(), 9), (Wanted("measure"), 4), (Wanted("scenario", "reduce", root=1), 5)]
)
def test_programs_have_contexts_for_what_is_called(wanted: Wanted, contexts: int) -> None:
    """Mode I has one for AllReduce and Barrier, and for each root of a Reduce or a Broadcast; four by default."""
    options: dict[str, Any] = dict.fromkeys((*spec_fields(), "hosts"))
    options |= {"mode": "I", "measure": wanted.what == "measure", "target": "embedded"}
    spec = LabRequest("star-4", None, options).spec(load_topology("star-4"), wanted)
    assert serving(spec).groups == contexts


def test_a_malformed_topology_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text("name: bad\nswitches: [s0]\nhosts: [h0]\nlinks:\n  - [h0, s1]\n")
    result = p4gen_lab(str(file))
    assert isinstance(result.exception, InputError)
    assert f"{file}:5:10: error: there is no node 's1'" in str(result.exception)


def test_names_that_are_too_long_for_interfaces() -> None:
    long = "a_very_long_switch"
    topology = TopologySpec.model_validate(
        {"name": "long", "switches": [long], "hosts": ["h0", "h1"], "links": [["h0", long], ["h1", long]]}
    )
    with pytest.raises(InputError, match="Linux allows 15 characters"):
        prerequisites.check_topology(topology, EpicSpec())


def test_each_missing_prerequisite_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = ["unshare", "mount", "ip", "bash", "mnexec", "ifconfig"]
    for tool in tools:
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    package = tmp_path / "python" / "mininet"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "net.py").touch()
    monkeypatch.setattr(mininet, "FOLDER", package)
    monkeypatch.setattr(mininet, "find", lambda folder=package: package)
    monkeypatch.setattr(prerequisites, "missing_capabilities", list)
    monkeypatch.setenv("PATH", str(tmp_path))
    prerequisites.check("embedded")
    for tool in tools:
        (tmp_path / tool).rename(tmp_path / "hidden")
        with pytest.raises(MissingToolError, match=f"{tool}.*: apt-get install") as caught:
            prerequisites.check("embedded")
        assert caught.value.exit_code == 3
        (tmp_path / "hidden").rename(tmp_path / tool)
    with pytest.raises(MissingToolError, match=r"target bmv2: simple_switch_grpc and p4c.* are not on PATH"):
        prerequisites.check("bmv2")
    monkeypatch.setattr(prerequisites, "missing_capabilities", lambda: ["CAP_SYS_ADMIN"])
    with pytest.raises(MissingToolError, match="CAP_SYS_ADMIN is missing: run as root"):
        prerequisites.check("embedded")


def test_no_mininet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "mininet", raising=False)
    with pytest.raises(MissingToolError, match="Mininet, which is not installed: apt-get install mininet"):
        mininet.check(tmp_path)


def test_mininet_without_distutils(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on Python 3.12 and later."""
    for name in ("distutils", "distutils.version"):
        monkeypatch.setitem(sys.modules, name, None)
    mininet._stand_in_for_distutils()
    version = importlib.import_module("distutils.version")
    assert version.StrictVersion("2.10") == "2.10"


def test_capabilities_are_read_from_proc(tmp_path: Path) -> None:
    status = tmp_path / "status"
    status.write_text("Name:\tx\nCapEff:\t0000000000000000\n")
    assert prerequisites.missing_capabilities(status) == ["CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_SYS_ADMIN"]
    status.write_text(f"CapEff:\t{1 << 12 | 1 << 13 | 1 << 21:016x}\n")
    assert prerequisites.missing_capabilities(status) == []


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    wanted = Wanted("scenario", ranks=("h0",), impairments=(("loss", "1%", ""),), outages=(("s0", "s1", 0.5, 1.0),))
    file = packaged("tree-3-2")
    program = Program(tmp_path / "p.p4", tmp_path / "p.txtpb")
    job = LabJob(
        load_topology(file), file, EpicSpec(lanes=8), program, "embedded", "jit", tmp_path, tmp_path / "s",
        tmp_path / "manager", wanted,
    )  # fmt: skip
    job.save(tmp_path / "job.json")
    assert LabJob.load(tmp_path / "job.json") == job


@pytest.mark.parametrize(("arch", "ports"), [("v1model", [0, 1, 2, 3]), ("tna", [0, 1, 2, 3]), ("t2na", [0, 1, 3, 4])])
def test_ports_have_their_programs_numbers(arch: str, ports: list[int], tmp_path: Path) -> None:
    file = packaged("star-4")
    spec = EpicSpec.model_validate({"arch": arch, "lanes": 8, "icrc": "ignore"})
    program = Program(tmp_path / "p.p4", tmp_path / "p.txtpb")
    job = LabJob(
        load_topology(file), file, spec, program, "embedded", "jit", tmp_path, tmp_path / "s", tmp_path / "manager",
        Wanted("prompt"),
    )  # fmt: skip
    assert [(port, link.other("s0")) for port, link in job.ports_of("s0").items()] == list(
        zip(ports, ["h0", "h1", "h2", "h3"], strict=True)
    )


def test_stale_scratch_folders_go_and_others_stay(tmp_path: Path) -> None:
    stale = tmp_path / f"{scratch.PREFIX}dead"
    stale.mkdir()
    (stale / "lock").touch()
    other = tmp_path / f"{scratch.PREFIX}other"
    other.mkdir()  # not one of ours: it has no lock
    with scratch.scratch_folder() as (alive, _):
        assert scratch.remove_stale(alive.parent) == []
        assert alive.exists()
    assert not alive.exists()
    assert scratch.remove_stale(tmp_path) == [stale]
    assert other.exists()


def test_the_address_of_another_lab_stays(tmp_path: Path) -> None:
    file = tmp_path / "manager"
    file.write_text("unix:/tmp/p4gen-lab-other/manager.sock\n")
    scratch.remove_if_ours(file, Path("/tmp/p4gen-lab-mine"))
    assert file.exists()
    scratch.remove_if_ours(file, Path("/tmp/p4gen-lab-other"))
    assert not file.exists()


def test_no_switch_can_have_the_managers_socket() -> None:
    with pytest.raises(ValidationError, match="pattern"):
        TypeAdapter(Name).validate_python(MANAGER_SOCKET.removesuffix(".sock"))


def test_two_labs_at_once_are_both_known(tmp_path: Path) -> None:
    file = tmp_path / "lab" / "manager"
    sockets = []
    for name in ("one", "two"):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / name))
        listener.listen()
        sockets.append(listener)
        scratch.add_address(file, f"unix:{tmp_path / name}")
    assert file.read_text() == f"unix:{tmp_path}/one\nunix:{tmp_path}/two\n"
    scratch.remove_if_ours(file, tmp_path / "two")
    assert file.read_text() == f"unix:{tmp_path}/one\n"
    sockets[0].close()  # as if it had been killed
    scratch.add_address(file, f"unix:{tmp_path}/two")
    assert file.read_text() == f"unix:{tmp_path}/two\n"
    scratch.remove_if_ours(file, tmp_path / "two")
    assert not file.exists()
    sockets[1].close()


def test_faults_of_a_host() -> None:
    assert faults.direction(faults.Troubles(), "1") is None
    late = faults.direction(faults.Troubles(delay=3 * MS), "1")
    assert late is not None
    assert late(b"frame", 0).copies == ((3 * MS, b"frame"),)
    twice = faults.direction(faults.Troubles(duplicate=1.0), "1", in_order=True)
    assert twice is not None
    assert twice(b"frame", 0).copies == ((0, b"frame"), (0, b"frame"))
    lossy = faults.direction(faults.Troubles(loss=0.25), "1")
    assert lossy is not None
    lost = sum(not lossy(b"frame", 0).copies for _ in range(4000))
    assert 850 < lost < 1150
    assert faults.Troubles(loss=0.05, delay=MS).text() == "loss 0.05, delay 1 ms"
    with pytest.raises(InputError, match="'lss' is not a fault"):
        faults.parse("lss", "1%")


def test_a_daemon_that_is_killed_has_ended_when_its_requests_fail(tmp_path: Path) -> None:
    """The kernel closes the pipes of a killed process before its parent can get the status: here long before."""

    def main() -> int:
        sys.stdin.readline()
        os.close(sys.stdout.fileno())
        time.sleep(0.3)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    process = Process("host h1", ["daemon"], tmp_path / "host.log", lambda: True, main=main)
    client = HostClient("h1", process)
    process.start()
    client.listen()
    for future in (client.ask("run"), client.ask("counters"), client.hello):
        with pytest.raises(FailedError, match="host h1 has ended") as failed:
            future.result(PATIENCE_S)
        assert "killed by SIGKILL" in str(failed.value.diagnostics[0])
    with pytest.raises(FailedError, match="host h1 has ended"):
        client.call("counters")
    process.end()


def test_what_others_have_on_the_machine_is_no_trace_of_a_lab(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    name = f"p4gen-test-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no named namespaces here: {made.stderr.strip()}")
    try:
        assert Traces("nobody's", tmp_path).found() == []
        (tmp_path / "left").touch()
        assert Traces("nobody's", tmp_path).found() == [str(tmp_path / "left")]
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


@pytest.mark.parametrize("ranks", range(2, 12))
def test_arrays_of_a_suite_can_be_divided_among_any_number_of_ranks(ranks: int) -> None:
    spec = EpicSpec()
    for asked in calls.members_of(spec).samples(spec, ranks, 1 << 16):
        assert calls.CallOrder.of(spec, ranks, *asked).collective == asked[0]
