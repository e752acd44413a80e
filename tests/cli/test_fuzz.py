"""Whatever users hand in: an exit status that says what it is, a few short lines, and no traceback.

Work that would follow good input (simulations, labs, switches) is not done here: it ends with status 0 where it begins.
"""

from __future__ import annotations

import contextlib
import io
import string
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from p4gen.cli.app import main
from p4gen.families import flag_name
from p4gen.papers.epic.spec import EpicSpec

fuzzing = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
MAX_LINES, MAX_LINE = 80, 1500
WORK = (
    "p4gen.builder.build",
    "p4gen.net.collectives.simulation.compile_spec",
    "p4gen.labs.prerequisites.check",
    "p4gen.cli.do_switch.run_switch",
    "p4gen.manager.process.running_manager",
    "p4gen.cli.do_top.ManagerClient",
    "p4gen.cli.shell.Client",
)


@pytest.fixture(scope="module", autouse=True)
def nothing_is_done() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for name in WORK:
            stack.enter_context(mock.patch(name, side_effect=SystemExit(0)))
        yield


def told(arguments: list[str]) -> tuple[int, str]:
    """What ``p4gen`` ends with, and says of errors."""
    errors = io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["p4gen", *arguments]),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(errors),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    return int(ended.value.code or 0), errors.getvalue()


def check(arguments: list[str]) -> None:
    note(f"p4gen {arguments}")
    status, said = told(arguments)
    assert status in (0, 1, 2, 3)
    assert "Traceback" not in said
    lines = said.splitlines()
    assert len(lines) <= MAX_LINES
    assert all(len(line) <= MAX_LINE for line in lines)
    assert (status == 0) or lines


# --- values ---

junk = st.one_of(
    st.sampled_from(
        [
            *("", "nan", "inf", "-inf", "-1", "0", "1e400", "1e-400", "1ps", "0ps", "100G", "9" * 400, "9" * 5000),
            *("0x", "%", "@", "1%", "101%", "5%@nowhere", "h0-s0@1s-0s", "1,", ",", "all", "h0,h0", "ü", "\u0665"),
            *("drop 1 UP_DATA of rank 99", "drop every ?", "drop 99999999999 UP_ACK", "0@", "511@x", "1@x", "-", "--"),
            *("unix:", "unix:/" + "x" * 300, "127.0.0.1:99999", ":", "[::1]:1", "a:b", "os:system"),
            *("../..", "/dev/null", "/dev/zero", "/", "."),
        ]
    ),
    st.text(string.printable, max_size=40),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40),
    st.integers(-(10**30), 10**30).map(str),
    st.floats().map(str),
    st.tuples(st.floats(min_value=0), st.sampled_from(["", "ps", "us", "s", "K", "M", "G", "T", "%", "b/s"])).map(
        lambda pair: f"{pair[0]}{pair[1]}"
    ),
)
SPEC = tuple(flag_name(name) for name in EpicSpec.model_fields)
OPTIONS = {
    "build": (*SPEC, "--out", "--p4info"),
    "sim star-4": (
        "--collective", "--size", "--root", "--sync", "--concurrent", "--repeat", "--engine", "--seed", "--loss",
        "--burst", "--reorder", "--duplicate", "--corrupt", "--down", "--script", "--recovery", "--timeout",
        "--retries",
    ),
    "sim sweep size": ("--seeds", "--values", "--timeout", "--size", "--out"),
    "paper": ("--scale", "--cells", "--check"),
    "ptf list": (*SPEC, "--test"),
    "lab star-4": (
        "--collective", "--size", "--root", "--ranks", "--repeat", "--loss", "--delay", "--reorder", "--duplicate",
        "--corrupt", "--fail", "--seed", "--timeout", "--deadline", "--policy", "--target",
    ),
    "switch": (
        "-i", "--unix", "--ports", "--grpc-server-addr", "--device-id", "--cpu-port", "--trace", "--trace-limit",
        "--control", "--seed", "--log-level",
    ),
    "manager": ("--listen", "--topology", "--policy", "--tick-interval"),
    "top --once": ("--manager", "--interval"),
    "shell": ("--grpc-addr", "--device-id"),
    "diff": SPEC,
}  # fmt: skip


