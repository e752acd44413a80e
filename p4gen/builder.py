"""Building a program: compose, render, compile, lint, and put the results into a folder, all or nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from p4gen.errors import Diagnostic, FailedError, InputError
from p4gen.p4 import p4c
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.info.generate import generate
from p4gen.p4.info.text import differences, parse_text, to_text
from p4gen.p4.resources import Resources
from p4gen.p4.toolchain import Toolchain
from p4gen.plugins import answers
from p4gen.program import Composition, Manifest, compose, manifest, render
from p4gen.program.dataflow import problems
from p4gen.program.dissector import dissector
from p4gen.program.manifest import to_json
from p4gen.program.room import fitting
from p4gen.protos import p4info
from p4gen.scratch import scratch
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Built:
    """A finished build; ``p4c`` is the real compiler's version, None where it is not installed."""

    folder: Path
    composition: Composition
    compiled: Compiled
    manifest: Manifest
    p4c: str | None
    files: tuple[Path, ...]
    refusal: str | None = None
    """Why p4c does not accept the program, if that is an experiment; others are not built then."""

    @property
    def program(self) -> Path:
        """The path of the P4 file in ``folder``."""
        return self.folder / f"{self.composition.spec.program}.p4"


def build(
    spec: ProgramSpec,
    out: Path,
    *,
    use_p4c: bool = True,
    line_directives: bool = True,
    p4c_timeout: float | None = None,
) -> Built:
    """Build ``spec``'s program into ``out/<program>/``; what was there stays until the new one is whole.

    Writes ``<program>.p4``, ``<program>.p4info.txtpb``, ``manifest.json`` and ``<program>.lua``, a dissector for
    Wireshark, and with p4c on PATH ``<program>.json`` and p4c's own P4Info. Raises ``FailedError`` if the generated
    program does not compile cleanly, breaks a rule of the house (``p4.lint``), or p4c disagrees.
    ``line_directives`` says whether the text has ``#line`` directives (``render``), ``p4c_timeout`` the seconds for
    p4c, if not its own. If p4c fails and wrote a log, that stays as ``out/<program>.p4c.log``. Raises ``InputError`` if
    the program is too large for the switch.
    """
    composition = compose(spec)
    rendered = render(composition, line_directives=line_directives)
    tools = spec.architecture.facet(Toolchain)
    name = spec.program
    with _replacing(out / name) as folder:
        source = folder / f"{name}.p4"
        source.write_text(rendered.text, encoding="utf-8")
        log = out / f"{name}.p4c.log"
        call = p4c.CompilerCall(source, folder / tools.output, p4c_timeout, log=log)
        with _keeping(call.out / "p4c.log", log), ThreadPoolExecutor(max_workers=1) as beside:
            # What may be too large is asked first: p4c takes minutes to say so.
            measured = answers(spec.architecture, Resources)
            run = partial(tools.compile, call) if use_p4c and tools.compile else None
            second_opinion = beside.submit(run) if run is not None and not measured else None
            # Positions name the file where it will be, not where it is being made.
            compiled = compile_text(rendered.text, str(out / name / source.name))
            _refuse(compiled.warnings, f"{name} compiles with warnings")
            broken = [d for d in tools.lint(compiled.program, spec.pipelines) if d.severity == "error"]
            _refuse(compiled.placed(broken), f"{name} breaks a rule for generated programs")
            reports = fitting(spec, compiled.program) if measured else ()
            if measured:
                second_opinion = beside.submit(run) if run is not None else None
            _refuse(problems(composition, compiled.program), f"{name}'s modules do not fit together")
            info = generate(compiled.program)
            (folder / f"{name}.p4info.txtpb").write_text(to_text(info), encoding="utf-8")
            content = manifest(composition, rendered, compiled.program, reports)
            (folder / "manifest.json").write_text(to_json(content), encoding="utf-8")
            if (lua := dissector(composition)) is not None:
                (folder / f"{name}.lua").write_text(lua, encoding="utf-8")
            version, refusal = None, None
            try:
                version = _agreeing(info, second_opinion.result()) if second_opinion is not None else None
            except FailedError as error:
                if not composition.experiment:
                    raise
                refusal = str(error).splitlines()[0]
    final = out / name
    return Built(final, composition, compiled, content, version, tuple(sorted(final.iterdir())), refusal)


def _agreeing(info: p4info.P4Info, theirs: tuple[str, p4c.P4cOutput] | None) -> str | None:
    """p4c's version, if its P4Info is ours or cannot be compared."""
    if theirs is None:
        return None
    version, output = theirs
    if output.p4info is None:
        return version
    described = parse_text(output.p4info.read_text(encoding="utf-8"))
    described.ClearField("externs")  # what only p4c's switches have, such as snapshots
    differing = differences(info, described)
    if differing:
        raise FailedError("p4gen's P4Info differs from p4c's:\n" + "\n".join(differing))
    return version


def _refuse(diagnostics: Sequence[Diagnostic | str], what: str) -> None:
    if diagnostics:
        raise FailedError(f"{what}: this is a bug in its family (modules or templates)", *diagnostics)


@contextmanager
def _keeping(log: Path, kept: Path) -> Iterator[None]:
    """Copy a log out of a folder that is removed, if the block fails; remove an earlier one if it does not."""
    try:
        yield
    except FailedError:
        if log.is_file():
            shutil.copyfile(log, kept)
        raise
    kept.unlink(missing_ok=True)


@contextmanager
def _replacing(final: Path) -> Iterator[Path]:
    """A fresh folder that takes ``final``'s place when the block ends well, and is removed when not."""
    stack = ExitStack()
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        place = stack.enter_context(scratch(f".{final.name}.", final.parent))
    except OSError as error:
        raise InputError(f"cannot write to {final.parent}: {error.strerror}") from error
    with stack:
        fresh = place / "new"
        fresh.mkdir()
        yield fresh
        if final.exists():
            final.rename(place / "old")
        fresh.rename(final)
