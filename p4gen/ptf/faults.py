"""Lists of faults in TOML files, ``ptf_tests/<family>/faults*.toml``: a fault is one record.

``[kinds.NAME]`` describes the programs of one kind, such as a mode's: small programs with everything that faults can
break. A record ``[[fault]]`` says what is replaced with what, in which module, and in which programs::

    [[fault]]
    name = "icrc-stale"
    module = "SetIcrc"
    find = 'hdr.icrc.crc = icrc;'
    replace = ''
    excuse = "hosts of a search check no ICRC"

What is wrong in a file is an ``InputError`` with its line.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn

from pydantic import ConfigDict, TypeAdapter, ValidationError

from p4gen.errors import Diagnostic, InputError, Pos
from p4gen.families.load import reason
from p4gen.ptf.mutations import Mutation, Seeding
from p4gen.resources import resource

SHARED_FAULTS: Final = tuple(sorted((resource("ptf_tests") / "shared").glob("faults_*.toml")))
"""Faults of floating-point arithmetic, and of IPv6, for programs of all families that have them."""
PLAIN = "plain"
"""The program of a fault that names none."""
_FORBID = ConfigDict(extra="forbid")
Spec = dict[str, str | int | bool]
ByKind = str | dict[str, str]
"""A text, or texts by patterns of kinds."""


@dataclass(frozen=True)
class _Program:
    """A small program. ``spec`` are the fields in which it differs from the others of its kind."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    spec: Spec = field(default_factory=dict)
    scenarios: tuple[str, ...] = ()
    """Modules of scenarios that should catch its faults; all that there are for it, if none is named."""
    excuse: str = ""
    """Why no search finds any of its faults."""


@dataclass(frozen=True)
class _Module:
    """What a file says of a module of programs."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    first: tuple[str, ...] = ()
    """Modules of scenarios that are tried first on its faults."""
    excuse: str = ""
    """Why no search finds any of its faults."""


@dataclass(frozen=True)
class _Kind:
    """What a file says of a kind of programs."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    spec: Spec = field(default_factory=dict)
    """Fields that all its programs have."""
    programs: dict[str, _Program] = field(default_factory=dict)
    modules: dict[str, _Module] = field(default_factory=dict)
    like: str = ""
    """Another kind, all of whose tables it has, too."""
    takes: tuple[str, ...] = ()
    """Kinds whose faults it has, too."""
    form_of: str = ""
    """Another kind, each of whose faults has a form in programs of this kind, or a reason why it has none."""
    left_out: dict[str, str] = field(default_factory=dict)
    """Programs and modules of that kind whose faults have no form, and why."""


@dataclass(frozen=True)
class _Fault:
    """A fault, as a file says it."""

    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    name: str
    module: str
    find: str
    replace: str
    program: str = PLAIN
    kinds: tuple[str, ...] = ()
    """Patterns of the kinds of programs that it is in; those that its file describes, if none is named."""
    excuse: ByKind = ""
    """Why no search of sound hosts finds it."""
    scope: ByKind = ""
    """The scope of a search that shows it after few states."""
    left_out: dict[str, str] = field(default_factory=dict)
    """By patterns of kinds, why it has no form there."""


@dataclass(frozen=True)
class _Placed(_Fault):
    """The same with its file and line."""

    place: str = ""


@dataclass(frozen=True)
class _File:
    __pydantic_config__: ClassVar[ConfigDict] = _FORBID
    reasons: dict[str, str] = field(default_factory=dict)
    """Reasons by names that stand for them in the files of a family."""
    kinds: dict[str, _Kind] = field(default_factory=dict)
    fault: tuple[_Fault, ...] = ()


@dataclass(frozen=True)
class _List:
    """The files of a family, together."""

    reasons: Mapping[str, str]
    kinds: Mapping[str, _Kind]
    faults: tuple[_Placed, ...]


def seeding(
    files: Sequence[Path],
    kind: str,
    *,
    suite: Sequence[Path],
    spec: Mapping[str, object] | None = None,
    lacks: Mapping[str, str] | None = None,
) -> Seeding:
    """The faults that files list for programs of a kind.

    ``suite`` are the folders with the scenarios that files name. ``spec`` are fields that all programs have. ``lacks``
    are what programs of the kind lack, by name: reasons why faults have no form. Raises ``InputError`` for what is
    wrong in a file.
    """
    found = _read(tuple(files))
    if kind not in found.kinds:
        raise InputError(f"{files[0]}: there is no kind {kind} of programs; there are {', '.join(found.kinds)}")
    own, reader = _whole(found, kind), _Reader(found.reasons, lacks or {}, suite)
    for name, module in own.modules.items():
        reader.check_scenarios(module.first, f"{files[0].parent}: kind {kind}, module {name}")
    for name, program in own.programs.items():
        reader.check_scenarios(program.scenarios, f"{files[0].parent}: kind {kind}, program {name}")
    programs = own.programs or {PLAIN: _Program()}
    mutations = tuple(reader.mutation(each, kind, own, programs) for each in found.faults if _is_in(each, kind, own))
    _check_names(mutations)
    return Seeding(
        mutations,
        {name: {**own.spec, **program.spec, **(spec or {})} for name, program in programs.items()},
        {name: program.scenarios for name, program in programs.items() if program.scenarios},
        {name: module.first for name, module in own.modules.items() if module.first},
        dict(_left_out(found, kind, own, reader, {each.name for each in mutations})) if own.form_of else {},
    )


