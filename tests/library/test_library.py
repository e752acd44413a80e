"""``import p4gen``, as a user's script uses it: nothing is imported from inside."""

from __future__ import annotations

import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import p4gen
from p4gen.families import families

ROOT = Path(__file__).parents[2]


FUNCTIONS = [name for name in p4gen.__all__ if inspect.isfunction(getattr(p4gen, name))]
CLASSES = ["CompiledProgram", "Program", "Report", "Switch"]


@pytest.mark.parametrize("name", [*FUNCTIONS, *CLASSES])
def test_docstrings_begin_with_an_example(name: str) -> None:
    """``p4gen.lab``'s is run with the labs."""
    _, example, *_ = inspect.getdoc(getattr(p4gen, name)).split("\n\n")  # type: ignore[union-attr]
    found = doctest.DocTestParser().get_examples(example)
    assert found[0].source == "import p4gen\n"
    assert f"p4gen.{name}(" in example or name in CLASSES
    assert any(each.want for each in found)


@pytest.mark.parametrize(
    "name", ["", *(f".library.{name}" for name in ("programs", "simulation", "verification")), ".vocabulary.topology"]
)
def test_examples_of_docstrings_are_true(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    found = doctest.testmod(importlib.import_module(f"p4gen{name}"))
    assert found.attempted >= 2
    assert found.failed == 0


def test_every_name_is_there_and_documented() -> None:
    for name in p4gen.__all__:
        assert getattr(p4gen, name).__doc__, name
    assert set(p4gen.__all__) <= set(dir(p4gen))
    with pytest.raises(AttributeError, match="no attribute 'generat'"):
        _ = p4gen.generat


def test_functions_stay_functions_when_their_rooms_are_loaded() -> None:
    """A sub-package of the same name would take a function's place when it is imported."""
    code = "import p4gen, p4gen.cli.app, p4gen.verification.scope, p4gen.labs.job; print(callable(p4gen.verify))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "True\n"


def test_an_import_loads_nothing_heavy() -> None:
    code = "import sys, p4gen; print(sorted({'numpy', 'scapy', 'pydantic', 'llvmlite', 'click'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("family", families())
def test_programs_of_each_family(family: str, tmp_path: Path) -> None:
    program = p4gen.generate(family=family)
    assert program.spec.family == family
    assert program.p4info.pkg_info.arch == "v1model"
    assert program.warnings == ()
    assert program.manifest["modules"]
    again = p4gen.generate(type(program.spec)())  # a spec with nothing set keeps its family
    assert again.spec.family == p4gen.generate(again, name="other").spec.family == family
    assert program.switch().send(0, bytes(14)) == program.switch(engine="interp").send(0, bytes(14))


def test_a_program_is_written_as_build_writes_it(tmp_path: Path) -> None:
    files = p4gen.generate(mode="II", lanes=8).write(tmp_path)
    assert {"manifest.json", "modeii_sum_int32_x8.p4"} <= {file.name for file in files}


def test_specs_are_files_fields_and_specs(tmp_path: Path) -> None:
    file = tmp_path / "spec.yaml"
    file.write_text("mode: III\nlanes: 8\n")
    texts = {
        p4gen.generate(file).text,
        p4gen.generate(str(file)).text,
        p4gen.generate({"mode": "III"}, lanes=8).text,
        p4gen.generate(p4gen.generate(mode="III", lanes=64).spec, lanes=8).text,
    }
    assert len(texts) == 1
    file.write_text("mode: III\nlanes: 7\n")
    with pytest.raises(p4gen.InputError, match=r"spec\.yaml:2:8: error: lanes = 7"):
        p4gen.generate(file)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: p4gen.generate(lanes=7), r"^lanes: error: lanes = 7"),
        (lambda: p4gen.simulate("star-4", sizes="1M"), r"^sizes: error: there is no such option"),
        (lambda: p4gen.simulate("star-4", size="1T5"), r"^size: error: "),
        (lambda: p4gen.simulate("star-4", engine="c"), r"^engine: error: must be interp or jit"),
        (lambda: p4gen.simulate("star-4", collective="barrier", size=4), r"^size: error: a barrier has no data"),
        (lambda: p4gen.simulate("star-4", burst=2), r"^burst: error: .*goes with loss"),
        (lambda: p4gen.simulate("star-4", recovery="none"), r"^recovery: error: must be "),
        (lambda: p4gen.simulate("star-4", concurrent=0), r"^concurrent: error: must be at least 1"),
        (lambda: p4gen.simulate("star-4", retries=-1), r"^retries: error: must be at least 0"),
        (lambda: p4gen.simulate("star-4", seed="a"), r"^seed: error: must be an integer"),
        (lambda: p4gen.simulate("star-4", own={}), r"^own: error: there is no such option"),
        (lambda: p4gen.verify("star-2", loss=-1), r"^loss: error: must be at least 0"),
        (
            lambda: p4gen.verify("star-2", flow="none", packets=251),
            r"^packets: error: must be at most 250\nflow: error",
        ),
        (lambda: p4gen.verify("star-2", {"mode": "II"}, first_psn="z"), r"^first_psn: error"),
        (lambda: p4gen.simulate("star-9"), r"star-9"),
        (lambda: p4gen.simulate("star-4", {"mode": "scin"}, tokens=4), r"^tokens: error: there is no such option"),
        (lambda: p4gen.verify("star-2", losses=1), r"^losses: error: there is no such option"),
        (lambda: p4gen.verify("star-2", {"mode": "II"}, fault="none-such"), r"^fault: error: there is no fault"),
        (lambda: p4gen.compile("no-such.p4"), r"no-such\.p4: error: cannot read"),
    ],
)
def test_what_is_wrong_is_said_with_the_name_of_the_argument(wrong: object, message: str) -> None:
    assert callable(wrong)
    with pytest.raises(p4gen.P4genError, match=message):
        wrong()


