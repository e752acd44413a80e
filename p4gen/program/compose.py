"""How a family's modules make a program, and the checks of a composition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic

from p4gen.arch import Architecture, Feature
from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.layout import Header, Word
from p4gen.program.beside import Beside, as_guest, check_headers, joined, put_beside
from p4gen.program.common import Ipv4Checksum
from p4gen.program.flow import Apply, Do, Flow, walk
from p4gen.program.module import Drop, Gress, Metadata, Module
from p4gen.resources import resource
from p4gen.vocabulary import ProgramSpec


@dataclass(frozen=True)
class Flows:
    """The flows of a program's two pipelines."""

    ingress: Flow
    egress: Flow


@dataclass(frozen=True)
class ProgramParts(Facet, Generic[OwnSpec]):
    """The parts of a family's programs."""

    module: ClassVar[str] = "program"

    headers: Callable[[OwnSpec], tuple[Header, ...]]
    """Headers that the parser knows, outermost first. ``p4gen.rocev2.layouts`` has those of RoCEv2."""
    modules: Callable[[OwnSpec], tuple[Module, ...]]
    """The modules of a program, in the order in which a packet meets them."""
    flows: Callable[[OwnSpec], Flows]
    """The flows of its pipelines."""
    templates: Callable[[Composition], tuple[str, ...]]
    """The templates of a program, in their order in its text."""
    names: Callable[[Composition], dict[str, Any]]
    """What its templates may refer to, beside what every family's templates may (``p4gen.program.text``)."""
    ticks: Callable[[OwnSpec], dict[str, Any] | None] = lambda _: None
    """The manifest's entry about the ticks that a program needs."""
    figures: Callable[[Composition], dict[str, Any]] = lambda _: {}
    """Entries of the manifest that only this family's programs have."""
    report: Callable[[Composition], str | None] = lambda _: None
    """A line about a program, for the report of its build."""
    reuse: Callable[[OwnSpec, OwnSpec], tuple[str, float] | None] = lambda _before, _after: None
    """The paper's statement on how much its second program reuses of its first, and the share, if it makes one."""

    def with_module(self, step: Apply, *, after: str) -> ProgramParts[OwnSpec]:
        """The parts of programs with an additional module, which is applied after each place where ``after`` is.

        For families that add to another one's programs. ``compose`` raises ``InputError`` for a program without
        ``after``.
        """

        def modules(spec: OwnSpec) -> tuple[Module, ...]:
            found = self.modules(spec)
            at = next((i for i, module in enumerate(found, start=1) if module.name == after), None)
            if at is None:
                raise InputError(f"{spec.program}: there is no {after}, which {step.module.name} is to come after")
            return (*found[:at], step.module, *found[at:])

        def flows(spec: OwnSpec) -> Flows:
            found = self.flows(spec)
            try:
                if step.module.gress == "ingress":
                    return replace(found, ingress=found.ingress.with_after(after, step))
                return replace(found, egress=found.egress.with_after(after, step))
            except ValueError as error:
                raise InputError(f"{spec.program}: {step.module.gress}: {error}") from None

        return replace(self, modules=modules, flows=flows)


@dataclass(frozen=True)
class DropReason:
    """A counted drop: ``index`` is its place in the program's drop counters (0 is unused)."""

    index: int
    module: Module
    drop: Drop

    @property
    def symbol(self) -> str:
        """The reason's name in the program's ``drop_t``."""
        return f"{self.module.name}_{self.drop.reason}"


@dataclass(frozen=True)
class Part:
    """A struct in metadata_t: what one module, or modules that work as one, tell the others about a packet."""

    name: str
    modules: tuple[Module, ...]
    fields: tuple[Metadata, ...]

    @property
    def type(self) -> str:
        """The struct's name in the program."""
        return f"{self.name}_info_t"

    @property
    def guest(self) -> str:
        """The start of its fields' names in ``Composition.fields``."""
        family = self.modules[0].guest
        return f"{family}." if family else ""

    @property
    def purpose(self) -> str:
        """A line that says whose it is."""
        names = " and ".join(module.name for module in self.modules)
        return f"What {names} {'tells' if len(self.modules) == 1 else 'tell'} later modules."


