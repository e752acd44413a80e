"""No test file whatsoever ends in anything but an outcome or ``InputError``."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from p4gen.errors import InputError
from p4gen.p4 import ir
from p4gen.p4.compile import compile_file
from p4gen.stf import parse_text, run
from p4gen.stf.parser import COMMANDS
from p4gen.stf.statements import Statement
from p4gen.stf.suite import find_tests

EXAMPLES = int(os.environ.get("P4GEN_FUZZ", "300"))
FOLDER = Path(__file__).parent

PROGRAMS: dict[str, ir.Program] = {}
LINES = sorted(
    {
        line
        for test in find_tests(FOLDER)
        for line in test.script.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    }
)
PIECES = sorted({piece for line in LINES for piece in re.findall(r"\w+|[^\w\s]+", line)} | COMMANDS.keys())
NUMBERS = ["0", "1", "511", "512", "65536", "-1", "0x", "0b12", "99999999999999999999", "1.5", "1.2.3.4", "*", "$x"]


def program(name: str) -> ir.Program:
    if name not in PROGRAMS:
        PROGRAMS[name] = compile_file(FOLDER / f"{name}.p4").program
    return PROGRAMS[name]


LINE = st.one_of(
    st.sampled_from(LINES),
    st.lists(st.sampled_from(PIECES + NUMBERS), max_size=8).map(" ".join),
    st.tuples(st.sampled_from(LINES), st.sampled_from(PIECES + NUMBERS), st.integers(0, 60)).map(
        lambda t: t[0][: t[2]] + t[1] + t[0][t[2] + len(t[1]) :]
    ),
)


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(["tables", "count", "profile", "register", "meter", "clone", "parse"]), st.lists(LINE, max_size=12)
)
def test_mixed_and_mutated_tests(name: str, lines: list[str]) -> None:
    parsed: list[Statement] = []
    for line in lines:
        with contextlib.suppress(InputError):
            parsed.extend(parse_text(line))
    with contextlib.suppress(InputError):
        run(program(name), parsed)


@settings(max_examples=EXAMPLES)
@given(st.text(max_size=200))
def test_random_text(text: str) -> None:
    with contextlib.suppress(InputError):
        parse_text(text)
