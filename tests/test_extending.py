"""docs/extending.md, from start to end: its commands are run, its files written, and its output compared.

``python tests/test_extending.py`` prints what the commands print, for whoever changes the document.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from p4gen.families.registry import FOLDERS

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "extending.md"
_BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_VARIES = (
    (re.compile(r" *\d+(\.\d+)? s\b"), " TIME"),
    (re.compile(r"\d{8}-\d{6}"), "WHEN"),
    (re.compile(r"^p4c.*\n", re.MULTILINE), ""),
    (re.compile(r"^.*is not on PATH.*\n", re.MULTILINE), ""),
)
"""What differs from run to run, or depends on whether p4c is installed."""


@dataclass(frozen=True)
class Write:
    """A file of the reader's."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command line, and the lines below it."""

    line: str
    output: str


def steps(document: str) -> Iterator[Write | Command]:
    """What the reader does, in order."""
    for language, name, text in _BLOCK.findall(document):
        if name:
            yield Write(name, text)
        elif language == "console":
            for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, output = entry.partition("\n")
                yield Command(line, output)


def carried_out(step: Command, folder: Path) -> str:
    """What a command prints, its folder left out."""
    (folder / ".bin").mkdir(exist_ok=True)
    program = folder / ".bin" / "p4gen"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m p4gen "$@"\n')
    program.chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if name not in (FOLDERS, "P4GEN_COMMAND")}
    environment["PATH"] = f"{program.parent}{os.pathsep}{environment['PATH']}"
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(
        ["/bin/sh", "-c", step.line], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL, text=True, timeout=1800, check=False,
    )  # fmt: skip
    return done.stdout.replace(f"{folder.resolve()}/", "")


def plain(text: str) -> str:
    """Text without what differs from run to run, and without empty lines."""
    for pattern, word in _VARIES:
        text = pattern.sub(word, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def fits(printed: str, shown: str) -> bool:
    """Whether the document shows what was printed, ``...`` for any number of lines."""
    pattern = "".join(
        r"(?:[^\n]*\n)*" if line == "..." else re.escape(line) + r"\n" for line in plain(shown).splitlines()
    )
    return re.fullmatch(pattern, plain(printed)) is not None


@pytest.mark.long
def test_whoever_follows_the_document_sees_what_it_shows(tmp_path: Path) -> None:
    commands = 0
    for step in steps(DOCUMENT.read_text()):
        if isinstance(step, Write):
            assert (tmp_path / step.name).exists(), f"{step.name}: the document changes files that are there"
            (tmp_path / step.name).write_text(step.text)
            continue
        commands += 1
        printed = carried_out(step, tmp_path)
        assert fits(printed, step.output), f"$ {step.line}\n{printed}"
    assert commands >= 14


def test_other_output_than_the_documents_is_noticed() -> None:
    shown = "seed 1\n...\npassed     0.20 s  test_a.B\n"
    assert fits("seed 1\n\nx\npassed    10.03 s  test_a.B\n", shown)
    assert not fits("seed 1\n\nx\nfailed     0.03 s  test_a.B\n", shown)
    assert not fits("seed 2\n\nx\npassed     0.03 s  test_a.B\n", shown)
    assert not fits("seed 1\npassed     0.03 s  test_a.B\nmore\n", shown)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as _folder:
        for _step in steps(DOCUMENT.read_text()):
            if isinstance(_step, Write):
                Path(_folder, _step.name).write_text(_step.text)
            else:
                print(f"$ {_step.line}\n{carried_out(_step, Path(_folder))}")  # noqa: T201
