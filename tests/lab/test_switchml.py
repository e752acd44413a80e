"""Labs of SwitchML: calls of CommLib's kind, made of sums, every element as NumPy has it, whatever happens to packets
but damage."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from p4gen.errors import InputError
from p4gen.labs.network.impairments import check_withstood
from p4gen.papers.switchml.collectives import FACET
from p4gen.papers.switchml.spec import SwitchmlSpec

from .labs import BMV2, lab
from .traces import Traces

RIGHT = "every rank's result equals NumPy's"
SCRIPT = """\
run allreduce 64K repeat 2
run reduce 64K root 3
run broadcast 64K root 1
run barrier
run reducescatter 64K
run allgather 64K
run allreduce 4
loss h1 5%
duplicate h2 2%
reorder h3 2%
run allreduce 64K
run allgather 64K
counters h1
heal
init pair h2 h0
run reduce 8K root 1 pair
move pair s0
run allreduce 8K pair
destroy pair
restart switch s0
run allreduce 64K
"""


def test_a_session(tmp_path: Path, machine: Traces, seed: int) -> None:
    done = lab(tmp_path, "star-4", "--mode", "switchml", "--seed", str(seed), script=SCRIPT)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(RIGHT) == 12, done.stdout


@pytest.mark.parametrize(
    ("transport", "target", "withstood"),
    [
        ("udp", "embedded", "loss, duplication and reordering"),
        pytest.param("udp", "bmv2", "loss, duplication and reordering", marks=BMV2),
        ("roce", "embedded", "loss, duplication, reordering and corruption"),
    ],
)
def test_suite(machine: Traces, tmp_path: Path, transport: str, target: str, withstood: str) -> None:
    options = "--mode", "switchml", "--transport", transport, "--suite", "--target", target
    done = lab(tmp_path, "star-4", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert withstood in done.stdout


def test_what_is_refused(tmp_path: Path) -> None:
    for arguments, cause in (
        (("leaf-spine",), "SwitchML's jobs are around one"),
        (("star-4", "--collective", "allreduce", "--corrupt", "1%"), "takes corrupt packets for right ones"),
        (("star-4", "--measure"), "--measure goes with programs that take part in CommLib's collectives"),
    ):
        done = lab(tmp_path, *arguments, "--mode", "switchml")
        assert done.returncode == 2, done.stdout
        assert cause in done.stderr
    check_withstood(SwitchmlSpec(transport="roce"), "corrupt")
    with pytest.raises(InputError, match="takes an older packet for a newer one"):
        check_withstood(SwitchmlSpec(offsets="carried"), "reorder")
    with pytest.raises(InputError, match="its workers send what there are no verbs for"):
        FACET.make(SwitchmlSpec(), Mock(compiled=False), Mock(), 0, print)
