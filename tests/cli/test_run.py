"""``p4gen run`` with packets of the command line and of captures."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from p4gen.stf.captures import read_capture
from p4gen.switch.pcap import write_pcap

STF = Path(__file__).parents[1] / "stf"
TABLES, DROP, METER = STF / "tables.p4", STF / "drop.p4", STF / "meter.p4"
ENTRIES = """# a route
add longest request.address:0x0a010000/16 set(value:16)
"""


def p4gen(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "p4gen", "run", *map(str, args)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=600, check=False)


@pytest.fixture
def entries(tmp_path: Path) -> Path:
    file = tmp_path / "entries.stf"
    file.write_text(ENTRIES)
    return file


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_what_comes_out_is_printed(tmp_path: Path, entries: Path, engine: str) -> None:
    packets = ["--packet", "0:01 0a010203 0000 00", "--packet", "3:01ffffffff000000ab"]
    done = p4gen(TABLES, *packets, "--entries", entries, "--engine", engine, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "packet 1, 8 bytes at port 0:\n  1:010a010203000010\n"
        "packet 2, 9 bytes at port 3:\n  1:01ffffffff0000eeab\n"
        "2 packets in, 2 out\n"
    )


def test_a_packet_that_is_dropped_is_said_to_be(tmp_path: Path) -> None:
    done = p4gen(DROP, "--packet", "0:0100000000", cwd=tmp_path)
    assert done.stdout == "packet 1, 5 bytes at port 0:\n  nothing comes out\n1 packet in, 0 out\n"


def test_captures_arrive_in_the_order_of_their_times(tmp_path: Path, entries: Path) -> None:
    late, early = bytes.fromhex("010a01020300000a"), bytes.fromhex("010a01020300000b")
    write_pcap(tmp_path / "a.pcap", [early, late], step=2000)
    write_pcap(tmp_path / "b.pcap", [early, late], step=1000)
    arguments = [
        TABLES,
        "--pcap",
        "4:a.pcap",
        "--pcap",
        "5:b.pcap",
        "--packet",
        f"6:{late.hex()}",
        "--entries",
        entries,
    ]
    told = json.loads(p4gen(*map(str, arguments), "--json", cwd=tmp_path).stdout)
    assert [packet["port"] for packet in told["packets"]] == [6, 4, 5, 5, 4]
    assert [packet["outputs"] for packet in told["packets"]] == [[{"port": 1, "packet": "010a010203000010"}]] * 5


@pytest.mark.parametrize("suffix", ["pcap", "pcapng"])
def test_what_comes_out_is_captured(tmp_path: Path, entries: Path, suffix: str) -> None:
    packets = ["--packet", "0:010a01020300000a", "--packet", "0:010b01020300000a"]
    done = p4gen(TABLES, *packets, "--entries", entries, "--out", f"out.{suffix}", cwd=tmp_path)
    assert done.stdout.splitlines()[-1] == f"wrote out.{suffix}"
    out = tmp_path / f"out.{suffix}"
    assert [captured.frame.hex() for captured in read_capture(out)] == ["010a010203000010", "010b0102030000ee"]
    again = p4gen(TABLES, "--pcap", f"2:{out.name}", cwd=tmp_path)
    assert "1:010a0102030000ee" in again.stdout


def test_the_clock_follows_the_capture(tmp_path: Path) -> None:
    """meter.refill.stf, with its waits as the distances of a capture's packets."""
    setup = tmp_path / "rates.stf"
    script = (STF / "meter.refill.stf").read_text().splitlines()
    setup.write_text("\n".join(line for line in script if line.startswith("meter_")))
    packet = next(line.split(None, 2) for line in script if line.startswith("packet"))
    frames = [bytes.fromhex(packet[2])] * 5

    def colours(step: int) -> list[str]:
        write_pcap(tmp_path / "x.pcap", frames, step=step)
        arguments: list[str | Path] = [METER, "--pcap", f"{packet[1]}:x.pcap", "--entries", setup, "--json"]
        told = json.loads(p4gen(*arguments, cwd=tmp_path).stdout)
        return [packet["outputs"][0]["packet"] for packet in told["packets"]]

    assert len(set(colours(1_000_000_000_000))) == 1
    assert len(set(colours(1_000))) > 1


