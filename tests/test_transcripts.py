"""Every command of README.md and docs/ runs as it is written, and prints what is shown.

The commands of a document run one after the other, in a folder of its own with the files of a checkout that commands
read; the prompts of labs are typed at, and a block with a file's name is a file that the reader writes. ``...`` stands
for any number of lines. ``python tests/test_transcripts.py docs/lab.md`` prints what the commands of a document print,
those that take long included, for whoever changes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import click
import pytest
from patience import PATIENCE_S

from p4gen.cli.app import cli
from p4gen.families.registry import FOLDERS
from p4gen.labs.prompt.prompt import PROMPT

ROOT = Path(__file__).parents[1]
DOCUMENTS = {path.name: path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
COPIED = ("examples", "scripts", "tests/docs", "tests/stf", "topologies")
"""What commands read of a checkout."""
INSIDE = {"p4.md": "tests/docs"}
"""Where a document's commands run, if not at the top of a checkout."""

LONG = {
    r"ptf (run|mutate)": "5 s to twenty minutes",
    r"difftest": "15 s to minutes",
    r"verify": "5 to 20 s",
    r"bench": "a minute",
    r"paper .*table-44": "minutes",
    r"sim .*(star-8|clos:4x|--size 4M|moe)": "3 to 20 s",
    r"flow (trace2|confirm)": "half a minute to ten",
    r"route --seed 0 --repeat (10|3) ": "half a minute to five",
    r"build .*--fold ordered": "10 s",
    r"lab |manager (?!place)|switch |top|shell": "10 s each, and the default ports of the machine",
    r"sim run .*--(family|schedule)|sim run clos3": "5 s",
    r"tshark|grep": "a lab before it",
    r"softroce ": "a minute",
}
"""Commands that are run with --full only, and about how much CPU time they take."""
NEEDS = {
    r"lab ": "mnexec",
    r"softroce |lab .*--hosts": "qemu-system-x86_64",
    r".*--target bmv2|difftest(?!.* --against)": "simple_switch_grpc",
    r"tshark": "tshark",
}
"""Tools without which a command is left out."""
NEVER = {
    r"scripts/test|^pytest|^export PATH": "this is run by it",
    r"^eval|_P4GEN_COMPLETE": "for a user's own shell",
    r"apt-get|^cd p4gen": "a user's machine",
    r"@veth|s1\.ctl": "interfaces of the user's",
    r"p4gen host .*--verbs": "a machine with a verbs device",
    r"manager rollout": "a manager with switches",
    r"--operators --reliability sr --json": "hours: every fault of two programs",
}
"""Commands that no test can run, and why."""
SERVE = re.compile(r"p4gen (manager(?! (rollout|place|jobs|release|cordon))|switch) ")
"""Commands that go on until somebody ends them: here at the end of their block."""
FAIL = re.compile(r" --variant | --schedule | --offsets carried --reorder ")
"""Commands that find a fault, as they should: exit status 1."""
CHANCE = re.compile(r"p4gen bench |p4gen top")
"""Commands whose figures are this machine's: what they print is not compared."""