@dataclass(frozen=True)
class _Reader:
    reasons: Mapping[str, str]
    lacks: Mapping[str, str]
    suite: Sequence[Path]

    def mutation(self, fault: _Placed, kind: str, own: _Kind, programs: Mapping[str, _Program]) -> Mutation:
        """A fault in programs of a kind."""
        if fault.program not in programs:
            _refuse(fault, f"there is no program {fault.program} of kind {kind}; there are {', '.join(programs)}")
        module = own.modules.get(fault.module, _Module())
        excuse = _of_kind(fault.excuse, kind) or programs[fault.program].excuse or module.excuse
        return Mutation(
            fault.name,
            fault.module,
            fault.find,
            fault.replace,
            fault.program,
            _reason(excuse, self.reasons, fault),
            _of_kind(fault.scope, kind),
            fault.place,
        )

    def check_scenarios(self, names: Sequence[str], where: str) -> None:
        """Raises ``InputError`` for modules of scenarios that no folder has."""
        for name in names:
            if not any((folder / f"{name}.py").is_file() for folder in self.suite):
                raise InputError(Diagnostic(where, f"there are no scenarios {name}"))


def _reason(text: str, known: Mapping[str, str], fault: _Placed) -> str:
    """A reason, which a text says or names."""
    if text and " " not in text and text not in known:
        _refuse(fault, f"there is no reason {text}; there are {', '.join(known)}")
    return known.get(text, text)


def _is_in(fault: _Placed, kind: str, own: _Kind) -> bool:
    return any(fnmatchcase(each, pattern) for each in (kind, *own.takes) for pattern in fault.kinds)


def _of_kind(value: ByKind, kind: str) -> str:
    if isinstance(value, str):
        return value
    return next((text for pattern, text in value.items() if fnmatchcase(kind, pattern)), "")


def _whole(found: _List, kind: str) -> _Kind:
    """A kind, with what it has from the one that it is like."""
    own = found.kinds[kind]
    if not own.like:
        return own
    other = found.kinds[own.like]
    return _Kind(
        {**other.spec, **own.spec},
        {**other.programs, **own.programs},
        {**other.modules, **own.modules},
        "",
        own.takes or other.takes,
        own.form_of or other.form_of,
        {**other.left_out, **own.left_out},
    )


def _left_out(found: _List, kind: str, own: _Kind, reader: _Reader, seeded: set[str]) -> Iterator[tuple[str, str]]:
    """The faults of the other kind that have no form in this one, and why."""
    base = _whole(found, own.form_of)
    for fault in found.faults:
        if fault.name in seeded or not _is_in(fault, own.form_of, base):
            continue
        keys = fault.program, fault.module
        why = _of_kind(fault.left_out, kind) or next((own.left_out[key] for key in keys if key in own.left_out), "")
        if not why:
            _refuse(fault, f"has neither a form in programs of kind {kind} nor a reason why it has none")
        yield fault.name, _reason(why, reader.lacks, fault)


def _check_names(mutations: Sequence[Mutation]) -> None:
    seen: dict[str, Mutation] = {}
    for each in mutations:
        if each.name in seen:
            raise InputError(Diagnostic(each.place, f"fault {each.name}: is also at {seen[each.name].place}"))
        seen[each.name] = each


def _refuse(fault: _Placed, why: str) -> NoReturn:
    raise InputError(Diagnostic(fault.place, f"fault {fault.name}: {why}"))


@lru_cache(maxsize=64)
def _read(files: tuple[Path, ...]) -> _List:
    reasons: dict[str, str] = {}
    kinds: dict[str, _Kind] = {}
    faults: list[_Placed] = []
    for file in files:
        read, lines = _file(file)
        reasons |= read.reasons
        kinds |= read.kinds
        for fault, line in zip(read.fault, lines, strict=True):
            given = vars(fault) | {"kinds": fault.kinds or tuple(read.kinds)}
            faults.append(_Placed(**given, place=f"{file}:{line}"))
    for name, kind in kinds.items():
        for other in filter(None, (kind.like, kind.form_of, *kind.takes)):
            if other not in kinds:
                raise InputError(Diagnostic(str(files[0].parent), f"kind {name}: there is no kind {other}"))
        if kind.like and kinds[kind.like].like:
            raise InputError(Diagnostic(str(files[0].parent), f"kind {name}: {kind.like} is itself like another kind"))
    for fault in faults:
        if not fault.kinds:
            _refuse(fault, "names no kinds, and its file describes none")
        for pattern in (*fault.kinds, *fault.left_out):
            if not any(fnmatchcase(kind, pattern) for kind in kinds):
                _refuse(fault, f"there is no kind {pattern} of programs; there are {', '.join(kinds)}")
    return _List(reasons, kinds, tuple(faults))


def _file(file: Path) -> tuple[_File, list[int]]:
    """A file, and the lines in which its records begin."""
    try:
        text = file.read_text(encoding="utf-8")
        given = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: {error}") from None
    lines = [number for number, line in enumerate(text.splitlines(), 1) if re.match(r"\[\[\s*fault\s*\]\]", line)]
    try:
        return TypeAdapter(_File).validate_python(given), lines
    except ValidationError as error:
        raise InputError(*(_diagnostic(file, given, lines, each) for each in error.errors())) from None


def _diagnostic(file: Path, given: dict[str, Any], lines: Sequence[int], error: Any) -> Diagnostic:
    """What is wrong with a value: in which record, under which key."""
    place = [str(part) for part in error["loc"]]
    unknown = error["type"] == "unexpected_keyword_argument"
    why = f"there is no key {place[-1]}" if unknown else f"{place[-1]}: {reason(error)}"
    if place[0] != "fault" or len(place) < 2:
        return Diagnostic(str(file), f"{'.'.join(place[:-1])}: {why}" if place[:-1] else why)
    number = int(place[1])
    name = given["fault"][number].get("name", "without a name")
    return Diagnostic(Pos(str(file), lines[number], 1), f"fault {name}: {why}")
