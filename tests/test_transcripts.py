"""The console transcripts of README.md and docs/ are what p4gen prints, where that takes no more than seconds.

``...`` stands for any number of lines. README.md's commands run in a checkout, those of docs/p4.md and docs/stf.md in
tests/docs, and those of docs/native-engine.md are Python. docs/extending.md has a test of its own, test_extending.py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from p4gen.cli.app import cli

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted(path for path in (ROOT / "docs").glob("*.md") if path.name != "extending.md"),
]
QUICK = ("build", "check", "run", "stf", "switch")
"""Verbs whose transcripts are run: the others take minutes, other machines, or root."""
FOLDERS = {"README.md": ROOT, "p4.md": ROOT / "tests" / "docs", "stf.md": ROOT}


@dataclass(frozen=True)
class Command:
    """A command line of a transcript, and the lines below it."""

    document: str
    arguments: tuple[str, ...]
    output: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.document}: {shlex.join(self.arguments)[:60]}"


def blocks(document: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)


def transcripts() -> Iterator[Command]:
    for document in DOCUMENTS:
        if document.name not in FOLDERS:
            continue
        for block in blocks(document, "console"):
            for command in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, *output = command.rstrip("\n").split("\n")
                words = shlex.split(line, comments=True)
                if words[0] in ("p4gen", "./scripts/p4gen") and words[1] in QUICK:
                    yield Command(document.name, tuple(words[1:]), tuple(filter(None, output)))


TRANSCRIPTS = list(transcripts())


def matches(printed: list[str], shown: tuple[str, ...]) -> bool:
    """Whether the lines are those shown, ``...`` for any number of them."""
    pattern = "".join(r"(?:[^\n]*\n)*" if line == "..." else re.escape(line) + r"\n" for line in shown)
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


@pytest.mark.parametrize("command", TRANSCRIPTS, ids=str)
def test_transcripts_are_what_is_printed(command: Command, tmp_path: Path) -> None:
    for entry in FOLDERS[command.document].iterdir():
        if entry.name not in ("build", ".git"):
            (tmp_path / entry.name).symlink_to(entry)
    done = subprocess.run(
        [sys.executable, "-m", "p4gen", *command.arguments],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
        text=True,
        timeout=1200,
        check=False,
    )
    printed = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
    assert done.returncode in (0, 1, 2)
    assert "Traceback" not in done.stdout
    if command.output:
        assert matches(printed, command.output), "\n".join(printed)
    else:
        assert done.returncode == 0, done.stdout


def command_lines() -> Iterator[tuple[str, str]]:
    """Every command line that begins with p4gen, in a block of shell or in the text."""
    for document in DOCUMENTS:
        for block in (*blocks(document, "sh"), *blocks(document, "console")):
            for line in block.splitlines():
                found = re.match(r"(?:\$ )?(?:sudo )?(?:PYTHONPATH=\S+ )?(?:\./scripts/)?p4gen (.*)", line)
                if found and not found[1].endswith("..."):
                    yield document.name, found[1]


@pytest.mark.parametrize(("document", "line"), sorted(set(command_lines())))
def test_command_lines_are_accepted(document: str, line: str) -> None:
    words = [word for word in shlex.split(line.partition(" <")[0], comments=True) if word != "&"]
    name, command, rest = cli.resolve_command(click.Context(cli), words)
    assert name is not None
    assert command is not None, name
    complaint = ""
    try:
        command.make_context(name, list(rest))  # raises what the user would see
    except click.BadParameter as error:
        complaint = error.message
    assert not complaint or "does not exist" in complaint, document  # a file of the reader's


MINUTES = ("ptf run", "ptf mutate", "difftest", "flow table", "sim figure", "sim table", "bench")
"""Commands that are run with --full only."""
SERVE = ("lab", "manager", "top", "switch")
"""Commands that go on until somebody ends them. Their own tests start them."""


def commands_of_the_readme() -> list[list[str]]:
    """The command lines of README.md's blocks of shell that run in a checkout, a list for each block."""
    lines = (
        [line.partition(" #")[0].strip() for line in block.splitlines() if line.startswith("p4gen ")]
        for block in blocks(ROOT / "README.md", "sh")
    )
    return [found for found in lines if found]


@pytest.mark.sample(3)
@pytest.mark.parametrize("number", range(len(commands_of_the_readme())))
def test_the_readme_s_commands_run_as_written(number: int, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """In a checkout as git has it, one after the other; what they write is left to ``build``, which git ignores."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    full = request.config.getoption("--full")
    for line in commands_of_the_readme()[number]:
        words = line.removeprefix("p4gen ")
        if words.startswith(SERVE) or (words.startswith(MINUTES) and "--test" not in words and not full):
            continue
        if "--target bmv2" in words and shutil.which("simple_switch_grpc") is None:
            continue
        done = subprocess.run(
            [sys.executable, "-m", *shlex.split(line)], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        wrong_design = "--variant" in words
        assert done.returncode == (1 if wrong_design else 0), f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    written = there - set(listed.stdout.split("\0"))
    assert [name for name in written if not name.startswith("build/") and "__pycache__" not in name] == []


def test_there_is_something_to_look_at() -> None:
    found = {command.document for command in TRANSCRIPTS}
    assert found == {"README.md", "p4.md", "stf.md"}
    assert len(TRANSCRIPTS) >= 12
    assert len(set(command_lines())) >= 40