def test_a_trace_stands_with_its_packet(tmp_path: Path) -> None:
    packets = ["--packet", "0:010a01020300000a", "--packet", "0:020a01020300000a"]
    lines = p4gen(TABLES, *packets, "--trace", cwd=tmp_path).stdout.splitlines()
    second = lines.index("packet 2, 8 bytes at port 0:")
    assert any("table Pipe.longest [" in line for line in lines[:second])
    assert any("table Pipe.longest_of_port [" in line for line in lines[second:])
    assert not any("longest_of_port" in line for line in lines[:second])


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        (["--packet", "1:0g"], "--packet: error: 1:0g: 'g' is no hexadecimal digit"),
        (["--packet", "1:012"], "--packet: error: 1:012: half a byte is left over"),
        (["--packet", "1:"], "--packet: error: 1:: the packet has no bytes"),
        (["--packet", "0011"], "--packet: error: 0011: PORT:HEX is expected"),
        (["--packet", "-1:00"], "--packet: error: -1:00: PORT:HEX is expected"),
        (["--packet", "511:00"], "--packet: error: 511:00: ports are numbered from 0 to 510"),
        (["--pcap", "511:x.pcap"], "--pcap: error: 511:x.pcap: ports are numbered from 0 to 510"),
        (["--pcap", "x.pcap"], "--pcap: error: x.pcap: PORT:FILE is expected"),
        (["--pcap", "1:nothing"], "nothing: error: cannot read the capture: No such file or directory"),
        (["--pcap", "1:entries.stf"], "entries.stf: error: this is no capture: neither pcap nor pcapng"),
        (
            ["--packet", "1:00", "--out", "nowhere/x.pcap"],
            "p4gen: error: cannot write nowhere/x.pcap: ",
        ),
    ],
)
@pytest.mark.sample(3)
def test_wrong_packets_are_refused_in_a_line(tmp_path: Path, entries: Path, arguments: list[str], cause: str) -> None:
    done = p4gen(TABLES, *arguments, "--entries", entries, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(cause)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "cause"),
    [
        ([], "give either --stf, or packets with --packet and --pcap"),
        (["--packet", "1:00", "--stf", "entries.stf"], "give either --stf, or packets with --packet and --pcap"),
        (["--stf", "entries.stf", "--out", "x.pcap"], "--entries and --out go with --packet and --pcap"),
        (["--packet", "1:00", "--out", "x.cap"], "--out x.cap: a capture's name ends in .pcap or .pcapng"),
        (["--packet", "1:00", "--trace", "--engine", "jit"], "the reference interpreter"),
    ],
)
def test_wrong_usage_is_refused(tmp_path: Path, entries: Path, arguments: list[str], cause: str) -> None:
    done = p4gen(TABLES, *arguments, cwd=entries.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert cause in done.stderr


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("packet 0 00\n", "entries.stf:1:1: error: packets, waiting and what is expected belong in a test"),
        ("\nadd nothing set(value:1)\n", "entries.stf:2:1: error: table nothing: no table of that name; there are"),
        ("add longest\n", "entries.stf:1:12: error: expected an action, found the end of the line"),
    ],
)
def test_wrong_entries_are_refused_where_they_stand(tmp_path: Path, text: str, cause: str) -> None:
    (tmp_path / "entries.stf").write_text(text)
    done = p4gen(TABLES, "--packet", "1:00", "--entries", "entries.stf", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(cause)


def test_ports_of_tests_have_the_same_range(tmp_path: Path) -> None:
    (tmp_path / "x.stf").write_text("packet 511 00\n")
    done = p4gen(DROP, "--stf", "x.stf", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("x.stf:1:8: error: ports are numbered from 0 to 510")
