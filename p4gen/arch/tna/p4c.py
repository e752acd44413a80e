"""p4c's back end for Tofino: its command, its time limit and its log, and what its errors are about."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from p4gen.errors import Diagnostic, FailedError, InputError, Pos
from p4gen.p4 import ir
from p4gen.p4.compile import compile_file
from p4gen.p4.p4c import CompilerCall, P4cOutput
from p4gen.p4.parse.source import P4Error

VARIABLE: Final = "P4C_TOFINO"
"""The environment variable with the compiler, where ``p4c`` on PATH is none for Tofino."""
TIMEOUT_S: Final = 900
LOG: Final = "p4c.log"
_TARGETS: Final = {"tna": ("tofino", 1), "t2na": ("tofino2", 2)}
"""The target for an architecture, and its number."""
_BACK_END: Final = "p4c-barefoot"
"""The back end itself, without the driver that defines the target's number and runs the assembler."""
_ERROR: Final = re.compile(
    r"^(?:(?P<file>[^\s()][^()]*)\((?P<line>\d+)\): ?)?(?:\[--Werror=[\w-]+\] )?error: :?\s*(?P<text>\S.*)$"
)
_MOST: Final = 8
"""Errors that are repeated from the log."""
_NAME: Final = re.compile(r"[A-Za-z_][\w.$]*")


def find(arch: str) -> str | None:
    """The compiler's absolute path; None if there is none for ``arch``.

    Raises ``InputError`` if ``P4C_TOFINO`` names no program.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise InputError(Diagnostic(VARIABLE, f"'{named}' is not a program that can be run"))
        return os.path.abspath(found)
    found = shutil.which("p4c")
    if found is None:
        return None
    try:
        done = subprocess.run([found, "--target-help"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return os.path.abspath(found) if f"{_TARGETS[arch][0]}-{arch}" in done.stdout + done.stderr else None


def absent(arch: str) -> str:
    """The line for a machine without the compiler."""
    return f"no p4c for {_TARGETS[arch][0]} on PATH, and {VARIABLE} names none: the program was not compiled for it"


def command(compiler: str, arch: str, call: CompilerCall) -> list[str]:
    """The compiler's arguments."""
    target, number = _TARGETS[arch]
    argv = [compiler, "--target", target, "--arch", arch, "--std", "p4-16", "-g"]
    argv += [f"-D__TARGET_TOFINO__={number}"] if Path(compiler).name == _BACK_END else ["--verbose", "1"]
    out = call.out.absolute()
    argv += ["--bf-rt-schema", str(out / "bfrt.json"), "--p4runtime-files", str(out / "p4info.txtpb")]
    return [*argv, "-o", str(out), *call.arguments, str(call.source)]


def compiling(arch: str) -> Callable[[CompilerCall], tuple[str, P4cOutput] | None]:
    """``Toolchain.compile`` for an architecture."""

    def run(call: CompilerCall) -> tuple[str, P4cOutput] | None:
        compiler = find(arch)
        if compiler is None:
            return None
        compile_for_tofino(compiler, arch, call)
        made = call.out / "manifest.json"
        version = json.loads(made.read_text(encoding="utf-8")).get("compiler_version", "unknown version")
        return str(version), P4cOutput(made, None)

    return run


def compile_for_tofino(compiler: str, arch: str, call: CompilerCall) -> None:
    """Compile a program; the log is ``p4c.log`` in the folder of the output.

    Raises ``FailedError`` with the first errors, and the log's place, if the compiler does not end in time, ends with
    another status than 0, or does not say in its ``manifest.json`` that it succeeded.
    """
    call.out.mkdir(parents=True, exist_ok=True)
    manifest, log = call.out / "manifest.json", call.out / LOG
    manifest.unlink(missing_ok=True)
    timeout = call.timeout_s if call.timeout_s is not None else TIMEOUT_S
    status = _run(command(compiler, arch, call), log, timeout)
    program = Path(compiler).name
    if status is None:
        reason = f"{program} did not end within {timeout} s on {call.source}"
    elif status < 0:
        reason = f"{program} ended by {_signal(-status)} on {call.source}"
    elif status:
        reason = f"{program} refused {call.source} (exit status {status})"
    elif not _succeeded(manifest):
        reason = f"{program} ended well on {call.source}, but manifest.json does not say compilation_succeeded"
    else:
        return
    raise FailedError(f"{reason}; its output is in {call.log or log}", *errors(log, call))


def _run(argv: list[str], log: Path, timeout: float) -> int | None:
    """Run a command in a session of its own, with its output in ``log``, and end all that it started. Returns its exit
    status, negative for a signal; None if it took too long."""
    with log.open("wb") as output:
        try:
            process = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise InputError(Diagnostic(VARIABLE, f"cannot run {argv[0]}: {error.strerror}")) from error
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _succeeded(manifest: Path) -> bool:
    try:
        return json.loads(manifest.read_text(encoding="utf-8")).get("compilation_succeeded") is True
    except (OSError, ValueError, AttributeError):
        return False


def errors(log: Path, call: CompilerCall) -> list[Diagnostic]:
    """The first errors in a log, where ``#line`` puts them. One without a place has that of the first table, action or
    extern instance that it names, so that it leads to a module."""
    found: dict[tuple[str, str | None], Diagnostic] = {}
    places: dict[str, Pos] | None = None
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        matched = _ERROR.match(line)
        if matched is None or len(found) == _MOST:
            continue
        where: Pos | None = None
        if matched["file"]:
            where = Pos(matched["file"], int(matched["line"]), 1)
        else:
            places = _places(call) if places is None else places
            named = (_place(word, places) for word in _NAME.findall(matched["text"]))
            where = next((place for place in named if place is not None), None)
        found.setdefault((matched["text"], str(where)), Diagnostic(where, f"p4c: {matched['text']}"))
    return list(found.values())


def _places(call: CompilerCall) -> dict[str, Pos]:
    """Where what p4c names is declared, by control-plane name."""
    try:
        program = compile_file(call.source, call.defines, call.includes).program
    except P4Error:
        return {}
    declared: tuple[ir.Table | ir.Function | ir.ExternInstance, ...]
    declared = (*program.tables, *program.actions, *program.externs)
    return {item.name: item.pos for item in declared}


def _place(word: str, places: dict[str, Pos]) -> Pos | None:
    """The place of a name in p4c's words, which may have the pipe's in front and a number behind."""
    name = re.sub(r"(\.|\$\w*)*$", "", word)
    candidates = (name, name.partition(".")[2])
    return next((places[c] for c in candidates if c in places), None)
