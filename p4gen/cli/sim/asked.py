"""The run that a command line describes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from p4gen.cli.sim.own import run_facets
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import family_of
from p4gen.inputs import drawn
from p4gen.library.run_options import RunOptions
from p4gen.library.simulation import job_of
from p4gen.net.job import Job
from p4gen.net.result import RunResult
from p4gen.net.runs import Runs
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import load_topology


def asked_job(topology_name: str, spec: ProgramSpec, options: Mapping[str, Any]) -> tuple[Job[Any, RunResult], int]:
    """The run that options describe, and its seed. Raises ``InputError``."""
    asked = RunOptions.among(dict(options) | {"seed": drawn(options["seed"])})
    known = {} if asked.jobs else family_of(spec).facet(Runs).options
    for family, facet in run_facets().items():
        for name in facet.options:
            if name not in known and options[name] is not None:
                raise InputError(Diagnostic(Option(name), f"is for runs of {family}'s programs"))
    own = {name: options[name] for name in known if options[name] is not None}
    assert asked.seed is not None
    return job_of(load_topology(topology_name), spec, asked, own), asked.seed
