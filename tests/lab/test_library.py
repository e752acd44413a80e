"""``p4gen.lab``: labs from a program."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import p4gen

from .traces import Traces


def test_a_lab_from_python(machine: Traces, tmp_path: Path) -> None:
    with p4gen.lab("star-3", {"mode": "III", "lanes": 8}, seed=1, out=tmp_path) as lab:
        found = lab.run("allreduce", "16K")
        assert found.ok, found.text
        assert found.run is not None
        assert [call["right"] for call in found.run["calls"]] == [True]
        assert lab.fail("h0-s0").text.startswith("h0-s0 is down\n")
        assert "h0-s0 is up" in lab.restore("h0-s0").text
        assert lab.run("barrier", repeat=3).to_dict()["run"]["group"]
        pinged = lab.command("h0 ping h1")
        assert pinged.ok
        assert "3 packets transmitted, 3 received" in pinged.text
        wrong = lab.command("run allredoce 16K")
        assert (wrong.ok, wrong.run) == (False, None)
        assert "'allredoce' is not a collective" in wrong.text
        with pytest.raises(p4gen.InputError, match="a command is one line"):
            lab.command("groups\nexit")
        lab.command("exit")
        with pytest.raises(p4gen.FailedError, match="the lab has ended"):
            lab.command("groups")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"timeout": "1us"}, p4gen.InputError, "^timeout: error: a retransmission timer in real time"),
        ({"target": "asic"}, p4gen.InputError, "'asic' is not one of"),
    ],
)
def test_a_lab_that_cannot_be(
    machine: Traces, tmp_path: Path, options: dict[str, Any], error: type[p4gen.P4genError], message: str
) -> None:
    with pytest.raises(error, match=message):
        p4gen.lab("star-3", {"mode": "II", "lanes": 8}, out=tmp_path, **options)
