"""The control socket: requests set and unset, the trace has a limit, and its last line says that it was reached."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from p4gen.errors import FailedError
from p4gen.model import Trace
from p4gen.p4.compile import compile_file
from p4gen.switch.control import REQUESTS, ControlSocket, ask
from p4gen.switch.device import Device
from p4gen.switch.observe import Observer

FRAME = bytes(64)
LIMIT = 64 << 10


@pytest.fixture
def device() -> Device:
    compiled = compile_file(Path(__file__).with_name("echo.p4"))
    found = Device(ports=range(4), programs=[compiled])
    found.commit(found.load(compiled.p4info, b""))
    return found


@pytest.fixture
def observer(device: Device, tmp_path: Path) -> Iterator[Observer]:
    found = Observer(device, tmp_path / "trace.txt", None, logging.getLogger("test"), LIMIT)
    yield found
    found.close()


@pytest.fixture
def control(observer: Observer, tmp_path: Path) -> Iterator[Path]:
    server = ControlSocket(tmp_path / "control", observer, observer.settle_or_log)  # here nobody else carries frames
    yield tmp_path / "control"
    server.close()


def test_a_request_that_is_repeated_changes_nothing(control: Path, observer: Observer, tmp_path: Path) -> None:
    for state in (True, True, False, False, True):
        assert ask(control, f"trace {'on' if state else 'off'}")["trace"] is state
        assert ask(control, "status")["trace"] is state
    observer.send(0, FRAME)
    ask(control, "trace off")
    observer.send(0, FRAME)
    assert (tmp_path / "trace.txt").read_text().count("packet of 64 bytes on port 0") == 1


def test_the_trace_has_a_limit_and_says_that_it_was_reached(
    control: Path, device: Device, observer: Observer, tmp_path: Path
) -> None:
    file = tmp_path / "trace.txt"
    ask(control, "trace on")
    for _ in range(2000):
        observer.send(0, FRAME)
    text = file.read_text()
    assert LIMIT // 2 < len(text) <= LIMIT
    assert text.endswith(f"tracing ends here: the file has reached its limit of {LIMIT:,} bytes (--trace-limit)\n\n")
    assert device.trace is None
    said = ask(control, "status")
    assert (said["trace"], said["trace_full"]) == (False, True)
    ask(control, "trace on")  # begins anew
    observer.send(0, FRAME)
    ask(control, "trace off")
    assert file.read_text().count("packet of") == 1


def test_packets_that_no_longer_fit_are_left_out_whole(tmp_path: Path, device: Device) -> None:
    observer = Observer(device, tmp_path / "t", None, logging.getLogger("test"), 1000)
    observer.set_trace(True)
    observer.settle()
    assert device.trace is not None
    device.trace(Trace())
    for _ in range(100):
        observer.send(0, FRAME)
    assert len((tmp_path / "t").read_bytes()) <= 1000
    observer.close()


def test_what_cannot_be_done_is_said(control: Path) -> None:
    with pytest.raises(FailedError, match=r"started without --pcap DIR"):
        ask(control, "capture on")
    with pytest.raises(FailedError, match=f"say one of: {', '.join(REQUESTS)}"):
        ask(control, "trace maybe")
    with pytest.raises(FailedError, match=r"no switch answers at .*nobody"):
        ask(control.with_name("nobody"), "status")


def test_noise_at_the_socket_does_no_harm(control: Path) -> None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(control))
        peer.sendall(b"\xff" * 100_000)
        peer.shutdown(socket.SHUT_WR)
        while peer.recv(65536):
            pass
    assert ask(control, "status")["trace"] is False


def test_a_trace_that_cannot_be_written_is_said(device: Device, tmp_path: Path) -> None:
    observer = Observer(device, tmp_path / "no" / "trace.txt", None, logging.getLogger("test"))
    server = ControlSocket(tmp_path / "control", observer, observer.settle_or_log)
    with pytest.raises(FailedError, match="No such file or directory"):
        ask(tmp_path / "control", "trace on")
    assert ask(tmp_path / "control", "status")["trace"] is False
    server.close()
