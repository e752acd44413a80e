"""How a family's modules make a program: the flows say which there are, the modules' templates what they are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Final, Generic

from p4gen.arch import Architecture, Feature
from p4gen.errors import InputError
from p4gen.families import Facet, OwnSpec, family_of
from p4gen.layout import Datagram, Datagrams, Header, Word
from p4gen.layout.datagram import of_headers
from p4gen.program.beside import Beside, check_headers
from p4gen.program.common import BODIES, Ipv4Checksum
from p4gen.program.declared import declared
from p4gen.program.flow import Added, Applied, Flow, applied, tidy
from p4gen.program.ip import RoceIp
from p4gen.program.module import DropReason, Gress, Module, Part, snake
from p4gen.program.templates import Line, Recorded, Templates, has_text
from p4gen.resources import resource
from p4gen.rocev2 import codes, layouts
from p4gen.vocabulary import ProgramSpec

_PLACE: Final = "\x02\n"
"""Stands in the flow of a family beside another one for what becomes of packets that it leaves."""
_INSTANCE: Final = re.compile(r"\s+([A-Z]\w*)\(\) \w+;")
"""The instance of a control."""


@dataclass(frozen=True)
class ProgramParts(Facet, Generic[OwnSpec]):
    """The parts of a family's programs."""

    module: ClassVar[str] = "program"

    headers: Callable[[OwnSpec], tuple[Header, ...]]
    """Headers that the parser knows, outermost first. ``p4gen.rocev2.layouts`` has those of RoCEv2."""
    flows: Callable[[OwnSpec], tuple[str, str]]
    """The templates of the flows of its pipelines, ingress and egress (``p4gen.program.flow``). Raises ``InputError``
    for a spec that has no program."""
    templates: Callable[[Composition], tuple[str, ...]]
    """The templates in front of its modules, in their order in the text: the preamble first."""
    names: Callable[[Composition], dict[str, Any]]
    """What its templates may refer to, beside what every family's templates may (``Composition.context``)."""
    datagrams: Callable[[OwnSpec], tuple[Datagram, ...]] = lambda _: ()
    """The RoCEv2 datagrams that a program works on, for the templates ``shared/parser``, ``lengths`` and
    ``invariant_crc``."""
    words: Callable[[OwnSpec], Mapping[str, Word]] = lambda _: {}
    """The layouts of words of state, by the last part of their registers' names."""
    folders: Callable[[OwnSpec], tuple[str, ...]] = lambda _: ()
    """Folders in which its modules' templates are looked for before its own folder, such as ``multiwrite/hop``."""
    ticks: Callable[[OwnSpec], dict[str, Any] | None] = lambda _: None
    """The manifest's entry about the ticks that a program needs."""
    figures: Callable[[Composition], dict[str, Any]] = lambda _: {}
    """Entries of the manifest that only this family's programs have."""
    report: Callable[[Composition], str | None] = lambda _: None
    """A line about a program, for the report of its build."""
    reuse: Callable[[OwnSpec, OwnSpec], tuple[str, float] | None] = lambda _before, _after: None
    """The paper's statement on how much its second program reuses of its first, and the share, if it makes one."""

    added: tuple[Added, ...] = ()
    """Modules that a family adds to the flows of the one that it builds on."""

    def with_module(self, module: str, arguments: str, *, after: str) -> ProgramParts[OwnSpec]:
        """The parts of programs with an additional module, which is applied with ``arguments`` after each place where
        the module ``after`` is.

        For families that add to another one's programs. ``compose`` raises ``InputError`` for a program without
        ``after``.
        """
        return replace(self, added=(*self.added, Added(module, arguments, after)))


@dataclass(frozen=True)
class Control:
    """A control of a program with a template of its own: that of a module, or one that modules share."""

    name: str
    template: str
    lines: tuple[Line, ...]
    module: Module | None


