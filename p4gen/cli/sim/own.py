"""Options that only runs of one family have, and the run that a command line describes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from p4gen.cli.options import kind_of
from p4gen.cli.verb import GroupedOption
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import families, family_of, flag_name
from p4gen.inputs import drawn
from p4gen.library.simulation import RunOptions, job_of
from p4gen.net.job import Job
from p4gen.net.result import RunResult
from p4gen.net.runs import Runs
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import load_topology

F = TypeVar("F", bound=Callable[..., Any])


def _facets() -> dict[str, Runs[Any]]:
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
    for family, facet in _facets().items():
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
    return tuple(dict.fromkeys(name for facet in _facets().values() for name in facet.collectives))


def asked_job(topology_name: str, spec: ProgramSpec, options: Mapping[str, Any]) -> tuple[Job[Any, RunResult], int]:
    """The run that options describe, and its seed. Raises ``InputError``."""
    asked = RunOptions.among(dict(options) | {"seed": drawn(options["seed"])})
    known = family_of(spec).facet(Runs).options
    for family, facet in _facets().items():
        for name in facet.options:
            if name not in known and options[name] is not None:
                raise InputError(Diagnostic(Option(name), f"is for runs of {family}'s programs"))
    own = {name: options[name] for name in known if options[name] is not None}
    assert asked.seed is not None
    return job_of(load_topology(topology_name), spec, asked, own), asked.seed