@fuzzing
@given(st.data())
@pytest.mark.long
def test_values_of_options(data: st.DataObject) -> None:
    verb = data.draw(st.sampled_from(sorted(OPTIONS)))
    names = data.draw(st.lists(st.sampled_from(OPTIONS[verb]), min_size=1, max_size=3))
    words = [word for name in names for word in (name, data.draw(junk))]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        check([*verb.split(), *words])


@fuzzing
@given(
    st.lists(junk, max_size=4),
    st.sampled_from(
        ["", "build", "sim", "sim sweep", "paper", "ptf list", "topo", "lab", "check", "run", "stf", "rerun"]
    ),
)
def test_words(words: list[str], verb: str) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        check([*([verb] if verb else []), *words])


# --- files ---

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**40), 10**40), st.floats(), st.text(string.printable, max_size=20),
    st.sampled_from(["s0", "h0", "h1", "II", "sum", "100G", "1us", "*a", "&a", "!!int x", "2001-99-99", "<<", "0x_"]),
)  # fmt: skip
NAMES = [
    *EpicSpec.model_fields,
    "switches",
    "hosts",
    "links",
    "ranks",
    "root",
    "defaults",
    "ends",
    "bandwidth",
    "ecn",
]
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(NAMES) | scalars.map(str), inner, max_size=4)
    ),
    max_leaves=12,
)


def flow(value: object) -> str:
    """YAML, and now and then not quite."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    return "" if value is None else str(value)


GOOD = "name: two\nswitches: [s0]\nhosts: [h0, h1]\nlinks:\n  - [h0, s0]\n  - [h1, s0]\n"
texts = st.one_of(
    st.dictionaries(st.sampled_from(NAMES), values, max_size=5).map(
        lambda fields: "".join(f"{name}: {flow(value)}\n" for name, value in fields.items())
    ),
    values.map(flow),
    st.tuples(st.sampled_from(NAMES), values).map(lambda pair: f"{GOOD}{pair[0]}: {flow(pair[1])}\n"),
    st.text(string.printable, max_size=200),
    st.integers(1, 4000).map(lambda n: "[" * n),
).map(lambda text: text.encode("utf-8", "surrogatepass"))
files = st.one_of(texts, st.binary(max_size=200))


@fuzzing
@given(files, st.sampled_from(["build", "topo", "sim", "lab", "manager --topology", "diff --mode III"]))
def test_yaml(content: bytes, words: str) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("f.yaml").write_bytes(content)
        check([*words.split(), "f.yaml"])


ECHO = (Path(__file__).parents[1] / "switch" / "echo.p4").read_text()
WORDS = ["(", ")", "{", "}", "[", "]", "<", ">", ";", "#include <v1model.p4>", "#define x x(x)", "0xf", "8w", "bit<"]
programs = st.one_of(
    st.lists(st.sampled_from([*WORDS, *ECHO.split()]), max_size=60).map(" ".join).map(str.encode),
    st.tuples(st.integers(0, len(ECHO)), st.integers(0, 40), st.sampled_from(["", *WORDS])).map(
        lambda cut: (ECHO[: cut[0]] + cut[2] + ECHO[cut[0] + cut[1] :]).encode()
    ),
    st.tuples(st.sampled_from(["(", "{", "[", "!", "-", "bit<", "x ? "]), st.integers(1, 5000)).map(
        lambda pair: f"const bit<8> a = {pair[0] * pair[1]}".encode()
    ),
    st.binary(max_size=200),
)
STF = ["packet", "expect", "add", "0", "1", "99999", "0xzz", "ff", "$", "*", "t", "a()", "wait", "\n", "9" * 5000]
tests = st.one_of(st.lists(st.sampled_from(STF), max_size=20).map(" ".join).map(str.encode), st.binary(max_size=200))


@fuzzing
@given(programs)
def test_programs(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("f.p4").write_bytes(content)
        check(["check", "f.p4"])


@fuzzing
@given(tests)
@pytest.mark.long
def test_stf(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("f.p4").write_text(ECHO)
        Path("f.stf").write_bytes(content)
        check(["run", "f.p4", "--stf", "f.stf"])


@fuzzing
@given(st.one_of(files, st.sampled_from([b"{}", b"[" * 9000, b'{"verb": 1}', b"null"])))
def test_records(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("run.json").write_bytes(content)
        check(["rerun", "."])