@dataclass(frozen=True)
class Composition:
    """A program as its flows, and the templates of the modules that they apply."""

    spec: ProgramSpec
    parts: ProgramParts[Any]
    guest: Guest | None = None
    """The family beside the program's own, if there is one."""

    def has(self, name: str) -> bool:
        """Whether its flows apply a module of that name."""
        return any(flow.applies(name) for flow in self.flows.values())

    @cached_property
    def flows(self) -> dict[Gress, Flow]:
        """What its pipelines do.

        Raises ``InputError`` if a template is missing or wrong, or leaves no packets to the family beside the program's
        own.
        """
        ingress, egress = self.parts.flows(self.spec)
        flows: dict[Gress, Flow] = {"ingress": self._flow("ingress", ingress), "egress": self._flow("egress", egress)}
        for added in self.parts.added:
            if not any(flow.applies(added.after) for flow in flows.values()):
                raise InputError(
                    f"{self.spec.program}: there is no {added.after}, which {added.module} is to come after"
                )
        return flows

    def _flow(self, gress: Gress, template: str) -> Flow:
        arch = Recorded(self.arch)
        context = self.context | {"arch": arch}
        routed: str | None = None
        others = ""

        def ordinary(caller: Callable[[], str] = str) -> str:
            """The statements for packets that are not the family's own; ``caller`` gives its own ones."""
            nonlocal routed, others
            routed = caller()
            if self.guest is None:
                return routed
            guests = self.guest_context | {"arch": arch, "ordinary": lambda caller=str: caller() and _PLACE}
            others = self.templates.render_marked(self._form(self.guest.facet.flows[gress]), context | guests)
            return others.replace(_PLACE, routed) if has_text(others) else ""

        text = self.templates.render_marked(self._form(template), context | {"ordinary": ordinary})
        if self.guest is not None and routed is None:
            missing = f"programs of the family {self.spec.family} leave no packets to a family beside it"
            raise InputError(f"{self.spec.program}: {missing}")
        for added in self.parts.added:
            text = added.to(text)
        last, guests = applied(routed or ""), applied(others)
        names = sorted(applied(text), key=lambda name: name in last)
        return Flow(
            tuple(tidy(line for line in text.split("\n") if has_text(line))),
            tuple(Applied(name, name in guests) for name in names),
            frozenset(arch.used),
        )

    def _form(self, template: str) -> str:
        return self.templates.form(template) or template

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """Its modules, and controls that they share, in the order of the text: as the flows apply modules first, and
        each control behind those that it applies.

        Raises ``InputError`` if a template is missing or wrong, or the architecture does not have a feature that
        modules or flows use.
        """
        return tuple(_Controls(self).found.values())

    @cached_property
    def modules(self) -> tuple[Module, ...]:
        """The modules among ``controls``, in the same order."""
        return tuple(control.module for control in self.controls if control.module is not None)

    def of(self, gress: Gress) -> tuple[Module, ...]:
        """The modules in ingress, or in egress."""
        return tuple(module for module in self.modules if module.gress == gress)

    def within(self, control: str) -> tuple[Module, ...]:
        """The module of that name, and the modules whose controls its own applies."""
        return tuple(module for module in self.modules if control in (module.name, module.within))

    @cached_property
    def metadata(self) -> tuple[Part, ...]:
        """The parts of metadata_t, in the order of the modules that tell them.

        Raises ``InputError`` if two families have parts of the same name, or two modules tell a field of the same name.
        """
        found: dict[str, Part] = {}
        for module in self.modules:
            for field in module.tells:
                before = found.get(field.part, Part(field.part, (), ()))
                if before.modules and before.modules[0].guest != module.guest:
                    raise InputError(
                        f"{self.spec.program}: both families have a part of metadata_t called {field.part}"
                    )
                if any(field.name == other.name for other in before.fields):
                    raise InputError(f"{self.spec.program}: two fields of metadata_t are {field.part}.{field.name}")
                modules = tuple(dict.fromkeys((*before.modules, module)))
                found[field.part] = Part(field.part, modules, (*before.fields, field))
        return tuple(found.values())

    @cached_property
    def drops(self) -> tuple[DropReason, ...]:
        """All drop reasons, numbered from 1."""
        pairs = [(module, drop) for module in self.modules for drop in module.drops]
        return tuple(DropReason(i, module, drop) for i, (module, drop) in enumerate(pairs, start=1))

    @cached_property
    def headers(self) -> dict[str, Header]:
        """The headers that the parser knows, outermost first, by their names in ``headers_t``."""
        found: dict[str, Header] = {}
        for header in self.parts.headers(self.spec):
            if self.spec.ipv4 or header not in (layouts.ARP, layouts.IPV4):
                found[header.name] = header
            if header is layouts.VLAN and self.spec.ipv6:
                found[layouts.INNER_VLAN.name] = layouts.INNER_VLAN
            if header is layouts.IPV4 and self.spec.ipv6:
                found |= {each.name: each for each in (layouts.IPV6, layouts.NDP)}
        return found

    @cached_property
    def datagrams(self) -> Datagrams:
        """The RoCEv2 datagrams that it works on."""
        found = self.parts.datagrams(self.spec)
        return (
            Datagrams(found) if found else of_headers([self.headers[name] for name in BODIES if name in self.headers])
        )

    @cached_property
    def layouts(self) -> dict[str, Word]:
        """The layouts of words of state that its families know, by the last part of registers' names."""
        others = self.guest.alone.layouts if self.guest is not None else {}
        return others | dict(self.parts.words(self.spec))

    @cached_property
    def words(self) -> dict[str, Word]:
        """The layouts of the words of its registers, by the last part of their names."""
        kept = (register for module in self.modules for register in module.keeps)
        return {register.short: register.word for register in kept if register.word is not None}

    @cached_property
    def uses(self) -> frozenset[Feature]:
        """The features of architectures that the program uses."""
        flows = (flow.uses for flow in self.flows.values())
        return frozenset().union(*flows, *(module.uses for module in self.modules))

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
    def context(self) -> dict[str, Any]:
        """What the templates of modules may refer to: what every family's may, and what its own may."""
        return {"spreads": False, "flat": False, "routed_if": "", "cited": {}, "patches": False} | self.names | {
            "spec": self.spec,
            "ip": RoceIp.of(self.spec),
            "beside": False,
            "bodies": [name for name in BODIES if name in self.headers],
            "datagrams": self.datagrams,
            "headers": self.headers,
            "layouts": layouts,
            "codes": codes,
            "words": self.layouts,
        }  # fmt: skip

    @cached_property
    def guest_context(self) -> dict[str, Any]:
        """What the templates of the family beside the program's own find under other names than the others."""
        if self.guest is None:
            return {}
        alone = self.guest.alone
        return alone.names | {"spec": alone.spec, "words": alone.layouts, "beside": True}

    def rendered(self, *, line_directives: bool) -> Iterator[tuple[str, Iterator[Line]]]:
        """The templates of the program in the order of its text, each with its lines."""
        context = self.context | {
            "uses": self.uses,
            "modules": self.modules,
            "ingress": self.of("ingress"),
            "egress": self.of("egress"),
            "metadata": self.metadata,
            "drops": self.drops,
            "words": self.words,
            "flows": self.flows,
            "has": self.has,
            "line_directives": line_directives,
            "arch": self.arch,
        }
        guests = self.guest_context
        behind = (self.arch.template("pipelines"), self.arch.template("deparser"))
        first, *rest = self.parts.templates(self)
        preambles = (first, *(self.guest.facet.preamble if self.guest is not None else ()))
        for template in map(self._form, (*preambles, *rest)):
            own = guests if self.of_guest(template) else {}
            yield template, self.templates.render(template, context | own)
        yield from ((control.template, iter(control.lines)) for control in self.controls)
        yield from ((template, self.templates.render(template, context)) for template in behind)

    @cached_property
    def templates(self) -> Templates:
        """Its families' templates, the common ones, and those of its architecture."""
        own = (folder for spec in self.spec.parts for folder in family_of(spec).template_folders)
        return Templates((*own, ("shared", resource("templates") / "shared")), self.arch.template_folders)

    def template_of(self, control: str, *, guest: bool) -> str | None:
        """The template of a control, of the family beside the program's own if ``guest``, in the form for the
        architecture; None if there is none."""
        others = () if self.guest is None else self.guest.alone.places
        places = (*others, *self.places) if guest else (*self.places, *others)
        forms = (self.templates.form(f"{place}/{snake(control)}.p4.j2") for place in places)
        return next((form for form in forms if form is not None), None)

    @cached_property
    def places(self) -> tuple[str, ...]:
        """The folders that may have the templates of its own family's modules, the first one first."""
        return (*self.parts.folders(self.spec), *(name for name, _ in family_of(self.spec).template_folders), "shared")

    def of_guest(self, template: str) -> bool:
        """Whether a template is one of the family beside the program's own."""
        beside = self.spec.beside
        return beside is not None and template.split("/", maxsplit=1)[0] in dict(family_of(beside).template_folders)

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
        return sum(module.state_bits for module in self.modules)


