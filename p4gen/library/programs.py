"""``p4gen.generate`` and ``p4gen.compile``: programs, and switches in memory that run them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsBytes

from p4gen.choices import EngineName
from p4gen.errors import Diagnostic
from p4gen.families import load_spec
from p4gen.inputs import read_text
from p4gen.model import Model, Trace
from p4gen.p4.compile import Compiled, compile_text
from p4gen.program import compose, manifest, render
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import ProgramSpec

if TYPE_CHECKING:
    from p4gen.protos import p4info


class Switch(Model):
    """A switch in memory that runs a program: tables, registers, counters, multicast groups and packets.

    >>> import p4gen
    >>> switch = p4gen.generate(mode="II", lanes=8).switch()
    >>> switch.send(0, bytes(64))
    []

    The control plane is that of P4Runtime, with P4Info's names, as far as they are unique: ``insert``, ``modify``,
    ``delete``, ``entries``, ``set_default``, ``set_multicast_group``, ``register``, ``counter``, ``reset`` and more.
    """

    def send(self, port: int, frame: bytes | SupportsBytes, trace: Trace | None = None) -> list[tuple[int, bytes]]:
        """Process a frame that arrives at ``port``. Returns what leaves, as (port, frame), in order.

        ``frame`` is bytes, or what makes bytes of itself, such as a packet of Scapy's. With ``trace``, all steps are
        added to it.
        """
        return self.process(port, bytes(frame), trace)


@dataclass(frozen=True)
class CompiledProgram:
    """A P4_16 program that p4gen's front end has compiled.

    >>> import p4gen
    >>> [table.preamble.alias for table in p4gen.compile("examples/stations.p4").p4info.tables]
    ['stations']
    """

    name: str
    text: str
    make: Callable[[], Compiled] = field(repr=False, compare=False)
    """Runs the front end. Not part of what is stable; nor is ``compiled``."""

    @cached_property
    def compiled(self) -> Compiled:
        """The front end's result. The front end runs at the first access."""
        return self.make()

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What the front end warns of, with positions."""
        return self.compiled.warnings

    @property
    def p4info(self) -> p4info.P4Info:
        """The P4Info, equal to p4c's."""
        return self.compiled.p4info

    def switch(self, engine: EngineName = "jit", seed: int = 0) -> Switch:
        """A switch in memory that runs the program, without any entries.

        ``engine`` is ``jit`` for machine code, ``interp`` for the reference interpreter; ``seed`` is that of the
        program's random numbers. Raises ``InputError`` for what the models do not support, with a position.
        """
        return Switch(self.compiled.program, engine=engine, seed=seed)


@dataclass(frozen=True)
class Program(CompiledProgram):
    """A generated program.

    >>> import p4gen
    >>> program = p4gen.generate(mode="II", lanes=8)
    >>> program.spec.lanes, len(program.manifest["modules"])
    (8, 16)
    """

    spec: ProgramSpec

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Modules, registers, tables and state: what ``manifest.json`` has."""
        composition = compose(self.spec)
        return manifest(composition, render(composition), self.compiled.program)

    def write(self, out: str | Path = "build") -> tuple[Path, ...]:
        """Build the program into ``out/<name>/``, all or nothing, as ``p4gen build`` does. Returns the files.

        Raises ``FailedError`` if p4c is installed and refuses the program.
        """
        from p4gen.builder import build  # noqa: PLC0415 - protobuf takes a while to load

        return build(self.spec, Path(out)).files


Described = Program | ProgramSpec | Mapping[str, Any] | str | Path | None
"""A program, a spec, its fields, or a YAML file with them; None for the default one."""


def generate(spec: Described = None, /, **fields: Any) -> Program:
    """Generate a program.

    >>> import p4gen
    >>> p4gen.generate(mode="III", lanes=64).name
    'modeiii_sum_int32_x64.p4'

    ``spec`` is a spec, its fields, a YAML file with them, or a program; ``fields`` win. Without any, it is EPIC's
    Mode II. Raises ``InputError`` with a diagnostic for each wrong value: its position in the file, or the field's
    name.
    """
    chosen = spec_of(spec, fields)
    return Program(f"{chosen.program}.p4", render(compose(chosen)).text, partial(compile_spec, chosen), chosen)


def spec_of(given: Described, fields: Mapping[str, Any] | None = None) -> ProgramSpec:
    """The spec that a program has, or that is described as for ``generate``. Raises ``InputError``."""
    if isinstance(given, Program):
        given = given.spec
    if isinstance(given, str | Path):
        return load_spec(Path(given), fields)
    if given is None or isinstance(given, Mapping):
        return load_spec(None, {**(given or {}), **(fields or {})})
    if not fields:
        return given
    return load_spec(None, {"family": given.family, **given.model_dump(mode="json", exclude_unset=True), **fields})


def compile(  # noqa: A001 - the name that users look for; nobody imports it without its package
    path: str | Path, defines: Iterable[str] = (), includes: Iterable[str | Path] = ()
) -> CompiledProgram:
    """Compile a P4_16 program of anybody's, for v1model, TNA or T2NA.

    >>> import p4gen
    >>> program = p4gen.compile("tests/library/reflect.p4")
    >>> program.switch().send(3, b"any frame")
    [(3, b'any frame')]

    ``defines`` are ``NAME`` or ``NAME=value``, ``includes`` folders of headers. Raises ``InputError`` with a
    diagnostic, and its position, for each error.
    """
    text = read_text(Path(path))
    made = CompiledProgram(str(path), text, lambda: compile_text(text, str(path), defines, includes, Path(path).parent))
    assert made.compiled  # wrong programs are refused now
    return made