def test_a_run_says_how_far_it_is_and_is_repeatable() -> None:
    done: list[tuple[int, int]] = []
    program = p4gen.generate(mode="II", lanes=8)
    first = p4gen.simulate("star-3", program, size="256K", loss="0.1%", seed=3, progress=lambda *at: done.append(at))
    assert first.ok
    assert done
    assert p4gen.simulate("star-3", program, size="256K", loss="0.1%", seed=3).to_dict() == first.to_dict()


def test_runs_of_a_familys_own() -> None:
    result = p4gen.simulate("leaf-spine", {"mode": "multiwrite"}, collective="dispatch", tokens=4, seed=1)
    assert result.ok, result.to_dict()
    assert result.to_dict()["ended"] is True


def test_a_wrong_design_is_found_and_told() -> None:
    program = {"mode": "III", "window": 1, "variant": "psn-recycling"}
    report = p4gen.verify("star-2", program, packets=4, flow="acks")
    assert not report.ok
    assert report.story.splitlines()[0].strip().startswith("1 ")
    assert report.to_dict()["problem"]["property"] == "results"


EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
IN_LABS = ("lab_of_four", "quantised_gradients", "train_ddp")


@pytest.mark.parametrize("example", [file for file in EXAMPLES if file.stem not in IN_LABS], ids=lambda e: e.stem)
def test_examples_run(example: Path, tmp_path: Path) -> None:
    """``tests/lab`` runs those of labs."""
    run = subprocess.run(
        [sys.executable, str(example)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MPLBACKEND": "agg"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_examples_are_short_and_import_nothing_from_inside(example: Path) -> None:
    text = example.read_text()
    assert len(text.splitlines()) <= 60
    imported = r"^import p4gen(\.torch)?\b"
    assert not re.search(r"\b(from|import) p4gen\.|\bfrom p4gen\b", re.sub(imported, "", text, flags=re.MULTILINE))
    assert len(re.findall(imported, text, re.MULTILINE)) == 1


def test_examples_use_each_function() -> None:
    text = "".join(example.read_text() for example in EXAMPLES)
    assert [name for name in FUNCTIONS if f"p4gen.{name}(" not in text] == []
    document = (ROOT / "docs" / "library.md").read_text()
    assert [example.name for example in EXAMPLES if f"(../examples/{example.name})" not in document] == []


def test_groups_with_calls_of_their_own_run_at_once() -> None:
    program = p4gen.generate(mode="II", lanes=8)
    groups = ["h0,h1,h2: allreduce 4K, barrier, reduce 1K root 2", "h5,h4: broadcast 2K root 1"]
    result = p4gen.simulate("star-8", program, calls=groups, loss="1%", seed=3)
    assert result.ok, (result.stuck, result.errors)
    assert result.to_dict()["collective"] == "allreduce, barrier, broadcast, reduce"


@pytest.mark.parametrize(
    ("calls", "cause"),
    [
        ("h0 barrier", "hosts and calls are separated by a colon"),
        ("h0,h99: barrier", "there is no host 'h99' in star-4"),
        ("h0,h1: gossip", "'gossip' is none of allreduce, "),
        ("h0,h1:", "'' is none of allreduce, "),
        ("h0,h1: reduce 4K root x", "a call is a collective, a size and a root"),
        ("h0,h1: reduce 4K root 7", "root 7 is not a rank of this group of 2"),
        ("h0,h1: allreduce", "allreduce of 0 bytes"),
        ("h0,h0: barrier", "a host can be only one rank of a group"),
    ],
)
def test_calls_that_groups_cannot_make(calls: str, cause: str) -> None:
    with pytest.raises(p4gen.errors.InputError, match=cause):
        p4gen.simulate("star-4", p4gen.generate(mode="II", lanes=8), calls=calls)


@pytest.mark.parametrize("option", [{"size": "4K"}, {"collective": "barrier"}, {"root": 1}, {"repeat": 2}], ids=str)
def test_calls_say_all_that_groups_call(option: dict[str, Any]) -> None:
    with pytest.raises(p4gen.errors.InputError, match="does not go with calls"):
        p4gen.simulate("star-4", p4gen.generate(mode="II", lanes=8), calls="h0,h1: allreduce 4K", **option)


def test_other_families_have_no_groups_with_calls_of_their_own() -> None:
    with pytest.raises(p4gen.errors.InputError, match="is for collectives of IncTrees, not for scin"):
        p4gen.simulate("star-4", p4gen.generate(mode="scin"), calls="h0,h1: barrier")
