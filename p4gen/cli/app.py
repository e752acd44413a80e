"""The ``p4gen`` command: verbs by name, errors to standard error, exit codes.

0: success; 1: what the verb checks does not hold; 2: wrong usage or input; 3: a needed tool is missing.
"""

from __future__ import annotations

import atexit
import errno
import gc
import itertools
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from p4gen.cli.commands import Commands
from p4gen.cli.complaints import usage_error
from p4gen.cli.ending import hear
from p4gen.errors import Diagnostic, InputError, P4genError, storage_trouble
from p4gen.inputs import quote
from p4gen.version import __version__

COMPLETE = "_P4GEN_COMPLETE"
"""The variable with which a shell requests completions, independent of the command's name."""
_READ = (".yaml", ".yml", ".p4")
"""Suffixes of the files that arguments name. No verb writes a file that it gets without an option."""
VERBS = {
    "build": "Generate a program, compile it, and check it against p4gen's rules.",
    "new": "Write a family of your own, to start from.",
    "check": "Compile a P4_16 program and report its errors.",
    "run": "Run one STF test on a P4_16 program, optionally with a trace.",
    "stf": "Run every STF test in a folder.",
    "ptf": "Run the conformance suite on a program, list its scenarios, or seed faults that it must catch.",
    "verify": "Check every reachable state of switches, hosts and a lossy network.",
    "difftest": "Random traffic through the embedded switch and BMv2, everything compared.",
    "rerun": "Repeat a run from its folder.",
    "diff": "Compare two programs: which modules are reused, changed, added, removed.",
    "bench": "Measure the speed of programs, of the virtual network, or of the switch on interfaces.",
    "switch": "Run the embedded switch, with a P4Runtime server.",
    "sim": "Run a collective over a virtual network that loses, reorders, duplicates and corrupts; sweeps.",
    "flow": "Simulate training jobs as flows, under policies of sharing switches.",
    "route": "Find the fastest aggregation on a fabric, as flows to a server or as a group's tree, with a bound.",
    "paper": "List the tables and figures of the papers, and repeat them, ours beside the paper's.",
    "lab": "Bring up switches, hosts and a manager under Mininet, with a prompt or a scenario.",
    "host": "Be a rank on this machine: make calls, check them, show their times.",
    "manager": "Manage groups on switches that register, for hosts and operators.",
    "top": "Show groups, rates, retransmissions and drops of a running manager, live.",
    "softroce": "Make images of hosts with Linux's own RoCE stack, for labs.",
    "topo": "Check a topology, describe it, draw it.",
    "shell": "Open p4runtime-shell on a running switch.",
    "schema": "Print the JSON Schema of a spec file.",
    "doctor": "List what is installed, and what each missing part would add.",
}

SECTIONS = {
    "Make programs": ("build", "new", "schema", "diff"),
    "Check programs": ("check", "run", "stf", "ptf", "verify", "difftest", "rerun"),
    "Run networks": ("sim", "lab", "softroce", "switch", "topo"),
    "Measure and plan": ("paper", "bench", "flow", "route"),
    "Operate": ("manager", "host", "top", "shell", "doctor"),
}
"""What a user wants, and the verbs for it."""


class _Verbs(Commands):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Folders of families are looked for first: which flags a verb has depends on them. A file that is missing is
        refused before the verb's module is loaded, and all that it needs."""
        try:
            _look_for_files(args)
            args = _with_folders(args)
        except P4genError:
            if not ctx.resilient_parsing:  # a shell that completes is told nothing
                raise
        return super().parse_args(ctx, args)


@click.command(
    cls=_Verbs,
    package=__package__,
    about=VERBS,
    sections=SECTIONS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(__version__, prog_name="p4gen")
def cli() -> None:
    """P4 data planes for in-network collectives: generated, compiled, run and tested."""


def main() -> None:
    """Entry point of the ``p4gen`` command; exits with the code that the module's docstring lists."""
    _open_standard_streams()
    _collect_rarely()
    hear()
    try:
        # Without standalone mode, click hands a verb's exit code back as the result.
        sys.exit(cli.main(prog_name="p4gen", complete_var=COMPLETE, standalone_mode=False) or 0)
    except P4genError as error:
        for line in error.lines():
            click.echo(line, err=True)
        sys.exit(error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        for line in usage_error(error):
            click.echo(line, err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("p4gen: interrupted", err=True)
        sys.exit(130)
    except MemoryError:
        click.echo("p4gen: error: not enough memory", err=True)
        sys.exit(1)
    except BrokenPipeError:
        # The reader of our output has closed it; without this, Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        trouble = storage_trouble(error)
        if trouble is None and error.filename is None:
            raise
        click.echo(f"p4gen: error: {trouble or f'{error.filename}: {error.strerror}'}", err=True)
        sys.exit(1 if trouble else 2)


def _collect_rarely() -> None:
    """Search for cycles of objects that nobody needs less often than Python does by default, and not at the end: a
    command's programs and modules last as long as it does, and searching them takes a sixth of a build's time."""
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)


def _look_for_files(arguments: Sequence[str]) -> None:
    """Raise ``InputError`` if an argument that is a file by its suffix does not exist; options' values are theirs."""
    for before, word in itertools.pairwise(arguments):
        if word.endswith(_READ) and not word.startswith("-") and not before.startswith("-") and not Path(word).exists():
            raise InputError(Diagnostic(quote(word, marks=False), f"cannot read: {os.strerror(errno.ENOENT)}"))


def _with_folders(arguments: Sequence[str]) -> list[str]:
    """The arguments, with names of families and architectures where their folders were given; these are known from now
    on."""
    words = list(arguments)
    for i, word in enumerate(words):
        for flag, name in (("--family", _family), ("--arch", _architecture)):
            if word.startswith(f"{flag}="):
                words[i] = f"{flag}={name(word.removeprefix(f'{flag}='))}"
            elif i and words[i - 1] == flag:
                words[i] = name(word)
    return words


def _family(text: str) -> str:
    """The name of a family that is given by its name or its folder. A name wins over a folder that is called alike."""
    if not _may_be_folder(text):
        return text
    from p4gen.families import add_folder, families  # noqa: PLC0415 - most commands name no folder

    return text if text in families() else add_folder(Path(text)).name


def _architecture(text: str) -> str:
    """The same of an architecture."""
    if not _may_be_folder(text):
        return text
    from p4gen.arch import add_folder, architectures  # noqa: PLC0415 - most commands name no folder

    return text if text in architectures() else add_folder(Path(text)).name


def _may_be_folder(text: str) -> bool:
    return os.sep in text or Path(text, "__init__.py").is_file()


def _open_standard_streams() -> None:
    """A caller may have closed some of them: then files that we open would take their numbers, and be inherited."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
