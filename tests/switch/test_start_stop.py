"""``p4gen switch`` starts and stops, again and again, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from p4gen.p4rt.client import Client
from p4gen.switch.running import free_port, listens

STARTS = int(os.environ.get("P4GEN_STARTS", "8"))
"""A start takes about a second; P4GEN_STARTS=100 has been shown to leave nothing behind either."""


def start(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "p4gen", "switch", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(address: str, process: subprocess.Popen[str]) -> None:
    until(lambda: process.poll() is not None or listens(address))
    assert process.poll() is None


@pytest.mark.long
def test_starts_and_stops_in_a_row_leave_nothing_behind(echo: Path, place: Path) -> None:
    work, capture = place / "w", place / "c"
    work.mkdir()
    address = f"unix:{work / 's'}"
    before = set(os.listdir("/tmp")) - {place.name}
    for number in range(STARTS):
        process = start(str(echo), "--unix", str(work), "--ports", "3", "--grpc-server-addr", address, "-L", "off")
        wait_for(address, process)
        if number % 6 == 0:  # with a controller that is still there when it stops
            with Client(address) as client:
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE_S) == 0
                assert client.session.address == address
        else:
            process.send_signal(signal.SIGTERM if number % 2 else signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0
        output, errors = process.communicate()
        assert errors == ""
        assert output.startswith("  port")
        assert list(work.iterdir()) == []
    assert not capture.exists()
    left = set(os.listdir("/tmp")) - before - {place.name}
    assert not {name for name in left if str(os.getpid()) in name}
    assert running_in(work) == []


def running_in(folder: Path) -> list[str]:
    """The processes that have ``folder`` in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(folder) in line:
                found.append(line)
    return found


def test_statistics_captures_and_a_tcp_address(echo: Path, place: Path) -> None:
    port = free_port()
    address = f"127.0.0.1:{port}"
    process = start(
        str(echo), "--unix", str(place), "--ports", "2", "--grpc-server-addr", address, "--pcap", str(place / "p"),
        "--json", "-L", "debug", "--log-file", str(place / "log"),
    )  # fmt: skip
    wait_for(address, process)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.connect(str(place / "port0.sock"))
        peer.send(b"\1\0hello")
        peer.send(b"\0\0hello")
        assert peer.recv(100) == b"\0\1hello"
    process.terminate()
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert errors == ""
    report = json.loads(output)
    assert report["ports"]["0"] == {"in_packets": 2, "in_bytes": 14, "out_packets": 1, "out_bytes": 7}
    assert report["undelivered"] == {"1": 1}
    assert (place / "p" / "port0_in.pcap").stat().st_size == 24 + 2 * (16 + 7)
    assert "listening at" in (place / "log").read_text()
    assert not listens(address)


def test_a_program_with_headers_in_another_folder_and_macros(echo: Path, place: Path) -> None:
    text = echo.read_text()
    head, declarations = text.split("header h_t", 1)
    (place / "include").mkdir()
    (place / "include" / "rest.p4").write_text(f"header h_t{declarations}".replace("hops + 1", "hops + STEP"))
    (place / "own.p4").write_text(f"{head}#include <rest.p4>\n")
    address = f"unix:{place / 'control'}"
    process = start(
        str(place / "own.p4"), "-I", str(place / "include"), "-D", "STEP=7", "--unix", str(place), "--ports", "2",
        "--grpc-server-addr", address,
    )  # fmt: skip
    wait_for(address, process)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as peer:
        peer.connect(str(place / "port0.sock"))
        peer.send(b"\0\0hello")
        assert peer.recv(100) == b"\0\7hello"
    process.terminate()
    process.communicate(timeout=600)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["nowhere.p4", "--unix", "."], "nowhere.p4: error: cannot read: "),
        (["-i", "0@nosuchif0"], "interface nosuchif0: "),
        (["-i", "0=veth0"], "must be PORT@INTERFACE"),
        (["-i", "0@lo", "--unix", "."], "either interfaces"),
        (["-i", "0@lo", "-i", "0@lo"], "two interfaces for one port"),
        (["-i", "0@lo", "-i", "1@lo"], "one interface for two ports"),
        (["--unix", ".", "--ports", "4", "--cpu-port", "3"], "cannot be both the CPU port"),
        (["--grpc-server-addr", "256.0.0.1:1"], "cannot listen at 256.0.0.1:1"),
    ],
)
@pytest.mark.sample(2)
def test_wrong_usage_is_told_in_a_line(arguments: list[str], why: str, place: Path) -> None:
    command = [sys.executable, "-m", "p4gen", "switch", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=place, timeout=PATIENCE_S, check=False)
    assert done.returncode in (1, 2)
    assert why in done.stderr
    assert "Traceback" not in done.stderr
