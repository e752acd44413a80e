"""p4runtime-shell on ``p4gen switch``: what a user would type."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

from p4gen import packages
from p4gen.cli import shell
from p4gen.errors import MissingToolError
from p4gen.switch.running import listens, scratch
from p4gen.switch.unix import connect

from .conftest import CPU, SOURCE, frame

SCRIPT = """
te = table_entry["I.exact_table"](action="I.forward")
te.match["hdr.frame.key"] = "5"
te.action["port"] = "3"
te.insert()
print("READ", [e.action["port"].value for e in table_entry["I.exact_table"].read()])
te.action["port"] = "4"
te.modify()
print("READ", [e.action["port"].value for e in table_entry["I.exact_table"].read()])
te.delete()
print("READ", list(table_entry["I.exact_table"].read()))
m = action_profile_member["I.spread"](member_id=1, action="I.forward")
m.action["port"] = "2"
m.insert()
g = action_profile_group["I.spread"](group_id=1)
g.add(1)
g.insert()
print("GROUPS", len(list(action_profile_group["I.spread"].read())))
g.delete()
m.delete()
c = clone_session_entry(5)
c.add(1, 1)
c.insert()
print("CLONES", len(list(clone_session_entry(5).read())))
c.delete()
mc = multicast_group_entry(3)
mc.add(1, 1)
mc.add(2, 1)
mc.insert()
mc.delete()
print("COUNTERS", len(list(counter_entry["I.arrivals"].read())))
punt = table_entry["I.exact_table"](action="I.to_cpu")
punt.match["hdr.frame.key"] = "7"
punt.insert()
p = packet_out(payload=bytes.fromhex("00000000050000"), egress_port="2", pad="0")
p.send()
print("READY")
found = []
while not found: packet_in.sniff(found.append, timeout=1)

print("PACKET-IN", [(x.packet.payload.hex(), [y.value for y in x.packet.metadata]) for x in found])
exit
"""


STRINGS = """
te = table_entry["I.vrfs"](action="I.set_vrf")
te.match["meta.port"] = "1"
te.action["vrf"] = "blue"
te.insert()
te = table_entry["I.routes"](action="I.forward")
te.match["meta.vrf"] = "blue"
te.action["port"] = "510"
te.insert()
print("READ", [e.match["meta.vrf"].exact.value for e in table_entry["I.routes"].read()])
p = packet_out(payload=bytes.fromhex("000000"), port="1", colour="red", pad="0")
p.send()
print("READY")
found = []
while not found: packet_in.sniff(found.append, timeout=1)

print("PACKET-IN", [(x.packet.payload.hex(), [y.value for y in x.packet.metadata]) for x in found])
exit
"""


needs_shell = pytest.mark.skipif(packages.p4runtime_shell() is None, reason=packages.P4RUNTIME_SHELL)


def test_without_p4runtime_shell_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(packages, "SHELL", tmp_path)
    monkeypatch.setitem(sys.modules, "p4runtime_sh", None)
    with pytest.raises(MissingToolError, match="p4runtime-shell is not installed: python3 -m venv ") as told:
        shell.command.main(["--grpc-addr", "127.0.0.1:1"], standalone_mode=False)
    assert told.value.exit_code == 3


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


@needs_shell
@pytest.mark.long
def test_the_shell_does_all_that_a_user_needs(place: Path) -> None:
    said = converse(place, SOURCE, SCRIPT, 2, bytes.fromhex("00000000050000"), frame(0, 7))
    assert "READ [b'\\x03']" in said
    assert "READ [b'\\x04']" in said
    assert "READ []" in said
    assert "GROUPS 1" in said
    assert "CLONES 1" in said
    assert "COUNTERS 8" in said
    assert f"PACKET-IN [('{frame(0, 7).hex()}', [b'\\x02', b'\\x00'])]" in said


@needs_shell
@pytest.mark.long
def test_the_shell_writes_and_reads_strings(place: Path) -> None:
    said = converse(place, SOURCE.with_name("translated.p4"), STRINGS, 1, bytes([0, 3, 0]), bytes(3))
    assert "READ [b'blue']" in said
    assert "PACKET-IN [('0000ff', [b'\\x01', b'0', b'\\x00'])]" in said


def converse(place: Path, program: Path, script: str, number: int, out: bytes, back: bytes) -> str:
    """What the shell prints, on a switch with ``program`` that sends ``out`` from a port and then receives ``back``."""
    address = f"unix:{place / 's'}"
    command = [sys.executable, "-m", "p4gen", "switch", str(program), "--unix", str(place), "--ports", "4"]
    command += ["--cpu-port", str(CPU), "--grpc-server-addr", address, "-L", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as switch:
        try:
            until(lambda: listens(address))
            with connect(place, number) as port:
                said = typed(address, port, script, out, back)
        finally:
            switch.terminate()
            assert switch.wait(PATIENCE_S) == 0
    return said


def typed(address: str, port: socket.socket, script: str, out: bytes, back: bytes) -> str:
    command = [sys.executable, "-m", "p4gen", "shell", "--grpc-addr", address]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(script)
        shell.stdin.flush()
        port.settimeout(PATIENCE_S)
        assert port.recv(100) == out
        port.send(back)
        shell.stdin.close()
        said = shell.stdout.read()
        assert shell.wait(PATIENCE_S) == 0
    return said
