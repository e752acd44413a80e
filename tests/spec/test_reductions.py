"""Reductions and number formats are defined in one place, with codes that stay what they are."""

from __future__ import annotations

import ast
import copy
import json
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from p4gen.host.collectives.arrays import wrong_elements
from p4gen.host.collectives.control import Control
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary import DType, Op, Overflow
from p4gen.vocabulary.formats import NUMBERS_LAYOUT, NumberFormat, integer
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.reductions import Numbers, Reduction, all_numbers, numbers_of, single_ops

ROOT = Path(__file__).parents[2]

CODES = {
    "SUM_INT32": 0x00,
    "SUM_UINT32": 0x01,
    "MIN_INT32": 0x08,
    "MIN_UINT32": 0x09,
    "MAX_INT32": 0x10,
    "MAX_UINT32": 0x11,
    "SUM_FLOAT32": 0x02,
    "MIN_FLOAT32": 0x0A,
    "MAX_FLOAT32": 0x12,
    "SUM_FLOAT16": 0x03,
    "MIN_FLOAT16": 0x0B,
    "MAX_FLOAT16": 0x13,
    "SUM_BFLOAT16": 0x04,
    "MIN_BFLOAT16": 0x0C,
    "MAX_BFLOAT16": 0x14,
}
"""What goes over wires: programs of different versions meet there."""


def test_codes_stay_what_they_are() -> None:
    assert {numbers.symbol: numbers.code for numbers in all_numbers()} == CODES
    for numbers in all_numbers():
        codes = {"op": numbers.op.reduction.code, "dtype": numbers.dtype.number_format.code}
        assert NUMBERS_LAYOUT.unpack(numbers.code) == codes
    assert [numbers_of(code) for code in range(32)] == [
        next((n for n in all_numbers() if n.code == code), None) for code in range(32)
    ]


def test_control_messages_carry_the_codes() -> None:
    for numbers in all_numbers():
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
    assert rows["op"] == ", ".join(f"{op.reduction.code} {op}" for op in single_ops())
    assert rows["dtype"] == ", ".join(f"{dtype.number_format.code} {dtype}" for dtype in DType)


def test_dynamic_is_no_single_reduction() -> None:
    with pytest.raises(ValueError, match="op dynamic is not a single reduction"):
        _ = Op.DYNAMIC.reduction
    assert EpicSpec(op=Op.DYNAMIC).numbers is None
    integers = tuple(each for each in all_numbers() if each.dtype.number_format.integer)
    assert EpicSpec(op=Op.DYNAMIC).choices == integers
    more = EpicSpec(op=Op.DYNAMIC, dtype=DType.FLOAT32)
    assert set(more.choices) == {*integers, *(Numbers(op, DType.FLOAT32) for op in single_ops())}
    assert (more.saturating, more.counts_overflows, more.reproducible) == (True, True, False)
    wraps = more.model_copy(update={"overflow": Overflow.WRAP})
    assert (wraps.saturating, wraps.counts_overflows) == (False, True)  # infinite sums are counted


def test_rendering_needs_no_numpy() -> None:
    code = "import sys, p4gen.program, p4gen.builder; sys.exit('numpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


FAMILY = '''
"""Xor: EPIC's programs, with one more reduction and one more number format."""

from typing import Annotated, Literal

from pydantic import Field

from p4gen.families import Family
from p4gen.papers.epic import FAMILY as EPIC
from p4gen.papers.epic.spec import EpicSpec


class XorSpec(EpicSpec):
    family: Annotated[Literal["xor"], Field(description="the family of programs")] = "xor"


NUMBERS
FAMILY = Family("xor", "Xor", XorSpec, __name__, base=EPIC)
'''
SMALL = ["--lanes", "8", "--window", "2", "--message", "2", "--groups", "2", "--fan-in", "4", "--ports", "8"]


