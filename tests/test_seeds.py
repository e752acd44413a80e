"""All that tests draw comes from their run's seed (docs/testing.md)."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DRAWN = {"tests/conftest.py": {"random.SystemRandom"}, "tests/lab/conftest.py": {"secrets.token_hex"}}
"""The seed of ``--full``, and a mark that no other process has."""
OF_MODULE = {"choice", "choices", "getrandbits", "randbytes", "randint", "random", "randrange", "sample", "shuffle"}
UNSEEDED = {"os.urandom", "random.SystemRandom", *(f"random.{name}" for name in OF_MODULE)}
"""What draws without a seed; so do all of ``secrets``, and generators that are made without a seed."""


def draws(text: str) -> set[str]:
    """Calls in a module that draw without a seed."""
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            made = name.rpartition(".")[2] in ("Random", "default_rng") and not (node.args or node.keywords)
            if made or name.startswith("secrets.") or name in UNSEEDED:
                found.add(name)
    return found


def test_no_test_draws_a_seed() -> None:
    files = [*(ROOT / "tests").rglob("*.py"), *(ROOT / "ptf_tests").rglob("*.py")]
    assert len(files) > 100
    found = {str(file.relative_to(ROOT)): draws(file.read_text()) for file in files}
    assert {name: calls for name, calls in found.items() if calls} == DRAWN


@pytest.mark.parametrize(
    ("call", "is_one"),
    [
        ("secrets.randbits(32)", True),
        ("random.randrange(9)", True),
        ("random.SystemRandom()", True),
        ("random.Random()", True),
        ("np.random.default_rng()", True),
        ("np.random.default_rng(seed)", False),
        ("random.Random(f'{seed} out')", False),
    ],
)
def test_what_draws_a_seed(call: str, is_one: bool) -> None:
    assert bool(draws(f"x = {call}\n")) is is_one


RANDOMISED = """
import random

from hypothesis import given, settings
from hypothesis import strategies as st

said = []


@settings(max_examples=300, database=None)
@given(st.integers(0, 1 << 32), st.floats())
def test_drawn(number, other):
    said.append((number, other))


def test_said(seed):
    print("DRAWN", seed, hash(str(said)), random.Random(seed).random())
    assert len(said) == 300
"""


@pytest.mark.long
def test_the_same_seed_draws_the_same_whatever_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())

    def drawn(before: str, *arguments: str, **variables: str) -> str:
        (tmp_path / "test_it.py").write_text(before + RANDOMISED)
        environment = {name: value for name, value in os.environ.items() if name != "P4GEN_SEED"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", str(tmp_path), *arguments],
            env=environment | {"PYTHONHASHSEED": "0"} | variables,
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        (line,) = [line for line in done.stdout.splitlines() if "DRAWN" in line]
        return line.partition("DRAWN ")[2]

    usual = drawn("")
    assert usual.startswith("1 ")
    assert drawn("import p4gen.rocev2.packet") == usual
    assert drawn("", P4GEN_SEED="7") == drawn("", "--seed", "7") != usual
    assert drawn("", "--full") != drawn("", "--full")
