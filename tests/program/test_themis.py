"""Themis's programs: the specs that there are, and that each of them builds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from p4gen.builder import build
from p4gen.errors import InputError
from p4gen.families import load_spec, parse_spec
from p4gen.families.themis.control import PathSet, path_set_entries
from p4gen.families.themis.spec import Blocked, Mode, Spread, ThemisSpec, Variant

SMALL: dict[str, Any] = {"paths": 4, "connections": 4, "queue": 16, "queue_banks": 4, "ports": 8}


@pytest.mark.parametrize(
    "fields",
    [
        *({"mode": mode} for mode in Mode),
        *({"mode": "themis-s", "spread": spread} for spread in (Spread.ECMP, Spread.RANDOM, Spread.PSN)),
        {"spread": Spread.PSN},
        {"blocked": Blocked.ACK},
        {"icrc": "ignore"},
        {"variant": Variant.LATE_COMPENSATION},
        {"queue": 16, "queue_banks": 16},
        {"queue": 1024, "queue_banks": 2, "psn_bits": 24},
        {"paths": 2},
        {"paths": 256},
        {"mode": "themis-s", "pipelines": 2},
    ],
    ids=str,
)
def test_a_program_compiles_and_keeps_the_rules(fields: dict[str, Any], tmp_path: Path) -> None:
    built = build(ThemisSpec(**SMALL | fields), tmp_path)
    assert built.program.exists()


@pytest.mark.parametrize("mode", list(Mode))
def test_a_mode_names_the_family(mode: Mode) -> None:
    spec = load_spec(flags={"mode": str(mode)})
    assert isinstance(spec, ThemisSpec)
    assert parse_spec(spec.model_dump(mode="json")) == spec
    assert load_spec(flags={"mode": "III"}).family == "epic"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"mode": "themis-d", "spread": "random"},
            "--spread: error: spread = 'random': random is about the source; themis-d has none",
        ),
        (
            {"mode": "themis", "queue": 8, "queue_banks": 16},
            "--queue-banks: error: queue_banks = 16: a queue of 8 does not have 16 banks",
        ),
        (
            {"mode": "themis", "psn_bits": 8},
            "--psn-bits: error: psn_bits = 8: 2^(psn_bits - 1) must be more than the queue, 128",
        ),
        (
            {"mode": "themis", "queue": 32, "paths": 128, "psn_bits": 8},
            "--paths: error: paths = 128: at most 2^(psn_bits - 2) = 64",
        ),
        (
            {"mode": "themis", "pipelines": 2},
            "--pipelines: error: pipelines = 2: a connection's packets arrive in several pipelines, and "
            "v1model's egress keeps no state",
        ),
        (
            {"mode": "themis-s", "variant": "late-compensation"},
            "--variant: error: variant = 'late-compensation': late-compensation is a design of Themis-D, which this "
            "program has not",
        ),
        (
            {"mode": "themis", "lanes": 64},
            "--lanes: error: unknown field 'lanes'; the fields are",
        ),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as refused:
        load_spec(flags=fields)
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize(
    ("weights", "entries"), [((1, 1, 1, 1), 4), ((1, 1, 1), 256), ((3, 1), 4), ((1,), 1), ((0, 1, 1), 2)]
)
def test_a_path_set_has_as_few_entries_as_its_turns_allow(weights: tuple[int, ...], entries: int) -> None:
    assert len(path_set_entries(ThemisSpec(), PathSet(0, weights))) == entries


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (PathSet(0, (1,) * 17), "path set 0 has 17 paths; the program sprays over 1 to 16"),
        (PathSet(3, (0, 0)), "path set 3: weights are from 0 on, and add up to 1 to 256"),
        (PathSet(16, (1, 1)), "path set 16: the program has 16, numbered from 0"),
    ],
)
def test_a_path_set_that_a_program_cannot_take_is_refused(paths: PathSet, message: str) -> None:
    with pytest.raises(InputError, match=message):
        path_set_entries(ThemisSpec(), paths)
