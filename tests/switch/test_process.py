"""The embedded switch in a process of its own, driven through P4Runtime."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError
from p4gen.model import ControlError
from p4gen.model.control_plane import ControlPlane
from p4gen.model.entries import Action, Entry
from p4gen.switch.process import CONTROL_SOCKET, LOG_FILE, running_switch
from p4gen.switch.running import WRITES_FILE, Program, RunningSwitch, listens, started
from p4gen.switch.unix import connect, socket_path


@pytest.fixture
def program(echo: Path, tmp_path: Path) -> Program:
    return Program.of_text(echo.read_text(), tmp_path)


def test_packets_configuration_and_traces_cross_the_process_boundary(program: Program, place: Path) -> None:
    with running_switch(program, place, range(4), trace=True) as running, running.connect() as client:
        control: ControlPlane = client
        with connect(place, 0) as a, connect(place, 1) as b:
            a.send(b"\1\0hello")
            assert b.recv(100) == b"\1\1hello"
            assert running.trace is not None
            assert "7 bytes out of port 1" in running.trace.read_text()
            control.insert(Entry("deny", {"port": 1}, Action("drop")))
            a.send(b"\1\0hello")
            a.send(b"\0\0hello")
            assert a.recv(100) == b"\0\1hello"
            assert control.registers("seen") == [3]
            assert len(control.entries("deny")) == 1
    assert {p.name for p in place.iterdir()} == {LOG_FILE, WRITES_FILE, "trace.txt"}


def test_control_errors_name_the_thing_or_the_update(program: Program, place: Path) -> None:
    with running_switch(program, place, [0]) as running, running.connect() as client:
        for _ in range(2):
            with pytest.raises(ControlError, match=r"^error: table nix: no table of that name; there is I\.deny$"):
                client.insert(Entry("nix", {}, Action("drop")))
        one, two = (Entry("deny", {"port": port}, Action("drop")) for port in (1, 2))
        client.insert(two)
        with pytest.raises(ControlError, match=r"insert 2 of 2, table deny \[port=0x2\]: ALREADY_EXISTS"):
            client.insert(one, two)
        assert len(client.entries("deny")) == 1


def test_reset_is_as_after_loading(program: Program, place: Path) -> None:
    with running_switch(program, place, range(2)) as running, running.connect() as client, connect(place, 0) as port:
        client.insert(Entry("deny", {"port": 1}, Action("drop")))
        port.send(b"\0\0")
        port.recv(100)
        client.write_register("seen", 0, 7)
        assert client.registers("seen") == [7]
        client.reset()
        assert client.entries("deny") == []
        assert client.registers("seen") == [0]


def test_who_connects_last_is_the_primary_and_all_may_read(program: Program, place: Path) -> None:
    with running_switch(program, place, [0]) as running, running.connect() as first, running.connect() as second:
        second.insert(Entry("deny", {"port": 1}, Action("drop")))
        assert len(first.entries("deny")) == 1
        with pytest.raises(ControlError, match="PERMISSION_DENIED"):
            first.insert(Entry("deny", {"port": 2}, Action("drop")))


def test_a_switch_that_does_not_start_says_why(program: Program, place: Path) -> None:
    (place / "port0.sock").mkdir()
    with pytest.raises(
        FailedError,
        match=r"did not start: see its log\n  command: .* switch .*\n  exit status 2.*\n.*cannot make ports",
    ):
        run_for_a_moment(program, place)


def run_for_a_moment(program: Program, place: Path) -> None:
    with running_switch(program, place, [0]):
        pass


VANISHES = """
import socket, sys
with socket.socket(socket.AF_UNIX) as server:
    server.bind(sys.argv[1])
    server.listen()
    for _ in range(2):
        server.accept()
print("out of luck")
sys.exit(3)
"""


def test_a_switch_that_ends_before_it_is_connected_is_not_waited_for(place: Path) -> None:
    """It listens when it is looked at, and ends when the controller connects."""
    address, log = f"unix:{place / 'control'}", place / "log"
    (place / "vanishes.py").write_text(VANISHES)
    command = [sys.executable, str(place / "vanishes.py"), str(place / "control")]
    running = RunningSwitch("embedded", place, address, place / "info", place / "p4", "unix", {})
    with (
        pytest.raises(
            FailedError, match=r"a switch has ended: bad luck\n  command: .*\n  exit status 3; its log ends:"
        ),
        started(command, address, log, what="a switch", causes={"luck": "bad luck"}),
    ):
        running.connect()


def test_a_switch_that_has_gone_is_named(program: Program, place: Path) -> None:
    with running_switch(program, place, [0]) as running:
        client = running.connect()
    with pytest.raises(FailedError, match=r"the switch at unix:.* has gone away"):
        client.registers("seen")
    client.close()


def test_sigterm_stops_it_cleanly(echo: Path, place: Path) -> None:
    address = f"unix:{place / CONTROL_SOCKET}"
    command = [sys.executable, "-m", "p4gen", "switch", str(echo), "--unix", str(place), "--ports", "2"]
    command += ["--grpc-server-addr", address, "-L", "warn", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        until(lambda: listens(address))
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert list(place.iterdir()) == []


def test_the_process_ends_when_the_block_fails(program: Program, place: Path) -> None:
    with pytest.raises(ZeroDivisionError), running_switch(program, place, [0]) as running:
        raise ZeroDivisionError
    assert not listens(running.address)


def test_it_does_not_outlive_a_parent_that_is_killed(echo: Path, tmp_path: Path, place: Path) -> None:
    code = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from p4gen.switch.process import running_switch\n"
        "from p4gen.switch.running import Program\n"
        "program = Program.of_text(Path(sys.argv[1]).read_text(), Path(sys.argv[2]))\n"
        "with running_switch(program, Path(sys.argv[3]), [0]):\n"
        "    print('up', flush=True)\n"
        "    time.sleep(3600)\n"
    )
    command = [sys.executable, "-c", code, str(echo), str(tmp_path), str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        parent.kill()
    until(lambda: not socket_path(place, 0).exists())
