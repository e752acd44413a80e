"""Runs a PTF suite against a switch in its own process, and judges the run as a whole.

PTF also reports success when it ran no test or could not parse ``-t``, and its exit code does not reflect all failures.
So the tests send their results over a pipe, and these must agree with what PTF printed.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import p4gen
from p4gen import packages
from p4gen.errors import FailedError, MissingToolError
from p4gen.ptf import report
from p4gen.ptf.parallel import Stop
from p4gen.ptf.report import Outcome, TestResult
from p4gen.records import to_plain
from p4gen.resources import resource
from p4gen.switch.process import running_switch
from p4gen.switch.running import Program, RunningSwitch

Progress = Callable[[TestResult], None]
Switch = Callable[[Program, Path, range], AbstractContextManager[RunningSwitch]]
"""A function from (program, folder, ports) to a context manager that runs a switch."""

_LOG_PREFIX = re.compile(r"^[\d:.]+ +\w+ *: *\w+ *: *")

TEST_TIMEOUT_S, SILENCE_S = 900, 1200.0
"""Seconds for one test, and seconds without any result, after which the run is ended. Generous, because a scenario
takes a second, but a loaded machine may be slower by any factor."""
_SILENT = "no scenario ended for {:g} s"
_STOPPED = "the suite was stopped before its end"

QUEUE_LENGTH = 1_000_000
"""Number of frames that PTF keeps per port. With its default of 100 it silently drops the oldest."""


@dataclass(frozen=True)
class SuiteResult:
    """The result of a suite on one program. ``problem`` says what is wrong with the run itself, if anything."""

    tests: tuple[TestResult, ...]
    seconds: float
    problem: str | None = None

    @property
    def passed(self) -> bool:
        """Whether every test that ran passed, at least one did, and nothing was wrong with the run."""
        return self.problem is None and all(t.ok for t in self.tests) and bool(self.of(Outcome.PASSED))

    @property
    def failures(self) -> tuple[TestResult, ...]:
        """Tests that failed or could not be run."""
        return self.of(Outcome.FAILED, Outcome.ERROR)

    def of(self, *outcomes: Outcome) -> tuple[TestResult, ...]:
        """The tests with one of these outcomes."""
        return tuple(test for test in self.tests if test.outcome in outcomes)


def run_suite(
    program: Program,
    directory: Path,
    *,
    ports: int,
    params: Mapping[str, object],
    suite: Sequence[Path] = (),
    tests: Sequence[str] = (),
    stop_on_failure: bool = False,
    test_timeout: int = TEST_TIMEOUT_S,
    silence: float = SILENCE_S,
    progress: Progress | None = None,
    switch: Switch = running_switch,
    stop: Stop | None = None,
) -> SuiteResult:
    """Run ``tests`` (PTF names, module.Class or module; all by default) of ``suite`` on ``program``.

    ``directory`` must exist; sockets, ``ptf.out``, ``ptf.log`` and ``ptf.pcap`` are created there. Its path must leave
    room for a socket name within the 107 bytes of unix(7). ``params`` are passed to the tests as Python literals,
    together with ``switch`` (a ``RunningSwitch``, as JSON). A test is ended after ``test_timeout`` seconds, and the
    whole run after ``silence`` seconds without a result; both are longer for a switch that is ``slower``. ``progress``
    is called with each test as it finishes.

    Failures are part of the result. Raises what starting the switch raises, ``MissingToolError`` without PTF, and
    ``FailedError`` when ``stop`` is set meanwhile.
    """
    directory = directory.resolve()  # PTF is started in it
    if stop is not None and stop.is_set:
        raise FailedError(_STOPPED)
    started = time.monotonic()
    with switch(program, directory, range(ports)) as running, _pipe() as (reader, writer):
        limit, silence = round(test_timeout * running.slower), silence * running.slower
        everything = {
            **params,
            "switch": to_plain(running),
            "results_fd": writer,
            "stop_on_failure": stop_on_failure,
        }
        # PTF executes the parameters as Python: repr() is the only quoting that holds.
        literal = ";".join(f"{key}={value!r}" for key, value in everything.items())
        try:
            process = _start(
                [*_arguments(running, _folder_of(suite, directory), directory, limit), "-t", literal, *tests],
                directory,
                writer,
            )
        finally:
            os.close(writer)
        try:
            with _ends(running.pids) as ends:
                finished, problem = _collect(reader, silence, progress, stop, ends)
            if problem is None:
                process.wait(silence)
        except subprocess.TimeoutExpired:
            problem = _SILENT.format(silence)
        finally:
            _end(process)
    seconds = time.monotonic() - started
    problem = problem or _problem(finished, process.returncode, directory / "ptf.out")
    return SuiteResult(tuple(finished), seconds, problem)


def _folder_of(suite: Sequence[Path], directory: Path) -> Path:
    """The one folder that PTF takes: for a suite of several, links to their modules, in ``directory``. As PTF loads
    modules from folders below it, too, there are also links for a suite with such folders."""
    suite = suite or (resource("ptf_tests"),)
    if len(suite) == 1 and not any(suite[0].glob("*/*.py")):
        return suite[0].resolve()  # PTF runs elsewhere
    merged = directory / "suite"
    merged.mkdir()
    for folder in suite:
        for file in folder.resolve().glob("*.py"):
            if not (merged / file.name).exists():
                (merged / file.name).symlink_to(file)
    return merged


def _arguments(running: RunningSwitch, suite: Path, directory: Path, test_timeout: int) -> list[str]:
    return [
        sys.executable,
        *("-m", "p4gen.ptf.child", str(_ptf_script())),
        *("--test-dir", str(suite)),
        *("--platform-dir", str(Path(__file__).parent / "platform")),
        *("--platform", running.platform),
        *("--platform-args", repr(dict(running.platform_args))),
        "--allow-user",
        *("--qlen", str(QUEUE_LENGTH)),
        *("--log-file", str(directory / "ptf.log")),
        *("--debug", "info"),
        *("--test-case-timeout", str(test_timeout)),
    ]


def _ptf_script() -> Path:
    folders = (Path(sys.executable).parent, Path(sysconfig.get_path("scripts")))
    for script in (folder / "ptf" for folder in folders):
        if script.is_file():
            return script
    raise MissingToolError(f"PTF's command is not in {folders[0]}: {packages.PTF}")


def _start(command: list[str], directory: Path, results: int) -> subprocess.Popen[bytes]:
    """Start PTF in its own process group, with its output in ``ptf.out``; it inherits the ``results`` pipe.

    It ends when its standard input is closed, whose other end only this process holds.
    """
    with (directory / "ptf.out").open("wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=directory,
            env=environment(),
            pass_fds=(results,),
            start_new_session=True,
        )


def environment() -> dict[str, str]:
    """This process's environment, with this p4gen on Python's path."""
    path = [str(Path(p4gen.__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path)), "PYTHONUNBUFFERED": "1"}


@contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    """A pipe. The reading end is closed at exit; the caller closes the writing end."""
    reader, writer = os.pipe()
    try:
        yield reader, writer
    finally:
        os.close(reader)


@contextmanager
def _ends(pids: Sequence[int]) -> Iterator[list[int]]:
    """Descriptors that can be read when processes have ended."""
    descriptors = [os.pidfd_open(pid) for pid in pids]
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _collect(
    reader: int, silence: float, progress: Progress | None, stop: Stop | None, ends: Sequence[int] = ()
) -> tuple[list[TestResult], str | None]:
    """The results until the other end of the pipe is closed, and why it was not: there was none for ``silence``
    seconds, or one of ``ends`` can be read, as without its processes the switch answers nothing."""
    finished: list[TestResult] = []
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(reader, selectors.EVENT_READ)
        if stop is not None:
            selector.register(stop, selectors.EVENT_READ)
        for descriptor in ends:
            selector.register(descriptor, selectors.EVENT_READ)
        while True:
            ready = selector.select(silence)
            if not ready:
                return finished, _SILENT.format(silence)
            if any(key.fd in ends for key, _ in ready):
                return finished, "a process of the switch has ended"
            if stop is not None and stop.is_set:
                raise FailedError(_STOPPED)
            data = os.read(reader, 65536)
            if not data:
                return finished, None
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                finished.append(report.read(line))
                if progress is not None:
                    progress(finished[-1])


def _end(process: subprocess.Popen[bytes]) -> None:
    """End PTF and any processes that it started."""
    if process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert process.stdin is not None
    process.stdin.close()


def _problem(finished: Sequence[TestResult], code: int, output: Path) -> str | None:
    """What is wrong with a run that has ended, apart from failed tests; None if nothing is."""
    text = output.read_text(errors="replace")
    match = re.search(r"^Ran (\d+) tests? in", text, re.MULTILINE)
    ran = int(match[1]) if match else 0
    tail = next((line for line in reversed(text.splitlines()) if line.strip()), "it printed nothing")
    if match is None:
        return f"PTF ended with exit code {code} before running tests: {_LOG_PREFIX.sub('', tail)}"
    if ran == 0:
        return "no test was run"
    if ran != len(finished):
        return f"PTF ran {ran} tests, {len(finished)} reported their outcome: {tail}"
    failed = any(not test.ok for test in finished)
    if (code != 0) != failed:
        return f"PTF ended with exit code {code} although {'a test' if failed else 'no test'} failed: {tail}"
    return None
