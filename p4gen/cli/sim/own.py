"""Runs that a family brings itself: their options, and the run that a command line describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from p4gen.cli.options import kind_of
from p4gen.cli.seeds import drawn
from p4gen.cli.sim.config import chosen_engine, faults_from, timer
from p4gen.cli.values import parsed
from p4gen.cli.verb import GroupedOption
from p4gen.errors import Diagnostic, InputError
from p4gen.families import families, family_of, flag_name
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import shown
from p4gen.net.own import OwnRun, OwnRuns, RunOrder
from p4gen.vocabulary import CollectiveSpec, ProgramSpec, units
from p4gen.vocabulary.topology import load_topology

_OF_GROUPS: Final[Mapping[str, Any]] = {"root": 0, "sync": "subgroups", "concurrent": 1}
"""Options that only collectives of IncTrees have, with their defaults."""
F = TypeVar("F", bound=Callable[..., Any])


def _facets() -> dict[str, OwnRuns]:
    return {name: family.facet(OwnRuns) for name, family in families().items() if family.answers(OwnRuns)}


class OwnOption(GroupedOption):
    """An option of a family's own runs."""

    def __init__(self, *args: Any, family: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.family = family

    def record_for(self, ctx: click.Context, given: Mapping[str, str]) -> tuple[str, str] | None:
        """The option, where the command line names its family or a mode of it."""
        kind = kind_of(given)
        return self.get_help_record(ctx) if kind is None or kind is families()[self.family].spec else None


def own_options(function: F) -> F:
    """A flag for each option of families' own runs."""
    for family, facet in _facets().items():
        for name, option in reversed(list(facet.options.items())):
            function = click.option(
                flag_name(name),
                name,
                default=None,
                metavar="|".join(option.values) or "N",
                help=f"{option.description}  [{option.default}]",
                cls=OwnOption,
                family=family,
                group=f"Runs of {family}'s programs: {', '.join(facet.collectives)}",
            )(function)
    return function


def collective_names() -> tuple[str, ...]:
    """What ranks call in families' own runs, beside collectives of IncTrees."""
    return tuple(dict.fromkeys(name for facet in _facets().values() for name in facet.collectives))


def refuse_own(options: Mapping[str, Any]) -> None:
    """Refuse options of families' own runs. Raises ``InputError``."""
    for family, facet in _facets().items():
        for name in facet.options:
            if options[name] is not None:
                raise InputError(Diagnostic(flag_name(name), f"is for runs of {family}'s programs"))


def own_run(topology_name: str, spec: ProgramSpec, o: Mapping[str, Any]) -> tuple[OwnRun, int] | None:
    """The run that options describe, and its seed; None for programs that take part in collectives of IncTrees.

    Raises ``InputError``.
    """
    family = family_of(spec)
    if isinstance(spec, CollectiveSpec) or not family.answers(OwnRuns):
        return None
    facet = family.facet(OwnRuns)
    collective = o["collective"] or facet.collectives[0]
    if collective not in facet.collectives:
        known = ", ".join(facet.collectives)
        raise InputError(Diagnostic("--collective", f"{shown(collective)} is none of those of {family.name}: {known}"))
    for name, default in _OF_GROUPS.items():
        if o[name] != default and name not in facet.also:
            raise InputError(Diagnostic(flag_name(name), f"is for collectives of IncTrees, not for {family.name}"))
    topology, seed = load_topology(topology_name), drawn(o["seed"])
    order = RunOrder(
        topology,
        spec,
        collective,
        None if o["size"] is None else parsed("--size", units.size, o["size"]),
        o["repeat"],
        faults_from(o, topology),
        seed,
        Recovery(o["recovery"]) if o["recovery"] else None,
        None if o["timeout"] is None else parsed("--timeout", timer, o["timeout"]),
        o["retries"],
        DcqcnConfig() if o["dcqcn"] else None,
        chosen_engine(o["engine"]),
        {
            name: parsed(flag_name(name), option.read, option.default if o[name] is None else o[name])
            for name, option in facet.options.items()
        },
        o["root"],
        o["concurrent"],
    )
    return facet.make(order), seed
