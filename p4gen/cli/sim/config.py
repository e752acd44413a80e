"""The simulation that a command line of ``p4gen sim`` describes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p4gen.cli.options import collective_from, spec_fields
from p4gen.cli.sim.options import SAID_BY_TABLES, STUDIED_SIZE
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import family_of
from p4gen.inputs import parsed, quote
from p4gen.library.run_options import RunOptions
from p4gen.library.simulation import run_order
from p4gen.net.collectives.simulation import SimConfig, group_run
from p4gen.net.study import Axis, Studies
from p4gen.vocabulary import CollectiveSpec, units
from p4gen.vocabulary.topology import load_topology

_MOST_VALUES = 100


def configuration(
    topology_name: str, spec_file: Path | None, options: Mapping[str, Any], *, studied: bool
) -> SimConfig:
    """The run that options describe; if ``studied``, what they omit is as in the paper. Raises ``InputError``."""
    o = {**SAID_BY_TABLES, **options}
    flags = {name: o[name] for name in spec_fields()}
    spec = collective_from(spec_file, flags)
    studies = studies_of(spec) if studied else None
    if studies:
        if not spec_file:
            suggested = {name: str(value) for name, value in studies.program(spec).items()}
            spec = collective_from(None, suggested | {name: text for name, text in flags.items() if text is not None})
        o["timeout"] = o["timeout"] or f"{studies.timeout(spec)}ps"
        o["recovery"] = o["recovery"] or studies.recovery(spec)
    size = STUDIED_SIZE if studied else None
    return group_run(run_order(load_topology(topology_name), spec, RunOptions.among(o), {}, size=size))


def studies_of(spec: CollectiveSpec) -> Studies[Any]:
    """The figures of a spec's family. Raises ``InputError`` if it has none."""
    return family_of(spec).facet(Studies)


def values_of(given: str | None, axis: Axis) -> list[float] | None:
    """The values that ``--values`` has for an axis, None for the paper's. Raises ``InputError``."""
    if given is None or axis is Axis.NOTHING:
        return None
    if given.count(",") >= _MOST_VALUES:
        raise InputError(Diagnostic(Option("values"), f"more than {_MOST_VALUES} values"))
    if axis is Axis.SIZE:
        return [parsed("values", units.size, text) for text in given.split(",")]
    return [parsed("values", _percent if axis is Axis.LOSS else _count, text) for text in given.split(",")]


def _percent(text: str) -> float:
    """A share in per cent, with or without the sign."""
    return 100 * units.share(f"{text.strip().removesuffix('%')}%")


def _count(text: str) -> int:
    """A number of links, of up to four digits. Raises ``ValueError`` for any other text."""
    if not (text.strip().isdecimal() and len(text.strip()) <= 4):
        raise ValueError(f"{quote(text)} is not a number of links")
    return int(text)
