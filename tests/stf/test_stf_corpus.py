"""Our own STF tests: what p4c's do not exercise, each pinned to a sentence of the specification.

Every expectation was checked against BMv2 (simple_switch 1.15.5, p4c 1.2.5); where BMv2 does something else than the
specification or this model, the test says ``BMv2 differs``.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from p4gen.stf.engines import ENGINES
from p4gen.stf.suite import PASSED, Case, find_tests, run_test

FOLDER = Path(__file__).parent
TESTS = find_tests(FOLDER)
SOURCES = re.compile(r"P4_16 \d|simple_switch\.md|v1model\.p4|P4Runtime \d|RFC \d")


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_corpus(test: Case, engine: str) -> None:
    result = run_test(test, engine)
    assert result.verdict == PASSED, "\n".join(map(str, result.reasons))


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(TESTS) >= 60


@pytest.mark.parametrize("test", TESTS, ids=[test.name for test in TESTS])
def test_every_test_names_the_sentence_that_it_pins(test: Case) -> None:
    text = test.script.read_text(encoding="utf-8")
    head = " ".join(line.removeprefix("# ") for line in text.splitlines() if line.startswith("#"))
    assert text.startswith("# ")
    assert SOURCES.search(head)
