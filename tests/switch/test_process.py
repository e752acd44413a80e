"""A switch in a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from p4gen.errors import FailedError
from p4gen.model import ControlError
from p4gen.model.entries import Action, Entry
from p4gen.p4.compile import compile_file
from p4gen.switch.api import ControlPlane
from p4gen.switch.process import CONTROL_SOCKET, KEY_FILE, LOG_FILE, RemoteSwitch, running_switch
from p4gen.switch.unix import connect, socket_path


def test_packets_configuration_and_traces_cross_the_process_boundary(echo: Path, place: Path) -> None:
    with running_switch(echo, place, range(4)) as switch:
        control: ControlPlane = switch
        with connect(place, 0) as a, connect(place, 1) as b:
            switch.set_tracing(True)
            a.send(b"\1\0hello")
            assert b.recv(100) == b"\1\1hello"
            assert switch.take_trace().of("output")[0].data == {"port": 1, "size": 7}
            control.insert(Entry("deny", {"port": 1}, Action("drop")))
            a.send(b"\1\0hello")
            a.send(b"\0\0hello")
            assert a.recv(100) == b"\0\1hello"
            assert control.registers("seen") == [3]
            assert len(control.entries("deny")) == 1
        assert (place / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert {p.name for p in place.iterdir()} == {LOG_FILE}


def test_a_compiled_program_needs_no_source_there(echo: Path, place: Path) -> None:
    with running_switch(compile_file(echo).program, place, [0]) as switch:
        assert switch.process(0, b"\5\0") == [(5, b"\5\1")]


def test_control_errors_arrive_with_their_message(echo: Path, place: Path) -> None:
    with running_switch(echo, place, [0]) as switch:
        for _ in range(2):
            with pytest.raises(ControlError, match=r"^error: table nix: no table of that name; there is I\.deny$"):
                switch.insert(Entry("nix", {}, Action("drop")))


def test_several_clients(echo: Path, place: Path) -> None:
    with running_switch(echo, place, [0]) as first:
        second = RemoteSwitch(place)
        second.write_register("seen", 0, 9)
        assert first.register("seen", 0) == 9


def test_a_switch_that_does_not_start_says_why(place: Path) -> None:
    with (
        pytest.raises(FailedError, match=r"exit code 2\nits log ends:\n.*cannot read"),
        running_switch(place / "nix.p4", place, [0]),
    ):
        pass
    assert {p.name for p in place.iterdir()} == {LOG_FILE}


def test_stop_ends_the_process_and_later_calls_say_so(echo: Path, place: Path) -> None:
    with running_switch(echo, place, [0]) as switch:
        switch.stop()
        deadline = time.monotonic() + 10
        while socket_path(place, 0).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(FailedError, match=r"has gone away"):
            switch.registers("seen")


def test_sigterm_stops_it_cleanly(echo: Path, place: Path) -> None:
    command = [sys.executable, "-m", "p4gen.switch.process", "--dir", str(place), "--ports", "0,1", "--p4", str(echo)]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 30
        while not (place / CONTROL_SOCKET).exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGTERM)
        assert process.wait(10) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert list(place.iterdir()) == []


def test_the_process_ends_when_the_block_fails(echo: Path, place: Path) -> None:
    with pytest.raises(ZeroDivisionError), running_switch(echo, place, [0]):
        raise ZeroDivisionError
    with pytest.raises(FailedError, match="no switch can be reached"):
        RemoteSwitch(place)


def test_it_does_not_outlive_a_parent_that_is_killed(echo: Path, place: Path) -> None:
    code = (
        "import sys, time\n"
        "from p4gen.switch.process import running_switch\n"
        "with running_switch(sys.argv[1], sys.argv[2], [0]):\n"
        "    print('up', flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(echo), str(place)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        parent.kill()
    deadline = time.monotonic() + 10
    while socket_path(place, 0).exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not socket_path(place, 0).exists()
