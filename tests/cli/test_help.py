"""What the command line says of itself: help in groups with examples, and completions."""

from __future__ import annotations

import importlib
import re
import shlex
import sys
from collections import Counter
from pathlib import Path

import pytest

import p4gen
from p4gen.cli.app import COMPLETE, SECTIONS, VERBS, main
from p4gen.cli.verb import Verb
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import flag_name
from p4gen.manager.api import Code, ManagerError
from p4gen.papers.epic.spec import EpicSpec
from p4gen.vocabulary.topology import packaged_folder

GROUPS = {
    "bench": ("program", "net", "flow", "route", "wire"),
    "flow": ("run", "confirm"),
    "manager": ("serve", "place", "jobs", "release", "cordon", "rollout"),
    "ptf": ("run", "mutate", "list"),
    "route": ("run", "tree", "jobs", "confirm"),
    "sim": ("run", "sweep", "traffic"),
    "softroce": ("build",),
    "verify": ("run", "faults", "replay"),
}
MODES = ("II", "III", "themis", "themis-s", "scin", "multiwrite", "switchml", "atp")
COMMANDS = [f"{name} {each}".strip() for name in VERBS for each in GROUPS.get(name, ("",))]


def verb(name: str) -> Verb:
    found = importlib.import_module(f"p4gen.cli.{name.replace(' ', '.')}").command
    assert isinstance(found, Verb)
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_no_flag_has_two_meanings(command: str) -> None:
    """A field of some family's spec must not be called like an option of a verb that takes programs."""
    flags = [flag for parameter in verb(command).params for flag in parameter.opts]
    assert [flag for flag, count in Counter(flags).items() if count > 1] == []


