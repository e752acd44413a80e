"""Reductions and number formats are defined in one place, with codes that stay what they are."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import p4gen
from p4gen.families.epic.spec import EpicSpec
from p4gen.host.collectives.control import Collective, Control
from p4gen.spec import DType, Op
from p4gen.spec.reductions import DTYPE_BITS, NUMBERS, OP_BITS, OPS, numbers_of

ROOT = Path(__file__).parents[2]

CODES = {
    "SUM_INT32": 0x00,
    "SUM_UINT32": 0x01,
    "MIN_INT32": 0x08,
    "MIN_UINT32": 0x09,
    "MAX_INT32": 0x10,
    "MAX_UINT32": 0x11,
}
"""What goes over wires: programs of different versions meet there."""


def test_codes_stay_what_they_are() -> None:
    assert {numbers.symbol: numbers.code for numbers in NUMBERS} == CODES
    assert all(op.reduction.code < 1 << OP_BITS for op in OPS)
    assert all(dtype.number_format.code < 1 << DTYPE_BITS for dtype in DType)
    assert [numbers_of(code) for code in range(32)] == [
        next((n for n in NUMBERS if n.code == code), None) for code in range(32)
    ]


def test_control_messages_carry_the_codes() -> None:
    for numbers in NUMBERS:
        control = Control(Collective.ALLREDUCE, 3, 2, numbers.op, numbers.dtype)
        assert control.encode() >> 24 & 31 == CODES[numbers.symbol]
        assert Control.decode(control.encode()) == control


def test_the_wire_format_is_documented() -> None:
    text = (ROOT / "docs/wire-format.md").read_text()
    rows = {match[1]: match[2] for match in re.finditer(r"^\| [^|]+ \| (\w+) \| (.*) \|$", text, re.MULTILINE)}
    assert rows["op"] == ", ".join(f"{op.reduction.code} {op}" for op in OPS)
    assert rows["dtype"] == ", ".join(f"{dtype.number_format.code} {dtype}" for dtype in DType)


def test_dynamic_is_no_single_reduction() -> None:
    with pytest.raises(ValueError, match="op dynamic is not a single reduction"):
        _ = Op.DYNAMIC.reduction
    assert EpicSpec(op=Op.DYNAMIC).numbers is None
    assert EpicSpec(op=Op.DYNAMIC).choices == NUMBERS


def test_rendering_needs_no_numpy() -> None:
    code = "import sys, p4gen.program, p4gen.builder; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


XOR = """
    XOR = (
        "xor",
        Reduction(
            code=3,
            noun="exclusive or",
            p4=lambda _: "held ^ element",
            numpy="bitwise_xor",
            identity=lambda _least, _greatest: 0,
            dtypes=(DType.UINT32,),
        ),
    )
    DYNAMIC ="""
SMALL = ["--lanes", "8", "--window", "2", "--message", "2", "--groups", "2", "--fan-in", "4", "--ports", "8"]


@pytest.fixture(scope="module")
def with_xor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of p4gen with one more reduction; nothing but its definition is added."""
    folder = tmp_path_factory.mktemp("xor")
    for name in ("p4gen", "ptf_tests", "templates", "topologies"):
        source = Path(p4gen.__file__).parents[1] / name
        shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    registry = folder / "p4gen/spec/reductions.py"
    before, between, after = registry.read_text().partition("\n    DYNAMIC =")
    assert between
    registry.write_text(before + XOR + after)
    return folder


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    words = [sys.executable, "-m", "p4gen", *arguments]
    return subprocess.run(words, check=False, cwd=folder, env=environment, capture_output=True, text=True)


def outcomes(folder: Path, *arguments: str) -> dict[str, str]:
    """What came of scenarios of the copied suite, by name."""
    ran = command(folder, "ptf", "--json", "--seed", "1", *SMALL, *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return {test["name"]: test["outcome"] for run in json.loads(ran.stdout)["runs"] for test in run["tests"]}


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_new_reduction_takes_one_definition(with_xor: Path, engine: str) -> None:
    tests = [
        "test_arithmetic.ExtremesMeet",
        "test_arithmetic.EachLaneIsItsOwn",
        "test_announcement.OtherOpOrDtype",
        "test_control.RanksThatCallDifferentCollectives",
    ]
    flags = [word for test in tests for word in ("--test", test)]
    fixed = outcomes(with_xor, "--op", "xor", "--dtype", "uint32", "--engine", engine, *flags)
    assert fixed == dict.fromkeys(tests, "passed")
    text = (with_xor / "build/modeii_xor_uint32_x8/modeii_xor_uint32_x8.p4").read_text()
    assert "element = held ^ element;" in text
    assert "const bit<5> NUMBERS = 25;" in text


def test_a_new_reduction_can_be_announced(with_xor: Path) -> None:
    tests = ["test_dynamic.EveryOpAndDtypeIsAnnounced", "test_dynamic.OnlySumsOverflow"]
    flags = [word for test in tests for word in ("--test", test)]
    assert outcomes(with_xor, "--op", "dynamic", *flags) == dict.fromkeys(tests, "passed")
    text = (with_xor / "build/modeii_dynamic_x8/modeii_dynamic_x8.p4").read_text()
    assert "XOR_UINT32 = 0x19" in text
    assert "XOR_INT32" not in text


def test_a_new_reduction_in_mode_iii_and_with_commlib(with_xor: Path) -> None:
    test = "test_iii_order.Contributions"
    flags = ("--mode", "III", "--op", "xor", "--dtype", "uint32")
    assert outcomes(with_xor, *flags, "--test", test) == {test: "passed"}
    ran = command(with_xor, "sim", "star-4", *flags, "--lanes", "8", "--size", "1K", "--loss", "0.02")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_reduction_says_what_it_is_defined_for(with_xor: Path) -> None:
    ran = command(with_xor, "build", "--op", "xor")
    assert ran.returncode == 2
    assert "op xor is defined for uint32" in ran.stderr
    assert not (with_xor / "build/modeii_xor_int32_x64").exists()
