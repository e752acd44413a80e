"""p4runtime-shell on ``p4gen switch``: what a user would type."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S, until

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


@pytest.fixture
def place() -> Iterator[Path]:
    with scratch() as folder:
        yield folder


@pytest.mark.long
def test_the_shell_does_all_that_a_user_needs(place: Path) -> None:
    address = f"unix:{place / 's'}"
    command = [sys.executable, "-m", "p4gen", "switch", str(SOURCE), "--unix", str(place), "--ports", "4"]
    command += ["--cpu-port", str(CPU), "--grpc-server-addr", address, "-L", "error"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as switch:
        try:
            until(lambda: listens(address))
            with connect(place, 2) as port:
                said = converse(address, port)
        finally:
            switch.terminate()
            assert switch.wait(PATIENCE_S) == 0
    assert "READ [b'\\x03']" in said
    assert "READ [b'\\x04']" in said
    assert "READ []" in said
    assert "GROUPS 1" in said
    assert "CLONES 1" in said
    assert "COUNTERS 8" in said
    assert f"PACKET-IN [('{frame(0, 7).hex()}', [b'\\x02', b'\\x00'])]" in said


def converse(address: str, port: socket.socket) -> str:

    command = [sys.executable, "-m", "p4gen", "shell", "--grpc-addr", address]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as shell:
        assert shell.stdin is not None
        assert shell.stdout is not None
        shell.stdin.write(SCRIPT)
        shell.stdin.flush()
        port.settimeout(PATIENCE_S)
        assert port.recv(100) == bytes.fromhex("00000000050000")  # the packet-out
        port.send(frame(0, 7))
        shell.stdin.close()
        said = shell.stdout.read()
        assert shell.wait(PATIENCE_S) == 0
    return said
