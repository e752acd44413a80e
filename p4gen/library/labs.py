"""``p4gen.lab``: a lab under Mininet, and what one does with it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, NoReturn

from p4gen.errors import Diagnostic, FailedError, InputError, MissingToolError, Option, P4genError
from p4gen.library.programs import Described, spec_of
from p4gen.vocabulary.topology import TopologySpec

_ERRORS: Mapping[int, type[P4genError]] = {2: InputError, 3: MissingToolError}


@dataclass(frozen=True)
class LabAnswer:
    """The answer of a lab to a command of its prompt."""

    ok: bool
    """Whether the command succeeded; of a run, whether all results equal NumPy's."""
    text: str
    """What a terminal would show."""
    run: Mapping[str, Any] | None
    """The figures of a run: calls with seconds and rates, ranks with their counters, drops; None of other commands."""

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return asdict(self)


class Lab:
    """A lab: switches and hosts in namespaces, a manager, and commands. ``close`` ends it; so does ``with``."""

    def __init__(self, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self._process, self._errors = process, errors
        self._answer()

    def command(self, line: str) -> LabAnswer:
        """Execute a command of the lab's prompt (``help`` lists them), and wait until it has ended.

        Raises ``FailedError`` if the lab has ended.
        """
        if "\n" in line or not line.strip():
            raise InputError("a command is one line")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{line}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            self._raise()
        return self._answer()

    def run(self, collective: str, size: str | int | None = None, *hosts: str, repeat: int = 1) -> LabAnswer:
        """Run a collective of all ranks, or of ``hosts``, and compare all results with NumPy's."""
        words = [collective, *([] if size is None else [str(size)]), *hosts]
        return self.command(" ".join(["run", *words, *(["repeat", str(repeat)] if repeat != 1 else [])]))

    def fail(self, what: str) -> LabAnswer:
        """Take a link down (``h0-s0``), or kill a switch or the ``manager``."""
        return self._change("fail", what)

    def restore(self, what: str) -> LabAnswer:
        """Take a link up again, or start a switch or the ``manager`` again."""
        return self._change("restore" if "-" in what else "restart", what)

    def close(self) -> None:
        """End the lab; nothing of it stays but its logs."""
        if self._process.poll() is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
        self._process.wait()
        self._errors.close()

    def __enter__(self) -> Lab:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()

    def _change(self, verb: str, what: str) -> LabAnswer:
        ends = what.split("-")
        if len(ends) == 2:
            return self.command(f"{verb} link {ends[0]} {ends[1]}")
        return self.command(f"{verb} manager" if what == "manager" else f"{verb} switch {what}")

    def _answer(self) -> LabAnswer:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = json.loads(line) if line else {}
        if "ok" not in found:  # the report of a lab that has ended
            self._raise()
        return LabAnswer(**found)

    def _raise(self) -> NoReturn:
        status = self._process.wait()
        self._errors.seek(0)
        said = self._errors.read().strip() or f"the lab has ended with exit status {status}"
        where, _, message = said.rpartition(": error: ")
        place = Option(where[2:].replace("-", "_")) if where.startswith("--") else None
        raise _ERRORS.get(status, FailedError)(Diagnostic(place, message))


def lab(
    topology: TopologySpec | str | Path,
    program: Described = None,
    *,
    target: str = "embedded",
    engine: str = "jit",
    timeout: str | None = None,
    seed: int | None = None,
    out: str | Path = "build",
) -> Lab:
    """Bring up a lab under Mininet, as ``p4gen lab`` does, and return when it is up.

    >>> import p4gen
    >>> with p4gen.lab("star-4", {"mode": "III"}) as lab:  # doctest: +SKIP
    ...     lab.run("allreduce", "1M").ok
    ...     lab.fail("h0-s0").text.splitlines()[0]
    True
    'h0-s0 is down'

    ``target`` is ``embedded`` or ``bmv2``; ``timeout`` the hosts' retransmission timer, as ``50ms``; ``out`` the folder
    for programs, logs and captures. Needs root and Mininet.

    Raises ``MissingToolError`` without them, ``InputError`` for a program or a topology that labs cannot have, and
    ``FailedError`` for a lab that does not start.
    """
    spec = spec_of(program)
    with tempfile.TemporaryDirectory(prefix="p4gen-") as folder:
        written = Path(folder, "spec.yaml")
        fields = {"family": spec.family, **spec.model_dump(mode="json", exclude_unset=True)}
        written.write_text(json.dumps(fields), encoding="utf-8")
        place = str(topology)
        if isinstance(topology, TopologySpec):
            place = str(Path(folder, f"{topology.name}.yaml"))
            Path(place).write_text(topology.model_dump_json(exclude_unset=True), encoding="utf-8")
        command = [sys.executable, "-m", "p4gen", "lab", place, str(written), "--json", "--out", str(out)]
        command += ["--target", target, "--engine", engine]
        command += [] if timeout is None else ["--timeout", timeout]
        command += [] if seed is None else ["--seed", str(seed)]
        errors = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - the lab's, as long as it lasts
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, encoding="utf-8"
        )
        return Lab(process, errors)