@dataclass(frozen=True)
class Composition:
    """The modules of one program, in order."""

    spec: ProgramSpec
    parts: ProgramParts[Any]
    modules: tuple[Module, ...]
    flows: Flows
    guest: Guest | None = None
    """The family beside the program's own, if there is one."""

    def has(self, name: str) -> bool:
        """Whether it contains a module of that name."""
        return any(module.name == name for module in self.modules)

    def of(self, gress: Gress) -> tuple[Module, ...]:
        """The modules in ingress, or in egress."""
        return tuple(module for module in self.modules if module.gress == gress)

    def within(self, control: str) -> tuple[Module, ...]:
        """The module of that name, and the modules whose controls its own applies."""
        return tuple(module for module in self.modules if control in (module.name, module.within))

    @cached_property
    def metadata(self) -> tuple[Part, ...]:
        """The parts of metadata_t, in the order of the modules that provide them.

        Raises ``InputError`` if two families have parts of the same name.
        """
        found: dict[str, Part] = {}
        for module in self.modules:
            fields = tuple(field for field in module.provides if field.wanted(self.spec))
            if fields:
                before = found.get(module.part, Part(module.part, (), ()))
                if before.modules and before.modules[0].guest != module.guest:
                    raise InputError(
                        f"{self.spec.program}: both families have a part of metadata_t called {module.part}"
                    )
                found[module.part] = Part(module.part, (*before.modules, module), before.fields + fields)
        return tuple(found.values())

    @cached_property
    def fields(self) -> dict[str, str]:
        """The fields of metadata_t by name, with their parts: ``psn`` is in ``order.psn``. The names of fields of a
        family beside the program's own begin with its name: ``themis.psn``.

        Raises ``InputError`` if two modules provide a field of the same name.
        """
        found: dict[str, str] = {}
        for part in self.metadata:
            for field in part.fields:
                path, name = f"{part.name}.{field.name}", f"{part.guest}{field.name}"
                if name in found:
                    both = f"{found[name]} and {path}"
                    raise InputError(f"{self.spec.program}: two fields of metadata_t are called {name}: {both}")
                found[name] = path
        return found

    @cached_property
    def drops(self) -> tuple[DropReason, ...]:
        """All drop reasons, numbered from 1."""
        pairs = [(module, drop) for module in self.modules for drop in module.drops if drop.wanted(self.spec)]
        return tuple(DropReason(i, module, drop) for i, (module, drop) in enumerate(pairs, start=1))

    @cached_property
    def headers(self) -> dict[str, Header]:
        """The headers that the parser knows, outermost first, by their names in ``headers_t``."""
        return {header.name: header for header in self.parts.headers(self.spec)}

    @cached_property
    def words(self) -> dict[str, Word]:
        """The layouts of words of state, by the last part of their registers' names.

        Raises ``InputError`` if two registers of one name have different layouts.
        """
        found: dict[str, Word] = {}
        for register in (register for module in self.modules for register in module.keeps):
            word = register.word_of(self.spec)
            if word is not None and found.setdefault(register.short, word) != word:
                raise InputError(f"{self.spec.program}: registers called {register.short} have different words")
        return found

    @cached_property
    def uses(self) -> frozenset[Feature]:
        """The features of architectures that the program uses."""
        return frozenset(feature for _, features in _users(self.spec, self.modules, self.flows) for feature in features)

    @property
    def arch(self) -> Architecture:
        """The architecture of the program."""
        return self.spec.architecture

    @cached_property
    def names(self) -> dict[str, Any]:
        """What templates may refer to by the family's decision. Common templates may refer to names of a family beside
        it, too."""
        names = self.parts.names(self)
        if self.guest is None:
            return names
        others = self.guest.alone.names
        both = names.get("ipv4_checksum"), others.get("ipv4_checksum")
        if isinstance(both[0], Ipv4Checksum) and isinstance(both[1], Ipv4Checksum):
            names = {**names, "ipv4_checksum": both[0].joined(both[1])}
        return others | names

    @cached_property
    def templates(self) -> tuple[str, ...]:
        """The templates of the program, in their order in its text; the first is the preamble."""
        first, *rest = self.parts.templates(self)
        found = (first, *(self.guest.facet.preamble if self.guest is not None else ()), *rest)
        return tuple(map(self.form, found))

    def form(self, template: str) -> str:
        """The form of a family's or common template for the architecture, such as ``epic/tna/parser.p4.j2``; the
        template itself if it has none."""
        place, _, name = template.partition("/")
        folder = dict(self.template_folders).get(place)
        if folder is not None:
            for arch, _ in self.arch.template_folders:
                if (folder / arch / name).is_file():
                    return f"{place}/{arch}/{name}"
        return template

    @property
    def template_folders(self) -> tuple[tuple[str, Path], ...]:
        """The folders of its families' templates, and of the common ones; the first part of templates' names."""
        specs = (self.spec, *((self.spec.beside,) if self.spec.beside is not None else ()))
        own = (folder for spec in specs for folder in family_of(spec).template_folders)
        return (*own, ("shared", resource("templates") / "shared"))

    @property
    def figures(self) -> dict[str, Any]:
        """Entries of the manifest that only programs of these families have."""
        return self.parts.figures(self) | (self.guest.alone.figures if self.guest is not None else {})

    @property
    def report(self) -> str | None:
        """Lines about the program, for the report of its build."""
        found = (self.parts.report(self), self.guest.alone.report if self.guest is not None else None)
        return "\n".join(line for line in found if line is not None) or None

    @property
    def experiment(self) -> bool:
        """Whether the program is built even if the real compiler does not accept it: its figures say ``experiment``."""
        return "experiment" in self.figures

    @property
    def state_bits(self) -> int:
        """All registers together, in bits."""
        return sum(module.state_bits(self.spec) for module in self.modules)


