"""The prompt of a lab, for commands from a terminal, a file or a pipe."""

from __future__ import annotations

import cmd
import contextlib
import difflib
import shlex
import shutil
import sys
from typing import Any

from rich.console import Console

from p4gen.errors import InputError, P4genError
from p4gen.labs.calls import members_of
from p4gen.labs.hosts.ping import PING
from p4gen.labs.network import faults
from p4gen.labs.prompt.commands import COMMANDS
from p4gen.labs.prompt.terminal import Command, Session
from p4gen.labs.prompt.tracing import KINDS
from p4gen.labs.session import Lab

PROMPT = "lab> "
PINGS = "3"
"""Number of echo requests of a ping without a count."""
_FIRST_WORDS = ("exit", "help", "quit")
_HOST_COMMANDS = ("ping", "ip addr", "bash")


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Execute commands until ``exit``. Commands from a pipe are echoed, and if one fails, the exit status is 1."""
    prompt = Prompt(Session(lab, console))
    try:
        prompt.run()
    finally:
        prompt.session.close()
    return 1 if prompt.failed and not prompt.interactive else 0, {}


class Prompt(cmd.Cmd):
    """Reads and executes commands."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.prompt = PROMPT
        self.interactive = sys.stdin.isatty()
        self.use_rawinput = self.interactive
        self.failed = False
        self._console = session.console
        self._members = members_of(session.lab.job.spec)
        self._hosts = tuple(session.lab.topology.hosts)
        self._nodes = (*session.lab.topology.switches, *self._hosts)

    def run(self) -> None:
        """Execute commands. Ctrl-C ends the current one."""
        example = self._members.example
        self._console.print(f"  type                   {example}; {self._hosts[0]} ping {self._hosts[-1]}; help; exit")
        while True:
            try:
                self.cmdloop()
                return
            except KeyboardInterrupt:
                self._console.print("\n(exit or Ctrl-D ends the lab)" if self.interactive else "")

    # --- cmd.Cmd ---

    def precmd(self, line: str) -> str:
        """Echo a line that does not come from a terminal, with the prompt."""
        if not self.interactive and line != "EOF":
            self._console.print(line, markup=False)
        if not self.interactive and line == "EOF":
            self._console.print()
        line = line.strip()
        return "" if line.startswith("#") else line

    def emptyline(self) -> bool:
        """Do nothing; ``cmd`` would repeat the last command."""
        return False

    def onecmd(self, line: str) -> bool:
        """Execute one command. Returns True to end the prompt."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            return self._wrong(f"{line}: {error}")
        if not words:
            return False
        first = words[0]
        if first in ("exit", "quit", "EOF"):
            if line == "EOF" and self.interactive:
                self._console.print("exit")
            return True
        try:
            if first in ("help", "?"):
                self._help(words[1:])
            elif first in COMMANDS:
                self._do(COMMANDS[first], words[1:])
            elif first in self._hosts:
                self._on_host(first, words[1:])
            else:
                return self._wrong(self._unknown(first))
        except P4genError as error:
            for diagnostic in error.diagnostics:
                self._wrong(diagnostic.message)
        except KeyboardInterrupt:
            self._console.print("\ninterrupted")
            self.failed = True
        return False

    def _do(self, command: Command, words: list[str]) -> None:
        if not command.least <= len(words) <= command.most:
            raise InputError(f"usage: {command.usage}")
        if not command.action(self.session, words):
            self.failed = True

    def _on_host(self, host: str, words: list[str]) -> None:
        """Run a command in a host's namespace. Names of hosts in it are replaced with their addresses."""
        if not words:
            raise InputError(f"a command is missing, for instance: {host} ping {self._hosts[-1]}")
        words = [self.session.ip_text(word) if word in self._hosts else word for word in words]
        if words[0] == "ping":
            if "-c" not in words:
                words[1:1] = ["-c", PINGS] if self.interactive else ["-c", PINGS, "-i", "0.2"]
            if shutil.which("ping") is None:
                words[:1] = PING
        status = self.session.execute([*self.session.lab.inside(host), *words])
        if status:
            self.failed = True
            self._console.print(f"{host}: exit status {status}")

    def _unknown(self, word: str) -> str:
        near = difflib.get_close_matches(word, [*COMMANDS, *_FIRST_WORDS, *self._hosts], n=1)
        return f"there is no command '{word}'" + (f"; did you mean '{near[0]}'?" if near else " (help lists them)")

    def _wrong(self, message: str) -> bool:
        self.failed = True
        self._console.print("[red]error[/red]: ", end="")
        self._console.print(message, markup=False)
        return False

    def _help(self, words: list[str]) -> None:
        if words:
            if words[0] not in COMMANDS:
                raise InputError(self._unknown(words[0]))
            command = COMMANDS[words[0]]
            self._console.print(command.usage, markup=False)
            self._console.print(f"  {command.help}", markup=False)
            return
        width = max(len(command.usage) for command in COMMANDS.values())
        for command in dict.fromkeys(COMMANDS.values()):
            self._console.print(f"  {command.usage:{width}}  {command.help}", markup=False)
        host = self._hosts[0]
        self._console.print(
            f"  {f'{host} COMMAND …':{width}}  Any command on a host: {host} ping {self._hosts[-1]} (Ctrl-C ends it)."
        )
        self._console.print(f"  {'exit':{width}}  End the lab; only its logs and captures remain.")

    # --- completion ---

    def completenames(self, text: str, *_: Any) -> list[str]:
        """Completions of the first word."""
        return [word for word in (*COMMANDS, *_FIRST_WORDS, *self._hosts) if word.startswith(text)]

    def completedefault(self, text: str, line: str, *_: Any) -> list[str]:
        """Completions of the other words."""
        first, *rest = line.split()
        words: tuple[str, ...] = self._nodes
        if first in self._hosts:
            words = (*_HOST_COMMANDS, *self._hosts)
        elif first == "run" and not (rest[1:] or (rest and line.endswith(" "))):
            words = tuple(self._members.collectives)
        elif first == "run":
            words = self._after_collective(rest, text)
        elif first in ("fail", "restore", "restart") and not (rest[1:] or (rest and line.endswith(" "))):
            words = ("link", "switch") if first == "fail" else ("link",) if first == "restore" else ("switch",)
        elif first in faults.KINDS:
            words = (*self._nodes, *(link.name for link in self.session.lab.topology.links), "all")
        elif first == "spray":
            words = ("on", "off")
        elif first in ("destroy", "move", "resize"):
            words = self._groups()
        elif first == "trace" and rest[1:]:
            words = ("off", *filter(None, KINDS))
        elif first == "help":
            words = tuple(COMMANDS)
        return [word for word in words if word.startswith(text)]

    def _after_collective(self, rest: list[str], text: str) -> tuple[str, ...]:
        options = self._members.collectives.get(rest[0], {})
        before = rest[-2] if text else rest[-1]
        return options[before].values if before in options else (*options, *self._hosts, "repeat")

    def _groups(self) -> tuple[str, ...]:
        with contextlib.suppress(P4genError):
            return tuple(status.spec.name for status in self.session.lab.manager.groups())
        return ()
