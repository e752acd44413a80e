"""p4c's back end for Tofino: its command, its time limit, its log, and its errors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from p4gen.chips.tna.failures import errors
from p4gen.errors import Diagnostic, FailedError, InputError
from p4gen.p4.p4c import CompilerCall, P4cOutput
from p4gen.p4.p4c import version as p4c_version

VARIABLE: Final = "P4C_TOFINO"
"""The environment variable that names the compiler, where ``p4c`` on PATH is not for Tofino."""
TIMEOUT_S: Final = 900
LOG: Final = "p4c.log"
P4INFO: Final = "p4info.txtpb"
"""P4Info with P4Runtime's own counters, meters and registers, as p4gen writes it, not the back end's."""
OUTPUT: Final = "tofino"
"""The folder of its output in a program's folder: it writes a ``manifest.json``, too."""
_TARGETS: Final = {"tna": ("tofino", 1), "t2na": ("tofino2", 2)}
"""The target for an architecture, and its number."""
_BACK_END: Final = "p4c-barefoot"
"""The back end itself, without the driver that defines the target's number and runs the assembler."""


def find(arch: str) -> str | None:
    """The compiler's absolute path; None if there is none for ``arch``. After PATH, ``$SDE_INSTALL/bin`` is searched.

    Raises ``InputError`` if ``P4C_TOFINO`` names no program.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise InputError(Diagnostic(VARIABLE, f"'{named}' is not a program that can be run"))
        return os.path.abspath(found)
    there = [shutil.which("p4c")]
    if install := os.environ.get("SDE_INSTALL"):
        there.append(shutil.which("p4c", path=str(Path(install).absolute() / "bin")))
    target = f"{_TARGETS[arch][0]}-{arch}"
    return next((os.path.abspath(path) for path in there if path and _compiles(path, target)), None)


def _compiles(compiler: str, target: str) -> bool:
    """Whether a compiler knows a target."""
    try:
        done = subprocess.run([compiler, "--target-help"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return target in done.stdout + done.stderr


def version(arch: str) -> Callable[[], str | None]:
    """``Toolchain.version`` for an architecture."""

    def ask() -> str | None:
        compiler = find(arch)
        return p4c_version(compiler) if compiler is not None else None

    return ask


def absent(arch: str) -> str:
    """The line for a machine without the compiler."""
    return f"no p4c for {_TARGETS[arch][0]} on PATH, and {VARIABLE} names none: the program was not compiled for it"


def command(compiler: str, arch: str, call: CompilerCall) -> list[str]:
    """The compiler's arguments."""
    target, number = _TARGETS[arch]
    argv = [compiler, "--target", target, "--arch", arch, "--std", "p4-16", "-g"]
    argv += [f"-D__TARGET_TOFINO__={number}"] if Path(compiler).name == _BACK_END else ["--verbose", "1"]
    out = call.out.absolute()
    argv += ["--bf-rt-schema", str(out / "bfrt.json"), "--p4runtime-files", str(out / P4INFO)]
    argv += ["--p4runtime-force-std-externs"]
    return [*argv, "-o", str(out), *call.arguments, str(call.source)]


def compiling(arch: str) -> Callable[[CompilerCall], tuple[str, P4cOutput] | None]:
    """``Toolchain.compile`` for an architecture."""

    def run(call: CompilerCall) -> tuple[str, P4cOutput] | None:
        compiler = find(arch)
        if compiler is None:
            return None
        compile_for_tofino(compiler, arch, call)
        made = call.out / "manifest.json"
        compiler_version = json.loads(made.read_text(encoding="utf-8")).get("compiler_version", "unknown version")
        info = call.out / P4INFO
        return str(compiler_version), P4cOutput(made, info if info.is_file() else None)

    return run


def compile_for_tofino(compiler: str, arch: str, call: CompilerCall) -> None:
    """Compile a program; the log is ``p4c.log`` in the folder of the output.

    Raises ``FailedError``, with the first errors and the place of the log, if the compiler does not end in time, exits
    with a status other than 0, reports no success in its ``manifest.json``, or needs more stages than there are.
    """
    call.out.mkdir(parents=True, exist_ok=True)
    manifest, log = call.out / "manifest.json", call.out / LOG
    manifest.unlink(missing_ok=True)
    timeout = call.timeout_s if call.timeout_s is not None else TIMEOUT_S
    beside = call.out.with_name(f"{call.out.name}.{LOG}")  # the driver deletes logs in the folder of its output
    try:
        status = _run(command(compiler, arch, call), beside, timeout)
    finally:
        beside.replace(log)
    program = Path(compiler).name
    if status is None:
        reason = f"{program} did not end within {timeout} s on {call.source}"
    elif status < 0:
        reason = f"{program} ended by {_signal(-status)} on {call.source}"
    elif status:
        reason = f"{program} refused {call.source} (exit status {status})"
    elif not _succeeded(manifest):
        reason = f"{program} ended well on {call.source}, but manifest.json does not say compilation_succeeded"
    elif (stages := _stages(call.out)) is not None and stages[0] > stages[1]:
        reason = f"{program} spread {call.source} over {stages[0]} stages; there are {stages[1]}"
    else:
        return
    raise FailedError(f"{reason}; its output is in {call.log or log}", *errors(log, call))


def _run(argv: list[str], log: Path, timeout: float) -> int | None:
    """Run a command in a session of its own, with its output in ``log``, and end all processes that it started. Returns
    its exit status, negative for a signal; None if it took too long."""
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


def _stages(out: Path) -> tuple[int, int] | None:
    """The number of stages of the pipe that takes the most, and of the chip, by p4c's ``resources.json``.

    The back end writes a program of too many stages without an error: only the assembler refuses it.
    """
    found = []
    for report in out.glob("*/logs/resources.json"):
        mau = json.loads(report.read_text(encoding="utf-8"))["resources"]["mau"]
        found.append((len(mau["mau_stages"]), int(mau["nStages"])))
    return max(found, default=None)
