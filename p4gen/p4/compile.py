"""The front end from text to typed IR: ``compile_file`` and ``compile_text``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from p4gen.arch import architectures
from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.inputs import read_text
from p4gen.p4 import ir
from p4gen.p4.lint import uninitialised
from p4gen.p4.lower.program import elaborate
from p4gen.p4.parse.parser import parse
from p4gen.p4.parse.preprocess import preprocess
from p4gen.p4.parse.source import P4Error, Reporter, Source, not_too_deep
from p4gen.p4.toolchain import tools_of

if TYPE_CHECKING:
    from p4gen.protos import p4info


@dataclass(frozen=True)
class Compiled:
    """A compiled program and its warnings. What not every caller needs is computed at the first access."""

    program: ir.Program
    warnings: tuple[Diagnostic, ...]
    source: Source
    declared: Mapping[str, Pos]
    """The position of the declaration of each global name."""

    @cached_property
    def p4info(self) -> p4info.P4Info:
        """The program's P4Info. Raises ``P4Error`` if the program is nested too deeply."""
        # protobuf takes a while to load, and only P4Info needs it.
        from p4gen.p4.info.generate import generate  # noqa: PLC0415

        with not_too_deep(self.program.source):
            return generate(self.program)

    @cached_property
    def translated(self) -> Mapping[str, int]:
        """The bits in the data plane of each type with ``@p4runtime_translation``, by its name in the P4Info."""
        from p4gen.p4.info.generate import translated  # noqa: PLC0415

        with not_too_deep(self.program.source):
            return translated(self.program)

    @cached_property
    def beyond_targets(self) -> tuple[Diagnostic, ...]:
        """Errors for valid P4_16 that the targets of the architecture do not support (``Toolchain.limits``).

        For v1model these are the errors of p4c's BMv2 back end.
        """
        needed = [a.main for a in architectures().values() if a.main in self.declared]
        if needed and not self.program.package:
            where = Pos(self.program.source, 1, 1)
            return (Diagnostic(where, f"the program has no 'main', an instance of {' or '.join(sorted(set(needed)))}"),)
        tools = tools_of(self.program)
        if tools is None or tools.limits is None:
            return ()
        with not_too_deep(self.program.source):
            found = tools.limits(self.program, self.declared)
        return tuple(
            replace(d, source_line=self.source.line_text(d.where) if isinstance(d.where, Pos) else None) for d in found
        )

    def placed(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """``found`` with source lines; where a ``#line`` directive gives it, also with the place in a template."""
        offsets = {pos: offset for offset, pos in self.source.known()}
        made = []
        for d in found:
            if isinstance(d.where, Pos):
                at = offsets.get(d.where)
                origin = self.source.origin(at) if at is not None else None
                notes = ((origin, "this line was generated from here"),) if origin is not None else ()
                d = replace(d, source_line=self.source.line_text(d.where), notes=(*d.notes, *notes))  # noqa: PLW2901
            made.append(d)
        return made


def compile_file(path: str | Path, defines: Iterable[str] = (), includes: Iterable[str | Path] = ()) -> Compiled:
    """Compile the P4_16 program at ``path``.

    Raises ``P4Error`` with one diagnostic for each error found; a file that cannot be read is one.
    """
    path = Path(path)
    try:
        text = read_text(path)
    except InputError as problem:
        raise P4Error(*problem.diagnostics) from None
    return compile_text(text, str(path), defines, includes, path.parent)


@lru_cache(maxsize=16)
def program_from(text: str, name: str) -> ir.Program:
    """Compile ``text``, called ``name`` in positions. The last results are kept: a text compiled again costs
    nothing."""
    return compile_text(text, name).program


def compile_text(
    text: str,
    name: str = "program.p4",
    defines: Iterable[str] = (),
    includes: Iterable[str | Path] = (),
    folder: Path | None = None,
) -> Compiled:
    """Compile a program given as text, called ``name`` in positions (see ``compile_file``)."""
    with not_too_deep(name):
        source = preprocess(name, text, defines, includes, folder)
        reporter = Reporter(source)
        tree = parse(source, reporter)
        reporter.raise_if_failed()
        program, names = elaborate(reporter, tree, name)
        reporter.raise_if_failed()
        warnings = list(reporter.warnings())
        found = uninitialised.reads(program)
        warnings += [Diagnostic(p, m, "warning", source_line=source.line_text(p)) for p, m in found]
        declared = {n: source.pos(at) for n, at in names.items()}
    return Compiled(program, tuple(warnings), source, declared)
