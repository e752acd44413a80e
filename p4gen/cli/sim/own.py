"""Runs that a family brings itself: their options, and the run that a command line describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from p4gen.cli.options import kind_of
from p4gen.cli.verb import GroupedOption
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import families, flag_name
from p4gen.library.simulation import RunOptions, family_run, own_runs
from p4gen.net.own import OwnRun, OwnRuns
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import load_topology

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
                raise InputError(Diagnostic(Option(name), f"is for runs of {family}'s programs"))


def own_run(topology_name: str, spec: ProgramSpec, options: Mapping[str, Any]) -> tuple[OwnRun, int] | None:
    """The run that options describe, and its seed; None for programs that take part in collectives of IncTrees.

    Raises ``InputError``.
    """
    runs = own_runs(spec)
    if runs is None:
        return None
    own = {name: options[name] for name in runs.options if options[name] is not None}
    return family_run(load_topology(topology_name), spec, runs, RunOptions.among(options), own)
