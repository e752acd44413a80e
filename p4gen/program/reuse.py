"""What one program reuses of another: the reuse report of ``p4gen diff`` (EPIC 7.2, Evolvability).

Programs are compared part by part: the IncEngine's modules, and what stands around them. A part is reused if its text
is the same but for ``#line`` directives. The paper counts what share of Mode II's code is found again in Mode III.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from p4gen.families import family_of
from p4gen.program.compose import Composition, ProgramParts, compose
from p4gen.vocabulary import ProgramSpec

_PIPELINES = "IncIngress, IncEgress"
_AROUND = {
    "preamble": "constants and types",
    "headers": "headers",
    "metadata": "metadata",
    "parser": "PacketParser",
    "checksum": "IPv4 checksum",
    "invariant_crc": "InvariantCrc",
    "pipelines": _PIPELINES,
    "deparser": "PacketDeparser",
}
"""What parts around the modules are called, by template."""


class Fate(StrEnum):
    """The fate of a part between one program and the other."""

    REUSED = "reused"
    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True)
class Part:
    """A module of a program, or a part of what is around them; ``lines`` are its P4, without directives."""

    name: str
    module: bool
    template: str
    template_lines: int
    """Lines of the template that it is rendered from, and of those that it includes."""
    lines: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True)
class Comparison:
    """A part in the program before and in the one after; None where it is not in one of them."""

    before: Part | None
    after: Part | None

    @property
    def part(self) -> Part:
        """The one after, or, if there is none, the one before."""
        found = self.after or self.before
        assert found is not None
        return found

    @property
    def fate(self) -> Fate:
        """Whether the module is added, removed, changed or kept."""
        if self.before is None:
            return Fate.ADDED
        if self.after is None:
            return Fate.REMOVED
        return Fate.REUSED if self.before.lines == self.after.lines else Fate.CHANGED

    @property
    def kept(self) -> int:
        """How many lines stand in both, in the same order."""
        if self.before is None or self.after is None:
            return 0
        matcher = difflib.SequenceMatcher(None, self.before.lines, self.after.lines, autojunk=False)
        return sum(block.size for block in matcher.get_matching_blocks())

    def diff(self) -> Iterator[str]:
        """A unified diff of its text."""
        sides = [(part.template, part.lines) if part else ("/dev/null", ()) for part in (self.before, self.after)]
        (old, before), (new, after) = sides
        yield from difflib.unified_diff(before, after, f"a/{old}", f"b/{new}", lineterm="")


@dataclass(frozen=True)
class Count:
    """The number of equal items, of ``of_before`` in the program before and ``of_after`` in the one after."""

    same: int
    of_before: int
    of_after: int

    @property
    def share(self) -> float:
        """The share of the program before that is found again, as the paper counts it."""
        return self.same / self.of_before if self.of_before else 0.0

    @property
    def share_after(self) -> float:
        """The share of the program after that comes from the one before."""
        return self.same / self.of_after if self.of_after else 0.0


@dataclass(frozen=True)
class Reuse:
    """What the program of ``after`` takes over from that of ``before``, part by part in the order of ``after``."""

    before: ProgramSpec
    after: ProgramSpec
    parts: tuple[Comparison, ...]

    @property
    def modules(self) -> Count:
        """IncEngine modules with the same text."""
        return _count([c for c in self.parts if c.part.module], lambda _: 1)

    @property
    def reused_lines(self) -> Count:
        """Lines of P4 in parts with the same text."""
        return _count(self.parts, lambda part: len(part.lines))

    @property
    def kept_lines(self) -> Count:
        """Lines of P4 that stand in both, those in changed parts too."""
        found = self.reused_lines
        return Count(sum(c.kept for c in self.parts), found.of_before, found.of_after)

    @property
    def same_templates(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of modules, and of other parts, that have the same template in both programs."""
        same = [c.part for c in self.parts if c.before and c.after and c.before.template == c.after.template]
        return tuple(p.name for p in same if p.module), tuple(p.name for p in same if not p.module)

    @property
    def template_lines(self) -> Count:
        """Lines of templates that both programs are rendered from."""
        used = [{(p.template, p.template_lines) for p in side} for side in self._sides()]
        total = [sum(lines for _, lines in templates) for templates in (used[0] & used[1], *used)]
        return Count(*total)

    @property
    def paper(self) -> tuple[str, float] | None:
        """What the family's paper says of the two, and the share; None where it says nothing."""
        if self.before.family != self.after.family:
            return None
        return family_of(self.after).facet(ProgramParts).reuse(self.before, self.after)

    def _sides(self) -> tuple[list[Part], list[Part]]:
        return [c.before for c in self.parts if c.before], [c.after for c in self.parts if c.after]


def _count(parts: Sequence[Comparison], size: Callable[[Part], int]) -> Count:
    before = sum(size(c.before) for c in parts if c.before)
    after = sum(size(c.after) for c in parts if c.after)
    return Count(sum(size(c.part) for c in parts if c.fate is Fate.REUSED), before, after)


def compare(before: ProgramSpec, after: ProgramSpec) -> Reuse:
    """Compare the programs of two specs."""
    old = {part.name: part for part in _parts(compose(before))}
    new = {part.name: part for part in _parts(compose(after))}
    found = [Comparison(old.get(name), part) for name, part in new.items()]
    found += [Comparison(part, None) for name, part in old.items() if name not in new]
    return Reuse(before, after, tuple(found))


def _parts(composition: Composition) -> Iterator[Part]:
    names = {module.template: module.name for module in composition.modules}
    for template, lines in composition.rendered(line_directives=True):
        found = [*lines]
        text = [line for line, _ in found]
        while text and not text[-1]:
            text.pop()
        stem = template.rpartition("/")[2].partition(".")[0]
        name = names.get(template) or _AROUND.get(stem, stem) + _owner(composition, template)
        sources = dict.fromkeys((template, *(origin[0] for _, origin in found)))
        template_lines = sum(len(composition.templates.source(each).splitlines()) for each in sources)
        yield Part(name, template in names, template, template_lines, tuple(text))


def _owner(composition: Composition, template: str) -> str:
    """Whose part it is, if it is that of the family beside the program's own."""
    guest = composition.guest
    return f" of {guest.alone.spec.family}" if guest is not None and template in guest.facet.preamble else ""
