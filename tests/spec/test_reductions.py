"""Reductions and number formats are defined in one place, with codes that stay what they are."""

from __future__ import annotations

import ast
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
from p4gen.spec.reductions import NUMBERS, NUMBERS_LAYOUT, OPS, numbers_of

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
    for numbers in NUMBERS:
        codes = {"op": numbers.op.reduction.code, "dtype": numbers.dtype.number_format.code}
        assert NUMBERS_LAYOUT.unpack(numbers.code) == codes
    assert [numbers_of(code) for code in range(32)] == [
        next((n for n in NUMBERS if n.code == code), None) for code in range(32)
    ]


def test_control_messages_carry_the_codes() -> None:
    for numbers in NUMBERS:
        control = Control(Collective.ALLREDUCE, 3, 2, numbers.op, numbers.dtype)
        assert control.encode() >> 24 & 31 == CODES[numbers.symbol]
        assert Control.decode(control.encode()) == control
    # What goes over wires, written out: collective 3 bits, op 2, dtype 3, root 5, packets 19.
    assert Control(Collective.REDUCE, 1000, 7, Op.MAX, DType.UINT32).encode() == 0b010_10_001_00111 << 19 | 1000
    assert {collective: collective.code for collective in Collective} == {
        "allreduce": 1, "reduce": 2, "broadcast": 3, "barrier": 4, "reducescatter": 5, "allgather": 6
    }  # fmt: skip


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


def test_codes_do_not_depend_on_the_order_of_formats(tmp_path: Path) -> None:
    """A format that is inserted before all others leaves their codes what they are."""
    shutil.copytree(ROOT / "p4gen", tmp_path / "p4gen", ignore=shutil.ignore_patterns("__pycache__"))
    registry = tmp_path / "p4gen/spec/reductions.py"
    text = registry.read_text()
    first = '    INT32 = "int32",'
    assert text.count(first) == 1
    registry.write_text(text.replace(first, '    INT16 = "int16", NumberFormat(code=2, p4="int<16>")\n' + first))
    code = "from p4gen.spec.reductions import NUMBERS; print({n.symbol: n.code for n in NUMBERS})"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert ast.literal_eval(ran.stdout) == CODES | {"SUM_INT16": 0x02, "MIN_INT16": 0x0A, "MAX_INT16": 0x12}


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