@dataclass(frozen=True)
class Guest:
    """The family beside a program's own: its facet, and the program that it would have alone."""

    facet: Beside[Any]
    alone: Composition


def compose(spec: ProgramSpec) -> Composition:
    """The modules that make ``spec``'s program, each with what it needs provided before it.

    Raises ``InputError`` if a module's needs are not met, the flows do not apply the modules that there are, the
    architecture does not have a feature that is used, or the family beside it cannot be there.
    """
    parts = family_of(spec).facet(ProgramParts)
    modules = tuple(module for module in parts.modules(spec) if module.wanted(spec))
    guest = _guest(spec)
    try:
        flows = parts.flows(spec)
    except InputError:
        # Modules say more than a statement that the architecture does not have.
        _check_features(spec, modules, Flows(Flow(()), Flow(())))
        raise
    if guest is None:
        flows = Flows(flows.ingress.settled(), flows.egress.settled())
    else:
        routing = tuple(module for place in flows.ingress.ordinary() for module in Flow(place.steps).modules)
        flows = Flows(*put_beside(guest.facet, spec, flows.ingress, flows.egress))
        others = (as_guest(module, guest.facet, guest.alone.spec.family) for module in guest.alone.modules)
        modules = joined(modules, tuple(others), routing)
    _check_flows(spec, modules, flows)
    _check_features(spec, modules, flows)
    composition = Composition(spec, parts, modules, flows, guest)
    if guest is not None:
        check_headers(spec, composition.headers.values(), guest.alone.headers.values())
    known = {f"hdr.{name}" for name in composition.headers}
    known.update(_provided(composition, flows.ingress, known))
    _provided(composition, flows.egress, known)
    return composition


def _guest(spec: ProgramSpec) -> Guest | None:
    if spec.beside is None:
        return None
    family = family_of(spec.beside)
    if not family.answers(Beside):
        raise InputError(f"{spec.program}: programs of the family {family.name} cannot be beside those of another one")
    facet = family.facet(Beside)
    problems = [f"{spec.program}: {family.name}: {problem}" for problem in facet.problems(spec.beside)]
    if problems:
        raise InputError(*problems)
    return Guest(facet, compose(spec.beside))


def _check_flows(spec: ProgramSpec, modules: tuple[Module, ...], flows: Flows) -> None:
    for gress, flow in (("ingress", flows.ingress), ("egress", flows.egress)):
        there = {module.name for module in modules if module.gress == gress and not module.within}
        applied = {module.name for module in flow.modules}
        for name in sorted(there ^ applied):
            what = "is never applied" if name in there else "is applied, but is not one of its modules"
            raise InputError(f"{spec.program}: in {gress}, {name} {what}")


def _check_features(spec: ProgramSpec, modules: tuple[Module, ...], flows: Flows) -> None:
    arch = spec.architecture
    lacking: dict[Feature, list[str]] = {}
    for user, features in _users(spec, modules, flows):
        for feature in features:
            if feature not in arch.features and user not in lacking.setdefault(feature, []):
                lacking[feature].append(user)
    if lacking:
        raise InputError(
            *(
                f"{spec.program}: {' and '.join(users)} {'needs' if len(users) == 1 else 'need'} {feature}, "
                f"which the architecture {arch.name} does not have"
                for feature, users in lacking.items()
            )
        )


def _users(spec: ProgramSpec, modules: tuple[Module, ...], flows: Flows) -> Iterator[tuple[str, tuple[Feature, ...]]]:
    """Modules and flows, and the features of architectures that they use."""
    for module in modules:
        yield module.name, module.used(spec)
    for name, flow in (("the flow of ingress", flows.ingress), ("the flow of egress", flows.egress)):
        for step in walk(flow.steps):
            if isinstance(step, Do) and step.uses:
                yield name, step.uses


def _provided(composition: Composition, flow: Flow, known: set[str]) -> set[str]:
    """What there is after a flow; ``InputError`` if a module needs what no earlier step can provide."""
    spec, there, known = composition.spec, composition.fields, set(known)
    named = {path: name for name, path in there.items()}
    for step in walk(flow.steps):
        if isinstance(step, Do) and step.assigned:
            known.add(named.get(step.assigned, step.assigned))
        if isinstance(step, Apply):
            applied = composition.within(step.module.name)
            provides = {
                named[f"{module.part}.{field.name}"]
                for module in applied
                for field in module.provides
                if field.wanted(spec)
            }
            for module in applied:
                needs = (*module.needs, *(need for need in module.may_need if need in there))
                missing = [need for need in needs if need not in known and need not in provides]
                if missing:
                    raise InputError(
                        f"{spec.program}: {module.name} needs {', '.join(missing)}, which no earlier module provides"
                    )
            known |= provides
    return known
