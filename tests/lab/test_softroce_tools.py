"""What users of RoCE run, between guests, through every program: perftest and rping. All ICRCs are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4gen.rocev2 import icrc
from p4gen.rocev2.codes import ROCE_UDP_PORT
from p4gen.rocev2.places import places_in
from p4gen.stf.captures import read_capture

from .labs import BMV2, lab
from .traces import Traces

CALLS = {
    "I": "allreduce 16K", "II": "allreduce 16K", "III": "allreduce 16K",
    "themis": "alltoall 16K", "multiwrite": "allgather 16K", "scin": "allreduce 16K",
}  # fmt: skip
"""The programs, each with a call that its ranks make in the same lab."""
TOOLS = (
    "ib_send_bw", "ib_send_lat", "ib_write_bw", "ib_write_lat", "ib_read_bw", "ib_read_lat",
    "ib_atomic_bw", "ib_atomic_lat",
    "ib_send_bw -c UC", "ib_write_bw -c UC", "ib_send_bw -c UD", "ib_send_lat -c UD",
)  # fmt: skip
"""perftest's programs; reliable connections unless they say otherwise."""
TIMES = 20
_HEARD = "until ss -Htln sport = :18515 | grep -q .; do sleep 0.1; done"
_LISTENS = "until rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; done"
_PINGS = 5


def size(tool: str) -> int:
    """The bytes of a message: several packets, unless the transport has one packet in a message."""
    return 8 if "atomic" in tool else 1024 if "UD" in tool else 10_000


def script(call: str) -> str:
    """What is typed: the call, each tool with h0 as its server, and rping over RDMA CM."""
    lines = [f"run {call}"]
    for tool in TOOLS:
        words = f"{tool} -d rxe0 -F -n {TIMES}" + (f" -s {size(tool)}" if "atomic" not in tool else "")
        lines += [f"h0 sh -c '{words} >/tmp/said 2>&1 &'", f"h0 timeout 60 sh -c '{_HEARD}'"]
        lines += [f"h1 timeout 120 {words} h0"]
    lines += [f"h0 sh -c 'rping -s -C {_PINGS} >/tmp/said 2>&1 &'", f"h0 timeout 60 sh -c '{_LISTENS}'"]
    lines += [f"h1 timeout 120 rping -c -v -C {_PINGS} -a h0", f"run {call}"]
    return "\n".join(lines) + "\n"


@pytest.mark.long
@pytest.mark.parametrize("target", ["embedded", pytest.param("bmv2", marks=BMV2)])
@pytest.mark.parametrize("mode", CALLS)
def test_what_users_run_passes_every_program(tmp_path: Path, guests: Traces, mode: str, target: str) -> None:
    words = ("--mode", mode, "--target", target, "--hosts", "softroce", "--seed", "1", "--pcap")
    done = lab(tmp_path, "star-2", *words, script=script(CALLS[mode]))
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    for tool in dict.fromkeys(TOOLS):
        rows = re.findall(rf"^ {size(tool)} +{TIMES} ", said.partition(f"h1 timeout 120 {tool} ")[2], re.MULTILINE)
        assert rows, tool
    assert len(re.findall(r"^ping data: rdma-ping-\d", said, re.MULTILINE)) == _PINGS
    assert said.count("every rank's result equals NumPy's") == 2
    (capture,) = tmp_path.glob("runs/*/s0/s0.pcapng")
    frames = [each.frame for each in read_capture(capture) if is_roce(each.frame)]
    wrong = [frame.hex() for frame in frames if not icrc.check(frame)]
    assert not wrong, f"{len(wrong)} of {len(frames):,} ICRCs are wrong, first that of {wrong[0]}"
    assert len(frames) > len(TOOLS) * TIMES * 2, f"{len(frames):,} frames"


@pytest.mark.long
def test_what_rdma_cm_sets_up_is_known_to_the_manager(tmp_path: Path, guests: Traces) -> None:
    typed = f"""\
h0 sh -c 'rping -s >/tmp/said 2>&1 &'
h0 timeout 60 sh -c '{_LISTENS}'
h1 sh -c 'rping -c -C 100000 -a $0 >/tmp/said 2>&1 & echo $! >/tmp/pid' h0
h1 timeout 60 sh -c 'until rdma resource show cm_id | grep -q CONNECT; do sleep 0.1; done'
h1 sh -c 'sleep 2; kill -INT $(cat /tmp/pid)'
run alltoall 16K
"""
    words = ("--mode", "themis", "--cm", "copy", "--hosts", "softroce", "--seed", "1")
    done = lab(tmp_path, "clos:2x2x1", *words, script=typed)
    assert done.returncode == 0, done.stdout + done.stderr
    (log,) = tmp_path.glob("runs/*/manager.log")
    found = re.findall(r"RDMA CM: (\S+) QP (\d+) to (\S+) QP (\d+) stays on ECMP: .* goes back N", log.read_text())
    (here, there) = found
    assert here == (*there[2:], *there[:2])


def is_roce(frame: bytes) -> bool:
    """Whether a frame is UDP to RoCE's port, without a tag."""
    places = places_in(frame)
    return places is not None and frame[places.udp_port] == ROCE_UDP_PORT.to_bytes(2)
