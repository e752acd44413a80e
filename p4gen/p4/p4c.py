"""The reference P4 compiler, if it is installed: ``p4c-bm2-ss`` compiles for BMv2 and writes its own P4Info."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from p4gen.errors import FailedError

COMPILER = "p4c-bm2-ss"
TIMEOUT_S = 1800
"""A program that folds floating-point numbers takes minutes, more on a machine that has other work."""


@dataclass(frozen=True)
class P4cOutput:
    """The output of p4c: what the target loads, or for Tofino the manifest of all files; and P4Info (text), if it can
    be compared with p4gen's."""

    json: Path
    p4info: Path | None


@dataclass(frozen=True)
class CompilerCall:
    """One run of an architecture's compiler: its input, its options and its time limit."""

    source: Path
    out: Path
    """The folder for its output."""
    timeout_s: float | None = None
    """The time limit, if it is not the compiler's usual one."""
    defines: tuple[str, ...] = ()
    includes: tuple[Path, ...] = ()
    log: Path | None = None
    """Where the log will be found, if not in ``out``."""

    @property
    def arguments(self) -> tuple[str, ...]:
        """Defines and folders of includes, as p4c's options."""
        folders = (("-I", str(folder.absolute())) for folder in self.includes)
        return (*(f"-D{define}" for define in self.defines), *(part for pair in folders for part in pair))


def find() -> str | None:
    """The compiler's absolute path; None if it is not installed."""
    found = shutil.which(COMPILER)
    return os.path.abspath(found) if found else None


def version(compiler: str) -> str:
    """The version that the compiler prints, in one line."""
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    found = re.search(r"[Vv]ersion\s+([^\s]+)", done.stdout + done.stderr)
    return found[1] if found else "unknown version"


@cache
def _in_place() -> tuple[str, ...]:
    """The prefix of a command that disables address space randomisation, if the system allows it.

    p4c orders some objects by their addresses: of equal statements, the first determines the ``source_info`` of all.
    """
    setarch = shutil.which("setarch")
    if setarch is None or subprocess.run([setarch, "-R", "true"], capture_output=True, check=False).returncode:
        return ()
    return (setarch, "-R")


def compile_for_bmv2(
    compiler: str,
    source: Path,
    out: Path,
    *,
    warnings: bool = False,
    timeout_s: float | None = None,
    arguments: tuple[str, ...] = (),
) -> P4cOutput:
    """Compile ``source`` into folder ``out``, with further ``arguments``.

    Raises ``FailedError`` with the compiler's output if it fails or prints anything: a generated program must not cause
    warnings, unless ``warnings`` are expected (a fault is seeded).
    """
    p4info = out / f"{source.stem}.p4c.p4info.txtpb"
    result = P4cOutput(out / f"{source.stem}.json", p4info)
    timeout = timeout_s if timeout_s is not None else TIMEOUT_S
    # The JSON contains the file name given to the compiler; without a folder, all builds of a program are the same.
    command = [
        *_in_place(),
        compiler,
        "--p4runtime-files",
        str(p4info.absolute()),
        "-o",
        str(result.json.absolute()),
    ]
    command += [*arguments, source.name]
    try:
        done = subprocess.run(command, cwd=source.parent, capture_output=True, text=True, timeout=timeout, check=False)
    except subprocess.TimeoutExpired as error:
        raise FailedError(f"{COMPILER} did not finish within {timeout} s on {source}") from error
    printed = (done.stdout + done.stderr).strip()
    if done.returncode:
        raise FailedError(f"{COMPILER} refused {source} (exit status {done.returncode}):\n{printed}")
    if printed and not warnings:
        raise FailedError(f"{COMPILER} accepted {source} but printed:\n{printed}")
    return result
