"""Commands at the prompt, from a pipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from .labs import SMALL, lab
from .traces import Traces

SCRIPT = """\
# what is there
net
groups
run allreduce 64K repeat 2
groups
h0 ping h3
counters s1
drops
init pair h0 h1
run broadcast 4K pair root 1
run barrier h2 h3
move pair s1
resize pair 64
destroy pair
loss h1 0.05
run reducescatter 64K
counters h1
heal
pcap s1
pcap h0
run allreduce 4K
pcap s1
pcap h0
trace s1 1
run allreduce 4K
top
"""


@pytest.mark.long
def test_a_session(tmp_path: Path, machine: Traces) -> None:
    done = lab(tmp_path, "tree-3-2", *SMALL, "--seed", "5", script=SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout
    for text in (
        "lab> run allreduce 64K repeat 2",  # echoed
        "3 packets transmitted, 3 received",
        "s0 (root)",
        "pair is gone",
        "h1: loss 0.05, each way",
        "out loss",
        "links have no faults",
        "capture of s1 begins",
        "capture of h0 has ended",
        "packet's way through s1 will be printed",
        "nsenter -t",
    ):
        assert text in said, text
    assert said.count("every rank's result equals NumPy's") == 6
    captures = sorted(path.name for path in tmp_path.rglob("*.pcapng"))
    assert captures == ["h0.pcapng", "s1.pcapng"]
    for path in tmp_path.rglob("*.pcapng"):
        assert path.stat().st_size > 2000
        assert path.read_bytes()[:4] == b"\x0a\x0d\x0d\x0a"


@pytest.mark.long
def test_mistakes_are_told_and_make_a_scripts_status_1(tmp_path: Path, machine: Traces) -> None:
    script = """\
grups
run allrduce 4K
run allreduce 4K h0 h9
run allreduce 3
run barrier repeat 0
fail link h0 h1
fail link s7 h1
fail switch h0
counters s9
loss h1 150%
destroy nothing
move
trace
h0 nosuchcommand
"""
    done = lab(tmp_path, "star-4", *SMALL, script=script)
    assert done.returncode == 1
    for text in (
        "there is no command 'grups'; did you mean 'groups'?",
        "'allrduce' is not a collective; there are allreduce",
        "there is no host 'h9'; there are h0, h1, h2, h3",
        "allreduce of 3 bytes",
        "repeat must be at least 1",
        "there is no link between h0 and h1; h0 has links to s0",
        "there is no node 's7'",
        "there is no switch 'h0'; there are s0",
        "there is no switch 's9'",
        "loss: ",
        "nothing",
        "usage: move NAME [ROOT]",
        "usage: trace SWITCH [N]",
    ):
        assert text in done.stdout, text
    assert "Traceback" not in done.stdout + done.stderr
