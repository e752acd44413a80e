"""What the command line says of itself: help in groups with examples, and completions."""

from __future__ import annotations

import importlib
import shlex
import sys
from pathlib import Path

import pytest

from p4gen.cli.app import COMPLETE, VERBS, main
from p4gen.cli.verb import Verb
from p4gen.families import flag_name
from p4gen.families.epic.spec import EpicSpec
from p4gen.spec.topology import packaged_folder


def verb(name: str) -> Verb:
    found = importlib.import_module(f"p4gen.cli.{name}").command
    assert isinstance(found, Verb)
    return found


def said(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["p4gen", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", VERBS)
def test_examples_are_command_lines(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = verb(name).examples
    assert examples
    for words, what in examples:
        arguments = shlex.split(words)
        for before, word in zip(["", *arguments], arguments, strict=False):
            if before == "-I":
                Path(word).mkdir(exist_ok=True)
            elif word.endswith((".p4", ".stf", ".yaml", ".pcap", ".txt")):
                Path(word).parent.mkdir(parents=True, exist_ok=True)
                Path(word).touch()
            elif "/" in word and not word.startswith(("-", "unix:", "/")):
                Path(word).mkdir(parents=True, exist_ok=True)
        with verb(name).make_context(name, arguments):
            pass
        assert what


@pytest.mark.parametrize("name", [name for name in VERBS if name in ("build", "ptf", "sim", "lab", "difftest")])
def test_options_of_the_program_stand_apart(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said([name, "--help"], monkeypatch, capsys)
    own, _, rest = text.partition("\nThe program: ")
    program, _, examples = rest.partition("\nExamples:\n")
    for field in EpicSpec.model_fields:
        assert f"  {flag_name(field)} " in program
        assert f"  {flag_name(field)} " not in own.partition("Options:")[2]
    assert f"  p4gen {name} " in examples
    assert "--help" in own


def completions(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[tuple[str, str]]:
    """As bash asks for them, for the last word of ``line``: kind and value."""
    monkeypatch.setenv(COMPLETE, "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
    lines = said([], monkeypatch, capsys).splitlines()
    return [(kind, value) for kind, _, value in (each.partition(",") for each in lines)]


@pytest.mark.parametrize(
    ("line", "values"),
    [
        ("p4gen bu", {"build"}),
        ("p4gen d", {"difftest", "diff", "doctor"}),
        ("p4gen build --mode ", {"II", "III"}),
        ("p4gen ptf --mode III --reliability s", {"sr", "sack"}),
        ("p4gen lab star-4 --lanes 1", {"16", "128"}),
        ("p4gen sim star-4 --collective all", {"allreduce", "allgather"}),
        ("p4gen lab star-4 --policy lo", {"lowest-common-switch"}),
        ("p4gen build --pip", {"--pipelines"}),
        ("p4gen ptf --target ", {"embedded", "bmv2"}),
        ("p4gen diff --op m", {"min", "max"}),
    ],
)
def test_shells_are_told_what_fits(
    line: str, values: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {value for _, value in completions(line, monkeypatch, capsys)} == values


@pytest.mark.parametrize("line", ["p4gen lab ", "p4gen sim ", "p4gen topo ", "p4gen manager --topology "])
def test_topologies_are_completed_beside_files(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = completions(line, monkeypatch, capsys)
    assert {value for kind, value in found if kind == "plain"} == {f.stem for f in packaged_folder().glob("*.yaml")}
    assert [kind for kind, _ in found].count("file") == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if shell == "bash":
        monkeypatch.setattr("click.shell_completion.BashComplete._check_version", lambda *_: None)
    monkeypatch.setenv(COMPLETE, f"{shell}_source")
    assert f"{COMPLETE}={shell}_complete" in said([], monkeypatch, capsys)
