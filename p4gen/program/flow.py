"""The flow of a program: the steps of its pipelines, as data.

A control of a pipeline (``IncIngress``, ``IncEgress``) applies modules under conditions. A family writes that down as
steps, which cite the paper; ``lines`` renders them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from p4gen.arch import Feature
from p4gen.program.module import snake

_NOTES = 70
"""The column of notes."""
_WIDE = 110
"""Columns that a condition and its only step may take on one line."""


@dataclass(frozen=True)
class Apply:
    """A step of a flow: ``module.apply(arguments);``."""

    module: str
    """The module's name: CheckOrder."""
    arguments: str
    """P4 expressions, as the module's control takes them."""
    note: str = ""
    """The lines of the paper that this implements, or the reason."""
    guest: bool = False
    """Whether the module is of the family beside the program's own."""

    @property
    def text(self) -> str:
        """The step as a P4 statement."""
        return f"{snake(self.module)}.apply({self.arguments});"


@dataclass(frozen=True)
class Do:
    """A P4 statement of the control itself, and the features of the architecture that it uses."""

    text: str
    note: str = ""
    uses: tuple[Feature, ...] = ()


@dataclass(frozen=True)
class When:
    """Steps under a condition, and what happens otherwise; a ``When`` alone in ``otherwise`` reads as ``else if``."""

    condition: str
    then: tuple[Step, ...]
    otherwise: tuple[Step, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Ordinary:
    """How a family handles packets that are not its own. A family beside it is asked here; ``p4gen.program.beside``
    puts its steps in this place, and its steps contain the place of these ones."""

    steps: tuple[Step, ...] = ()


Step = Apply | Do | When | Ordinary


@dataclass(frozen=True)
class Flow:
    """The flow of one control."""

    steps: tuple[Step, ...]
    last: tuple[str, ...] = ()
    """Modules whose controls stand behind all others: those that only handle packets of others."""

    @property
    def applied(self) -> tuple[Apply, ...]:
        """The first step that applies each module, in the order in which a packet may meet them, but for ``last``."""
        found: dict[str, Apply] = {}
        for step in walk(self.steps):
            if isinstance(step, Apply):
                found.setdefault(step.module, step)
        return tuple(sorted(found.values(), key=lambda step: step.module in self.last))

    def applies(self, module: str) -> bool:
        """Whether it applies the module of that name."""
        return any(isinstance(step, Apply) and step.module == module for step in walk(self.steps))

    def with_after(self, module: str, step: Step) -> Flow:
        """This flow with one step more, after each place where a module is applied."""
        return replace(self, steps=_with_after(self.steps, module, step))

    def ordinary(self) -> tuple[Ordinary, ...]:
        """The places where it handles packets that are not its family's."""
        return tuple(step for step in walk(self.steps) if isinstance(step, Ordinary))

    def settled(self, put: Callable[[Ordinary], tuple[Step, ...]] = lambda place: place.steps) -> Flow:
        """This flow with steps in place of each ``Ordinary``: by default its own."""
        routing = Flow(tuple(step for place in self.ordinary() for step in place.steps))
        return Flow(_settled(self.steps, put), tuple(step.module for step in routing.applied))

    def lines(self, indent: int = 8) -> Iterator[str]:
        """The P4 text of its steps, indented by this number of columns."""
        for step in self.steps:
            yield from _lines(step, " " * indent)


def when(condition: str, *then: Step, note: str = "", otherwise: tuple[Step, ...] = ()) -> When:
    """A ``When`` with its steps as arguments."""
    return When(condition, then, otherwise, note)


def _with_after(steps: tuple[Step, ...], module: str, added: Step) -> tuple[Step, ...]:
    made: list[Step] = []
    for step in steps:
        if isinstance(step, Ordinary):
            made.append(Ordinary(_with_after(step.steps, module, added)))
            continue
        if isinstance(step, When):
            inner = _with_after(step.then, module, added), _with_after(step.otherwise, module, added)
            made.append(replace(step, then=inner[0], otherwise=inner[1]))
            continue
        made.append(step)
        if isinstance(step, Apply) and step.module == module:
            made.append(added)
    return tuple(made)


def _settled(steps: tuple[Step, ...], put: Callable[[Ordinary], tuple[Step, ...]]) -> tuple[Step, ...]:
    made: list[Step] = []
    for step in steps:
        match step:
            case Ordinary():
                made += put(step)
            case When():
                made.append(replace(step, then=_settled(step.then, put), otherwise=_settled(step.otherwise, put)))
            case _:
                made.append(step)
    return tuple(made)


def walk(steps: tuple[Step, ...]) -> Iterator[Step]:
    """All steps, those under conditions after the condition."""
    for step in steps:
        yield step
        match step:
            case When():
                yield from walk(step.then)
                yield from walk(step.otherwise)
            case Ordinary():
                yield from walk(step.steps)
            case _:
                pass


def _lines(step: Step, indent: str) -> Iterator[str]:
    match step:
        case When():
            yield from _conditional(step, indent)
        case Ordinary():
            for inner in step.steps:
                yield from _lines(inner, indent)
        case _:
            yield _noted(indent + step.text, step.note)


def _conditional(step: When, indent: str) -> Iterator[str]:
    only = step.then[0]
    if len(step.then) == 1 and not step.otherwise and not isinstance(only, When | Ordinary) and not only.note:
        line = f"{indent}if ({step.condition}) {{ {only.text} }}"
        if len(line) <= _WIDE:
            yield _noted(line, step.note)
            return
    begin = f"{indent}if ({step.condition}) {{"
    while True:
        yield _noted(begin, step.note)
        for inner in step.then:
            yield from _lines(inner, indent + "    ")
        match step.otherwise:
            case (When() as following,):
                step, begin = following, f"{indent}}} else if ({following.condition}) {{"
            case ():
                break
            case _:
                yield f"{indent}}} else {{"
                for inner in step.otherwise:
                    yield from _lines(inner, indent + "    ")
                break
    yield f"{indent}}}"


def _noted(line: str, note: str) -> str:
    return f"{line.ljust(_NOTES - 2)}  // {note}" if note else line
