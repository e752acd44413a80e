"""Options that only runs of one family have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from p4gen.cli.options import kind_of
from p4gen.cli.verb import GroupedOption
from p4gen.families import families, flag_name
from p4gen.net.runs import Runs

F = TypeVar("F", bound=Callable[..., Any])


def run_facets() -> dict[str, Runs[Any]]:
    """What families say of their runs, by their names."""
    return {name: family.facet(Runs) for name, family in families().items() if family.answers(Runs)}


class FamilyOption(GroupedOption):
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
    for family, facet in run_facets().items():
        for name, option in reversed(list(facet.options.items())):
            function = click.option(
                flag_name(name),
                name,
                default=None,
                metavar="|".join(option.values) or "N",
                help=f"{option.description}  [{option.default}]",
                cls=FamilyOption,
                family=family,
                group=f"Runs of {family}'s programs: {', '.join(facet.collectives)}",
            )(function)
    return function


def collective_names() -> tuple[str, ...]:
    """What ranks call in families' own runs, beside collectives of IncTrees."""
    return tuple(dict.fromkeys(name for facet in run_facets().values() for name in facet.collectives))
