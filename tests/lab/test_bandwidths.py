"""Links of a lab with a bandwidth of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.labs.network.bandwidths import parse
from p4gen.vocabulary.topology import load_topology

from .labs import SMALL, lab
from .traces import Traces


def test_a_place_is_a_node_a_link_or_everything() -> None:
    topology = load_topology("tree-3-2")
    assert parse(["20M"], topology) == tuple((link.name, 20_000_000) for link in topology.links)
    assert parse(["1G@h1"], topology) == (("h1-s1", 1_000_000_000),)
    assert parse(["5Mb/s@s0-s1"], topology) == parse(["5M@s1-s0"], topology) == (("s1-s0", 5_000_000),)
    assert parse(["5M@s0", "7M@s0-s2"], topology) == (("s1-s0", 5_000_000), ("s2-s0", 7_000_000))
    assert parse([], topology) == ()


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ("fast", "'fast' is not a bandwidth such as 100G"),
        ("0", "must be more than 0"),
        ("20", "at least 100K"),
        ("20M@s7", "there is no node or link 's7'; there are s0, s1, s2, h0, h1, h2, h3, s1-s0"),
        ("20M@h0-h1", "there is no node or link 'h0-h1'"),
    ],
)
def test_wrong_bandwidths(text: str, cause: str) -> None:
    with pytest.raises(InputError) as wrong:
        parse(["20M", text], load_topology("tree-3-2"))
    assert f"--bandwidth {text}: " in wrong.value.reason
    assert cause in wrong.value.reason


@pytest.mark.long
def test_no_call_is_faster_than_the_link_that_it_crosses(tmp_path: Path, machine: Traces, seed: int) -> None:
    size, rate = 64 << 10, 2_000_000
    scenario = ["--collective", "allreduce", "--size", "64K", "--repeat", "3", "--timeout", "500ms", "--json"]
    done = lab(tmp_path, "tree-3-2", *SMALL, *scenario, "--bandwidth", "2M@s0-s1", "--seed", str(seed))
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["overflows"] == {"s1-s0": 0}
    least = (size - (32 << 10)) * 8 / rate  # a bucket is full at first
    assert [call["seconds"] > least for call in report["calls"]] == [True] * 3
    assert sum(rank["resent"] for rank in report["ranks"]) == 0