@pytest.fixture(scope="module")
def with_xor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a family that registers what docs/extending.md does; it has nothing else of its own."""
    folder = tmp_path_factory.mktemp("numbers")
    (folder / "xor").mkdir()
    document = (ROOT / "docs/extending.md").read_text()
    (numbers,) = re.findall(r"^```python\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    (folder / "xor" / "__init__.py").write_text(FAMILY.replace("NUMBERS", numbers))
    return folder


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    verb, *others = arguments
    words = [sys.executable, "-m", "p4gen", verb, "--family", "./xor", *others]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, check=False, cwd=folder, env=environment, capture_output=True, text=True)


def outcomes(folder: Path, *arguments: str) -> dict[str, str]:
    """What came of scenarios of the suite, by name."""
    ran = command(folder, "ptf", "--json", "--seed", "1", *SMALL, *arguments)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return {test["name"]: test["outcome"] for run in json.loads(ran.stdout)["runs"] for test in run["tests"]}


@pytest.mark.sample(1)
@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.long
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


def test_codes_do_not_depend_on_what_else_is_registered(with_xor: Path) -> None:
    """More formats and reductions leave the codes of others what they are."""
    code = (
        "from pathlib import Path; from p4gen.families import add_folder; add_folder(Path('xor'));"
        "from p4gen.vocabulary.reductions import all_numbers; print({n.symbol: n.code for n in all_numbers()})"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=with_xor, env=environment, capture_output=True, text=True
    )
    added = {"SUM_INT16": 0x07, "MIN_INT16": 0x0F, "MAX_INT16": 0x17, "XOR_UINT32": 0x19}
    assert ast.literal_eval(ran.stdout) == CODES | added


@pytest.mark.parametrize(("op", "engine"), [("sum", "jit"), ("min", "interp")])
@pytest.mark.long
def test_a_narrow_format_takes_one_definition(with_xor: Path, op: str, engine: str) -> None:
    """Elements of 16 bits: half the payload, other limits, another sign bit."""
    tests = ["test_arithmetic.ExtremesMeet", "test_arithmetic.EachLaneIsItsOwn"]
    tests += ["test_arithmetic.SaturatesAtTheTop"] if op == "sum" else []
    flags = [word for test in tests for word in ("--test", test)]
    found = outcomes(with_xor, "--op", op, "--dtype", "int16", "--engine", engine, *flags)
    assert found == dict.fromkeys(tests, "passed")
    (text,) = (file.read_text() for file in (with_xor / "build").glob(f"modeii_{op}_int16_x8/*.p4"))
    assert "typedef bit<16> lane_t;" in text
    assert "const bit<16> DATA_LENGTH    = 40;" in text
    assert ("(lane_t)((int<16>)held |+| (int<16>)element)" in text) is (op == "sum")


@pytest.mark.long
def test_collectives_of_a_narrow_format_are_right(with_xor: Path) -> None:
    size = ["--lanes", "8", "--size", "1002", "--loss", "0.02", "--seed", "1"]
    for mode in ("II", "III"):
        ran = command(with_xor, "sim", "star-4", "--mode", mode, "--dtype", "int16", *size)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "every rank's result equals NumPy's" in ran.stdout
    odd = command(with_xor, "sim", "star-4", "--dtype", "int16", "--size", "1001")
    assert odd.returncode == 2
    assert "it has to be a positive multiple of 2" in odd.stderr


def test_a_format_that_collides_is_refused() -> None:
    before = list(DType), list(Op)
    for name, form, cause in (
        ("int16", integer(1, 16, signed=True), "dtype: uint32 has the code 1 already"),
        ("int16", integer(8, 16, signed=True), "dtype: the code 8 does not fit the 3 bits of control messages"),
        ("int32", integer(5, 32, signed=True), "there is a DType int32 already"),
        ("int12", integer(5, 12, signed=True), "dtype int12: 12 bits are not whole bytes"),
    ):
        with pytest.raises(ValueError, match=cause):
            DType.register(name, form)
    with pytest.raises(ValueError, match="op: max has the code 2 already"):
        Op.register("xor", Reduction(2, "", str, "bitwise_xor", lambda low, _: low))
    assert (list(DType), list(Op)) == before


def test_there_is_one_object_of_each_name() -> None:
    assert DType("int32") is DType.INT32
    assert copy.deepcopy([Op.MIN]) == [Op.MIN]
    assert copy.deepcopy(Op.MIN) is copy.copy(Op.MIN) is pickle.loads(pickle.dumps(Op.MIN)) is Op.MIN
    with pytest.raises(ValueError, match="'int8' is not one of int32, uint32"):
        DType("int8")
    assert EpicSpec.model_validate(EpicSpec(op=Op.MAX).model_dump(mode="json")).op is Op.MAX


def test_results_may_differ_by_what_a_format_tolerates(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, got = np.array([1000, 1000, 0], np.int32), np.array([1001, 1020, 0], np.int32)
    assert list(wrong_elements(got, wanted)) == [0, 1]
    form = DType.INT32.number_format
    tolerant = NumberFormat(form.code, form.bits, form.numpy, form.p4, form.least, form.greatest, tolerance=0.01)
    monkeypatch.setattr(DType.INT32, "number_format", tolerant)
    assert list(wrong_elements(got, wanted)) == [1]


@pytest.mark.long
def test_a_new_reduction_can_be_announced(with_xor: Path) -> None:
    tests = ["test_dynamic.EveryOpAndDtypeIsAnnounced", "test_dynamic.OnlySumsOverflow"]
    flags = [word for test in tests for word in ("--test", test)]
    assert outcomes(with_xor, "--op", "dynamic", *flags) == dict.fromkeys(tests, "passed")
    text = (with_xor / "build/modeii_dynamic_x8/modeii_dynamic_x8.p4").read_text()
    assert "XOR_UINT32 = 0x19" in text
    assert "XOR_INT32" not in text


@pytest.mark.long
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
