"""The ``p4gen`` command: verbs by name, errors to standard error, exit codes.

0: what was asked for holds; 1: it does not; 2: wrong usage or input; 3: a needed tool is missing.
"""

from __future__ import annotations

import importlib
import os
import sys

import click

import p4gen
from p4gen.errors import P4genError, storage_trouble

VERBS = {
    "build": "Generate a program, compile it, and check it against the house rules.",
    "check": "Compile a P4_16 program and say what is wrong with it.",
    "run": "Run one STF test on a P4_16 program, with a trace if wanted.",
    "stf": "Run every STF test in a folder.",
    "ptf": "Run the conformance suite on a program.",
    "difftest": "Random traffic through the embedded switch and BMv2, everything compared.",
    "rerun": "Repeat a run from its folder.",
    "diff": "Compare two programs: which modules are reused, changed, added, removed.",
    "bench": "Measure how fast a program runs, on everything that can run it.",
    "switch": "Run the embedded switch, with a P4Runtime server.",
    "sim": "Run a collective over a virtual network that loses, reorders, duplicates and corrupts.",
    "lab": "Bring up switches, hosts and a manager under Mininet, with a prompt or a scenario.",
    "manager": "Manage groups on switches that register, for hosts and operators.",
    "top": "Show groups, rates, retransmissions and drops of a running manager, live.",
    "topo": "Check a topology, describe it, draw it.",
    "shell": "Open p4runtime-shell on a running switch.",
    "schema": "Print the JSON Schema of a spec file.",
    "doctor": "Say what is installed, and what each missing part would add.",
}


class _Verbs(click.Group):
    """Loads a verb's module only when that verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            return None
        command = importlib.import_module(f"p4gen.cli.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


@click.command(cls=_Verbs, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(p4gen.__version__, prog_name="p4gen")
def cli() -> None:
    """P4 data planes for in-network collectives: generated, compiled, run and tested."""


def main() -> None:
    """Entry point of the ``p4gen`` command; exits with the code that the module's docstring lists."""
    _open_standard_streams()
    try:
        # Without standalone mode, click hands a verb's exit code back as the result.
        sys.exit(cli.main(standalone_mode=False) or 0)
    except P4genError as error:
        for diagnostic in error.diagnostics:
            click.echo(str(diagnostic) if diagnostic.where else f"p4gen: error: {diagnostic.message}", err=True)
        sys.exit(error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("p4gen: interrupted", err=True)
        sys.exit(130)
    except OSError as error:
        trouble = storage_trouble(error)
        if trouble is None:
            raise
        click.echo(f"p4gen: error: {trouble}", err=True)
        sys.exit(1)


def _open_standard_streams() -> None:
    """A caller may have closed some of them: then files that we open would take their numbers, and be inherited."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) < 3:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
