"""The embedded switch against BMv2, where it is installed; ``p4gen difftest`` takes more packets."""

from __future__ import annotations

from pathlib import Path

import pytest

from p4gen.difftest.run import Job
from p4gen.errors import MissingToolError
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.themis.spec import ThemisSpec
from p4gen.program import compose, render
from p4gen.switch.bmv2 import check_tools
from p4gen.switch.running import scratch


def missing() -> str:
    try:
        check_tools()
    except MissingToolError as error:
        return str(error)
    return ""


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("pipelines", [1, 2, 4])
def test_bmv2_does_what_the_model_does(mode: Mode, pipelines: int, tmp_path: Path) -> None:
    spec = EpicSpec.model_validate(
        {"mode": mode, "pipelines": pipelines, "lanes": 8, "window": 2, "message": 2, "groups": 16, "fan_in": 6}
        | {"ports": 8}
    )
    with scratch() as place:
        result = Job(spec, render(compose(spec)).text, 3, 400, tmp_path, place, reduce=False).run()
    assert result.difference is None, result.difference
    assert result.tally.packets == 400
    assert result.tally.outputs > 100


@pytest.mark.skipif(bool(missing()), reason=missing())
@pytest.mark.parametrize("fields", [{"ip": "6"}, {"ip": "both", "cm": "copy"}, {"ip": "both", "tiers": 3}], ids=str)
def test_it_does_so_with_connections_over_ipv6(fields: dict[str, object], tmp_path: Path) -> None:
    small = {"paths": 4, "connections": 6, "queue": 16, "queue_banks": 4, "ports": 8}
    spec = ThemisSpec.model_validate(small | fields)
    with scratch() as place:
        result = Job(spec, render(compose(spec)).text, 3, 400, tmp_path, place, reduce=False).run()
    assert result.difference is None, result.difference
    assert result.tally.outputs > 200
