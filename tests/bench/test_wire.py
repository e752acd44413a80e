"""The measurement of p4gen switch on veth pairs: it carries the whole load. No times are tested."""

from __future__ import annotations

import pytest

from p4gen.bench.wire import measure_wire
from p4gen.bench.workload import bursts
from p4gen.errors import FailedError, MissingToolError
from p4gen.papers.epic.spec import EpicSpec
from p4gen.switch.veth import veth_pairs


@pytest.mark.parametrize("mode", ["II", "III"])
@pytest.mark.long
def test_everything_comes_through(mode: str) -> None:
    try:
        with veth_pairs([0]):
            pass
    except (FailedError, MissingToolError) as problem:
        pytest.skip(f"veth interfaces cannot be made: {problem}")
    spec = EpicSpec.model_validate({"mode": mode, "lanes": 8, "window": 4, "message": 2, "groups": 1, "fan_in": 4})
    switch, echo = measure_wire(bursts(spec, 2000, 1), rounds=1)
    assert switch.packets_in == echo.packets_in == echo.packets_out > 1900
    # Each round of the four ranks' packets gives four results; acknowledgements go nowhere.
    share = switch.packets_in if mode == "II" else switch.packets_in * 2 / 3
    assert switch.packets_out >= 0.9 * share