class _Controls:
    """Renders the controls that the flows of a program apply, and those that these apply in turn."""

    def __init__(self, composition: Composition) -> None:
        self.found: dict[str, Control] = {}
        self._composition = composition
        self._begun: dict[str, str] = {}
        self._users: dict[Feature, dict[str, None]] = {}
        for gress, flow in composition.flows.items():
            for each in flow.applied:
                self._add(each.module, gress, "", guest=each.guest)
            self._note(f"the flow of {gress}", flow.uses)
        self._check_features()

    def _add(self, name: str, gress: Gress, within: str, *, guest: bool) -> None:
        composition = self._composition
        template = composition.template_of(name, guest=guest)
        if template is None:
            places = " or ".join(composition.places)
            raise InputError(f"{composition.spec.program}: there is no template {snake(name)}.p4.j2 in {places}")
        if name in self._begun:
            if template != self._begun[name]:
                raise InputError(f"{composition.spec.program}: two modules are called {name}")
            return
        self._begun[name] = template
        beside = composition.guest if composition.of_guest(template) else None
        arch = Recorded(composition.arch)
        context = composition.context | {"has": composition.has}
        context = context | (composition.guest_context if beside else {}) | {"arch": arch}
        try:
            lines = composition.templates.render(template, context)
            one = beside.alone if beside is not None else composition
            told = declared(lines, one.spec, one.layouts)
        except InputError:
            # Features say more than a statement that the architecture does not have.
            self._note(name, arch.used)
            if arch.used <= composition.arch.features:
                raise
            return
        for text, _ in told.lines:
            inner = _INSTANCE.match(text)
            if inner and composition.template_of(inner[1], guest=guest) is not None:
                self._add(inner[1], gress, name, guest=guest)
        uses = frozenset(told.uses | arch.used)
        self._note(name, uses)
        module = Module(
            name, gress, template, told.paper, told.purpose, within,
            tuple(told.tells), tuple(told.keeps), tuple(told.tables), tuple(told.drops), uses,
            beside.alone.spec.family if beside is not None else "",
        )  # fmt: skip
        self.found[name] = Control(name, template, tuple(told.lines), module if told.purpose else None)

    def _note(self, user: str, uses: Iterable[Feature]) -> None:
        for feature in uses:
            self._users.setdefault(feature, {})[user] = None

    def _check_features(self) -> None:
        spec, arch = self._composition.spec, self._composition.arch
        missing = [
            f"{spec.program}: {' and '.join(users)} {'needs' if len(users) == 1 else 'need'} {feature}, "
            f"which the architecture {arch.name} does not have"
            for feature, users in self._users.items()
            if feature not in arch.features
        ]
        if missing:
            raise InputError(*missing)


@dataclass(frozen=True)
class Guest:
    """The family beside a program's own: its facet, and the program that it would have alone."""

    facet: Beside[Any]
    alone: Composition


def compose(spec: ProgramSpec) -> Composition:
    """The modules that make ``spec``'s program.

    Raises ``InputError`` if a module has no template, a declaration is wrong, the architecture does not have a feature
    that is used, or the family beside it cannot be there.
    """
    guest = _guest(spec)
    composition = Composition(spec, family_of(spec).facet(ProgramParts), guest)
    if guest is not None:
        check_headers(spec, composition.headers.values(), guest.alone.headers.values())
    # What is wrong is found here, not where a part is first asked for.
    assert composition.controls is not None
    assert composition.metadata is not None
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