@dataclass(frozen=True)
class Write:
    """A file of the reader's."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """A command line, and the lines shown below it."""

    line: str
    shown: str
    typed: bool = False
    """At the prompt of a lab."""

    @property
    def words(self) -> str:
        """What p4gen is told; the whole line if it is another command."""
        return re.sub(r"^(sudo )?(PYTHONPATH=\S+ )?(\./scripts/)?p4gen ", "", self.line)

    def left_out(self, *, full: bool) -> str:
        """Why it is not run, if it is not."""
        why = [reason for pattern, reason in NEVER.items() if re.search(pattern, self.line)]
        why += [f"no {t}" for pattern, t in NEEDS.items() if re.match(pattern, self.words) and not shutil.which(t)]
        if not full:
            why += [f"{time}: --full" for pattern, time in LONG.items() if re.match(pattern, self.words)]
        return "; ".join(why)


@dataclass(frozen=True)
class End:
    """The end of a block."""


def steps(document: str) -> list[Write | Command | End]:
    """What the reader of a document does, in order."""
    found: list[Write | Command | End] = []
    text = DOCUMENTS[document].read_text()
    for language, name, block in re.findall(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        if name:
            found.append(Write(name, block))
        elif language == "sh":
            found += [Command(line.partition(" #")[0].strip(), "") for line in block.splitlines()]
        elif language == "console":
            more, *entries = re.split(r"^(?=\$ |lab> )", block, flags=re.MULTILINE)
            if more:  # what the last command printed goes on
                last = found[-2]
                assert isinstance(last, Command)
                found[-2] = replace(last, shown=f"{last.shown}...\n{more}")
            for entry in entries:
                line, _, shown = entry.removesuffix("lab>\n").partition("\n")
                prompt, _, line = line.partition(" ")
                found.append(Command(line.partition(" #")[0].strip(), shown, prompt == "lab>"))
        found.append(End())
    return found


def commands(document: str) -> list[Command]:
    """The commands of a document."""
    return [step for step in steps(document) if isinstance(step, Command)]


# --- what is shown, and what is printed ---

VARIES = (
    (re.compile(r" *\d+(\.\d+)? s\b"), " TIME"),
    (re.compile(r"\d{8}-\d{6}"), "WHEN"),
    (re.compile(r"^p4c.*\n", re.MULTILINE), ""),
    (re.compile(r"^.*is not on PATH.*\n", re.MULTILINE), ""),
    (re.compile(r"^build/(\w+)/\1\.json\n", re.MULTILINE), ""),
    (re.compile(r"^Running as user.*\n", re.MULTILINE), ""),
)
"""What differs from run to run, or depends on who runs it and on whether p4c is installed."""
IN_REAL_TIME = (
    (re.compile(r"(?<![\w.])(0x[0-9a-f]+|\d([\d,.:]*\d)?)( ?(m?s|[kMG]b/s)\b)?"), "#"),
    (re.compile(r"(in|out) loss #(, )?"), ""),
    (re.compile(r" {2,}"), "  "),
    (
        re.compile(
            r"^(switch  dropped by the program|where  dropped|dropped by the program: .*|placed again .*)\n",
            re.MULTILINE,
        ),
        "",
    ),
    (re.compile(r"^\S+  ((\w+\.\w+ #(, )?)+|nothing|(fault: (, )?)+)\n", re.MULTILINE), ""),
    (re.compile(r", time #"), ""),
)
"""In labs packets run in real time: figures, and what was lost and dropped, are chance. Line
numbers are masked with them: they move with every change of a template."""


def plain(text: str, real_time: bool) -> str:
    """Text without what differs from run to run, and without empty lines."""
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    for pattern, word in (IN_REAL_TIME if real_time else ()) + VARIES:
        text = pattern.sub(word, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines() if line.strip())


def fits(printed: str, shown: str, real_time: bool = False) -> bool:
    """Whether the document shows what was printed, ``...`` for any number of lines."""
    pattern = "".join(
        r"(?:[^\n]*\n)*" if line.strip() == "..." else re.escape(line) + r"\n"
        for line in plain(shown, real_time).splitlines()
    )
    return re.fullmatch(pattern, plain(printed, real_time)) is not None


# --- a reader ---


class Reader:
    """Does what a document says, in a folder. It is a context: at its end nothing of it runs any more."""

    def __init__(self, folder: Path, inside: str = "") -> None:
        for name in COPIED:
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("build", "__pycache__"))
        (folder / "build").mkdir()
        self.top, self.folder = folder, folder / inside
        self.lab: subprocess.Popen[bytes] | None = None
        self.labs = 0
        self.serving: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (*self.serving, *filter(None, [self.lab])):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            process.communicate()

    def files(self) -> set[str]:
        """All files outside ``build``."""
        return {str(path.relative_to(self.top)) for path in self.top.rglob("*") if path.is_file()}

    def do(self, command: Command) -> tuple[str, int]:
        """What a command prints, and its exit status; 0 for one that goes on."""
        if command.typed:
            return self.type(command.line), 0
        if command.words.startswith("lab "):
            return self.begin_lab(command.line)
        process = self.start(command.line)
        if SERVE.search(command.line):
            self.serving.append(process)
            assert process.stdout is not None
            select.select([process.stdout], [], [], PATIENCE_S)
            return "", process.poll() or 0
        printed, _ = process.communicate()
        return printed.decode().replace(f"{self.folder.resolve()}/", ""), process.returncode

    def start(self, line: str) -> subprocess.Popen[bytes]:
        """Start a command as a shell does for which p4gen is on PATH."""
        environment = {name: value for name, value in os.environ.items() if name not in (FOLDERS, "P4GEN_COMMAND")}
        environment["PATH"] = f"{sysconfig.get_path('scripts')}{os.pathsep}{environment['PATH']}"
        return subprocess.Popen(
            ["/bin/sh", "-c", re.sub(r"\bsudo |\./scripts/(?=p4gen )", "", line)],
            cwd=self.folder, env=environment, start_new_session=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def end_block(self) -> None:
        """End what serves."""
        while self.serving:
            process = self.serving.pop()
            assert process.poll() is None, process.communicate()[0].decode()
            os.killpg(process.pid, signal.SIGINT)
            process.communicate()

    # --- labs ---

    def begin_lab(self, line: str) -> tuple[str, int]:
        """Begin a lab. It goes on until the next one, if there is a prompt."""
        self.end_lab()
        self.lab = self.start(line)
        self.labs += 1
        printed = self.until_prompt()
        if printed.endswith(PROMPT):
            return printed.removesuffix(PROMPT), 0
        ended, self.lab = self.lab, None
        return printed, ended.wait()

    def end_lab(self) -> None:
        """End the lab, if there is one."""
        if self.lab is not None:
            ended, self.lab = self.lab, None
            printed, _ = ended.communicate(b"exit\n")
            assert ended.returncode == 0, printed.decode()

    def type(self, line: str) -> str:
        """Type a line at the prompt; what is printed up to the next one."""
        assert self.lab is not None
        assert self.lab.stdin is not None
        self.lab.stdin.write(f"{line}\n".encode())
        self.lab.stdin.flush()
        return self.until_prompt().removeprefix(f"{line}\n").removesuffix(PROMPT)

    def until_prompt(self) -> str:
        """What the lab prints up to a prompt, or to its end."""
        assert self.lab is not None
        assert self.lab.stdout is not None
        printed = b""
        while not printed.endswith(PROMPT.encode()):
            assert select.select([self.lab.stdout], [], [], PATIENCE_S)[0], printed.decode()
            more = os.read(self.lab.stdout.fileno(), 1 << 16)
            if not more:
                break
            printed += more
        return printed.decode()


def read(document: str, folder: Path, *, full: bool) -> Iterator[tuple[Command, str, str, bool]]:
    """Do what a document says: each command, why it is left out or what is wrong with it, what it printed."""
    with Reader(folder, INSIDE.get(document, "")) as reader:
        before = reader.files()
        for step in steps(document):
            if isinstance(step, Write):
                (reader.folder / step.name).write_text(step.text)
            elif isinstance(step, End):
                reader.end_block()
            elif why := step.left_out(full=full) or ("no lab" if step.typed and reader.lab is None else ""):
                if step.words.startswith("lab "):
                    reader.end_lab()
                yield step, why, "", True
            else:
                printed, status = reader.do(step)
                wrong = "Traceback" if "Traceback" in printed else ""
                if step.shown.strip() not in ("", "...") and not CHANCE.search(step.line):
                    wrong = wrong or ("" if fits(printed, step.shown, reader.labs > 0) else "it prints something else")
                elif status != (1 if FAIL.search(step.line) else 0):
                    wrong = f"exit status {status}"
                yield step, wrong, printed, False
        reader.end_lab()
        reader.end_block()
        left = reader.files() - before
        own = any(isinstance(step, Write) for step in steps(document))
        assert own or not {name for name in left if "build/" not in name and "__pycache__" not in name}


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if commands(name)])
def test_the_commands_of_a_document_do_what_it_shows(
    document: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    full = request.config.getoption("--full")
    with contextlib.ExitStack() as stack:
        if full:  # some listen at the default ports, which this machine has once
            lock = stack.enter_context((Path(tempfile.gettempdir()) / "p4gen-documents.lock").open("w"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        ran = 0
        for command, wrong, printed, left_out in read(document, tmp_path, full=full):
            if left_out:
                print(f"not run: {command.line}: {wrong}")  # noqa: T201
                continue
            ran += 1
            assert not wrong, f"$ {command.line}\n{wrong}\n{printed}"
    if not ran:
        pytest.skip("; ".join(sorted({command.left_out(full=full) for command in commands(document)})))


def test_other_output_than_the_documents_is_noticed() -> None:
    shown = "seed 1\n...\npassed     0.20 s  test_a.B\n"
    assert fits("seed 1\n\nx\npassed    10.03 s  test_a.B\n", shown)
    assert not fits("seed 1\n\nx\nfailed     0.03 s  test_a.B\n", shown)
    assert not fits("seed 2\n\nx\npassed     0.03 s  test_a.B\n", shown)
    assert not fits("seed 1\npassed     0.03 s  test_a.B\nmore\n", shown)


def test_figures_of_a_lab_may_differ_but_not_what_it_says() -> None:
    shown = "program.p4:12  psn[3] is 0x1e58\n1  h1  2,830  1,804  in loss 149\ns1  CheckOrder.gap 7\nright\n"
    assert fits("program.p4:12  psn[99] is 0xab\n1  h1    30  0\nright\n", shown, real_time=True)
    assert not fits("program.p4:12  psn[3] becomes 0x1e58\n1  h1  2,830  1,804\nright\n", shown, real_time=True)
    assert not fits("program.p4:12  psn[3] is 0x1e58\n1  h1  2,830  1,804\nwrong\n", shown, real_time=True)


def command_lines() -> Iterator[tuple[str, str]]:
    """Every command line of p4gen; those of extending.md have options that come with its family."""
    for document in DOCUMENTS.keys() - {"extending.md"}:
        for command in commands(document):
            if command.words != command.line and not command.typed:
                yield document, command.words.removesuffix(" &").removesuffix(" ...")


@pytest.mark.parametrize(("document", "line"), sorted(set(command_lines())))
def test_command_lines_are_accepted(document: str, line: str) -> None:
    name, command, rest = cli.resolve_command(click.Context(cli), shlex.split(line))
    assert name is not None
    assert command is not None, name
    complaint = ""
    try:
        command.make_context(name, list(rest))  # raises what the user would see
    except click.BadParameter as error:
        complaint = error.message
    assert not complaint or "does not exist" in complaint, document  # a file of the reader's


def test_there_is_something_to_look_at() -> None:
    every = [command for document in DOCUMENTS for command in commands(document)]
    assert len([command for command in every if not command.left_out(full=False)]) >= 60
    assert len([command for command in every if command.shown]) >= 60
    assert len(set(command_lines())) >= 100
    for pattern in (*LONG, *NEEDS):
        assert any(re.match(pattern, command.words) for command in every), pattern
    for pattern in NEVER:
        assert any(re.search(pattern, command.line) for command in every), pattern


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as _folder:
            for _command, _wrong, _printed, _ in read(Path(argument).name, Path(_folder), full=True):
                _prompt = PROMPT if _command.typed else "$ "
                sys.stdout.write(f"{_prompt}{_command.line}{_wrong and f'    # {_wrong}'}\n{_printed}")
                sys.stdout.flush()