def said(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["p4gen", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_lists_its_commands_and_which_is_the_default(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said([name, "--help"], monkeypatch, capsys)
    listed = text.partition("\nCommands:\n")[2].partition("\n\n")[0]
    assert re.findall(r"^  (\w+)  ", listed, re.MULTILINE) == list(GROUPS[name])
    assert f"is 'p4gen {name} {GROUPS[name][0]} ...'" in " ".join(text.split())
    option = "--insecure" if name == "manager" else "--json"
    assert said([name, GROUPS[name][0], "--help"], monkeypatch, capsys) == said(
        [name, option, "--help"], monkeypatch, capsys
    )


OWN = {
    "sim run": {"--capture", "--ladder"},
    "sim sweep": {"--values", "--seeds", "--out"},
    "sim traffic": {"--pattern", "--hosts", "--nic", "--ti", "--series", "--ladder"},
    "ptf run": {"--target", "--matrix", "--trace", "--test", "--out"},
    "ptf mutate": {"--operators", "--at-least", "--faults"},
    "ptf list": {"--test"},
    "bench program": {"--out", "--packets"},
    "bench net": set(),
    "bench flow": {"--jobs"},
    "bench route": {"--algorithm"},
    "bench wire": {"--packets"},
    "route run": {"--mapping", "--repeat"},
    "route tree": {"--inc"},
    "route confirm": {"--count"},
}


@pytest.mark.parametrize("name", OWN)
@pytest.mark.sample(4)
def test_help_lists_the_options_of_a_command_and_no_others(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said([*name.split(), "--help"], monkeypatch, capsys)
    group = name.split(maxsplit=1)[0]
    others = {option for other, options in OWN.items() if other.startswith(group) for option in options}
    assert {option for option in others if f"\n  {option} " in text} == OWN[name]
    assert "\n  --json " in text


def test_verbs_are_grouped_by_what_a_user_wants(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sorted(name for names in SECTIONS.values() for name in names) == sorted(VERBS)
    text = said(["--help"], monkeypatch, capsys)
    assert all(f"\n{title}:\n  {names[0]} " in text for title, names in SECTIONS.items())


def test_errors_that_are_made_of_more_than_diagnostics_pass_through() -> None:
    def fail() -> None:
        raise ManagerError(Code.REFUSED, "not now")

    with pytest.raises(ManagerError, match="not now") as raised:
        Verb("fail", callback=fail).main([], standalone_mode=False)
    assert raised.value.code is Code.REFUSED


def test_options_that_errors_name_are_flags() -> None:
    def fail() -> None:
        raise InputError(Diagnostic(Option("first_psn"), "no"), "at all")

    with pytest.raises(InputError, match=r"^--first-psn: error: no\nerror: at all$"):
        Verb("fail", callback=fail).main([], standalone_mode=False)


def test_the_version_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(["--version"], monkeypatch, capsys) == f"p4gen, version {p4gen.__version__}\n"


@pytest.mark.parametrize("name", COMMANDS)
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


@pytest.mark.parametrize("name", ["build", "ptf run", "ptf mutate", "sim run", "sim sweep", "lab", "difftest"])
def test_options_of_the_program_stand_apart(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said([*name.split(), "--help-all"], monkeypatch, capsys)
    own, _, rest = text.partition("\nThe program: ")
    program, _, examples = rest.partition("\nExamples:\n")
    for field in EpicSpec.model_fields:
        assert f"  {flag_name(field)} " in program
        assert f"  {flag_name(field)} " not in own.partition("Options:")[2]
    assert f"  p4gen {name} " in examples
    assert "--help" in own


def options_in(text: str) -> set[str]:
    return set(re.findall(r"^  (--[\w-]+)", text, re.MULTILINE))


@pytest.mark.parametrize("name", ["build", "sim run", "ptf run", "verify run"])
def test_help_of_a_mode_has_its_fields_and_no_others(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    everything = options_in(said([*name.split(), "--help-all"], monkeypatch, capsys))
    of = {mode: options_in(said([*name.split(), "--mode", mode, "--help"], monkeypatch, capsys)) for mode in MODES}
    assert {"--window", "--psn-bits", "--wave", "--receivers"} <= everything
    assert of["II"] < everything
    assert "--congestion" in of["III"] - of["II"]
    assert "--psn-bits" in of["themis"] - of["themis-s"] - of["II"]
    assert "--wave" in of["scin"] - of["multiwrite"]
    assert "--payload-pipes" not in of["II"]
    assert "--payload-pipes" in options_in(said([*name.split(), "--arch=t2na", "--help"], monkeypatch, capsys))
    assert options_in(said([*name.split(), "--help"], monkeypatch, capsys)) == of["II"]


def test_help_of_a_run_in_a_mode_fits_in_a_head(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(["sim", "run", "--mode", "II", "--help"], monkeypatch, capsys)
    assert len(options_in(text)) <= 53
    assert "What ranks call:" in text


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
        (
            "p4gen build --mode ",
            {"I", "II", "III", "multiwrite", "scin", "switchml", "atp", "themis-s", "themis-d", "themis"},
        ),
        ("p4gen ptf --mode III --reliability s", {"sr", "sack"}),
        ("p4gen lab star-4 --lanes 1", {"16", "128", "1024"}),
        ("p4gen sim star-4 --collective all", {"allreduce", "allgather"}),
        ("p4gen lab star-4 --policy lo", {"lowest-common-switch"}),
        ("p4gen build --pip", {"--pipelines"}),
        ("p4gen ptf --target ", {"embedded", "bmv2", "tofino-model"}),
        ("p4gen ptf run --target b", {"bmv2"}),
        ("p4gen ptf mutate --op", {"--op", "--operators"}),
        ("p4gen ptf m", {"mutate", "m"}),
        ("p4gen bench ", {"program", "net", "flow", "route", "wire", ""}),
        ("p4gen sim s", {"sweep", "star-2", "star-3", "star-4", "star-8", "s"}),
        ("p4gen sim sweep ", {"size", "loss", "links"}),
        ("p4gen sim run star-4 --sync r", {"refined"}),
        ("p4gen sim --lad", {"--ladder"}),
        ("p4gen diff --op m", {"min", "max"}),
    ],
)
def test_shells_are_told_what_fits(
    line: str, values: set[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {value for _, value in completions(line, monkeypatch, capsys)} == values


@pytest.mark.parametrize(
    "line",
    [
        "p4gen lab ",
        "p4gen sim run ",
        "p4gen sim sweep loss ",
        "p4gen sim sweep size ",
        "p4gen topo ",
        "p4gen manager --topology ",
    ],
)
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
