"""The simulation that a command line of ``p4gen sim`` describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from p4gen.cli.options import collective_from, spec_fields
from p4gen.cli.seeds import drawn
from p4gen.cli.sim.comparison import studies_of
from p4gen.cli.sim.options import DEFAULT_SIZE, DEFAULT_TIMEOUT, STUDIED_SIZE
from p4gen.cli.values import parsed
from p4gen.errors import Diagnostic, InputError
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import shown
from p4gen.model import ENGINES, EngineName
from p4gen.net.collectives.simulation import SimConfig
from p4gen.net.figures.study import Axis
from p4gen.net.world.faults import Faults, Impairment, Script, parse_outage, parse_place
from p4gen.vocabulary import units
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

_SHORTEST_TIMER = US
_MOST_VALUES = 100
_SAID_BY_TABLES: Mapping[str, Any] = {"collective": "allreduce", "root": 0, "recovery": None, "timeout": None}
TABLES_SAY = frozenset(_SAID_BY_TABLES)
"""The options of a simulation that a paper's table has its own values for."""


def configuration(
    topology_name: str, spec_file: Path | None, options: Mapping[str, Any], *, studied: bool
) -> SimConfig:
    """The run that options describe; if ``studied``, what they omit is as in the paper. Raises ``InputError``."""
    o = {**_SAID_BY_TABLES, **options}
    flags = {name: o[name] for name in spec_fields()}
    name = o["collective"] or str(Collective.ALLREDUCE)
    if name not in list(Collective):
        raise InputError(Diagnostic("--collective", f"{shown(name)} is none of {', '.join(Collective)}"))
    collective = Collective(name)
    barrier = collective is Collective.BARRIER
    if barrier and o["size"]:
        raise click.UsageError("a barrier has no data: omit --size")
    seed = drawn(o["seed"])
    spec = collective_from(spec_file, flags)
    studies = studies_of(spec) if studied else None
    if studies and not spec_file:
        suggested = {name: str(value) for name, value in studies.program(spec).items()}
        spec = collective_from(None, suggested | {name: text for name, text in flags.items() if text is not None})
    timeout = o["timeout"] or (f"{studies.timeout(spec)}ps" if studies else DEFAULT_TIMEOUT)
    topology = load_topology(topology_name)
    config = SimConfig(
        topology,
        spec,
        collective,
        0 if barrier else parsed("--size", units.size, o["size"] or (STUDIED_SIZE if studied else DEFAULT_SIZE)),
        o["repeat"],
        faults_from(o, topology, in_order=spec.needs_order),
        seed,
        Recovery(o["recovery"]) if o["recovery"] else studies.recovery(spec) if studies else None,
        parsed("--timeout", timer, timeout),
        o["retries"],
        dcqcn=DcqcnConfig() if o["dcqcn"] else None,
        engine=chosen_engine(o["engine"]),
        root=o["root"],
        sync=PsnSync(o["sync"]),
    )
    return config if o["concurrent"] == 1 else replace(config, work=config.jobs * o["concurrent"])


def values_of(given: str | None, axis: Axis) -> list[float] | None:
    """The values that ``--values`` has for an axis, None for the paper's. Raises ``InputError``."""
    if given is None or axis is Axis.NOTHING:
        return None
    if given.count(",") >= _MOST_VALUES:
        raise InputError(Diagnostic("--values", f"more than {_MOST_VALUES} values"))
    if axis is Axis.SIZE:
        return [parsed("--values", units.size, text) for text in given.split(",")]
    return [parsed("--values", _percent if axis is Axis.LOSS else _count, text) for text in given.split(",")]


def faults_from(o: Mapping[str, Any], topology: TopologySpec, *, in_order: bool = False) -> Faults:
    """The faults on a topology that options describe. Where links are to keep the order of packets, a duplicate follows
    at once. Raises ``InputError``."""
    if o["burst"] is not None and not o["loss"]:
        raise click.UsageError("--burst is the length of bursts of loss: it goes with --loss")
    impairments = []
    for name in ("loss", "reorder", "duplicate", "corrupt"):
        for text in o[name]:
            value, where = parse_place(text)
            chance: dict[str, Any] = {name: parsed(f"--{name}", units.share, value)}
            if name == "loss":
                chance["burst"] = o["burst"] or 1.0
            if name == "duplicate" and in_order:
                chance["jitter"] = 0
            impairments.append(Impairment(where, **chance))
    scripts = tuple(Script.parse(text) for text in o["scripts"])
    ranks = len(topology.rank_hosts)
    for script in scripts:
        if script.rank is not None and script.rank >= ranks:
            raise InputError(f"script '{script.text}': there is no rank {script.rank}; there are 0 to {ranks - 1}")
    faults = Faults(tuple(impairments), tuple(parse_outage(text) for text in o["down"]), scripts)
    faults.check(topology)
    return faults


def timer(text: str) -> int:
    """A retransmission timer. One much shorter than a round trip retransmits everything before it can be answered, and
    simulated time would hardly advance; InfiniBand's shortest is 8 us."""
    value = units.duration(text)
    if 0 < value < _SHORTEST_TIMER:
        raise ValueError(f"a retransmission timer must be at least 1us, or 0 for none, not {shown(text)}")
    return value


def _percent(text: str) -> float:
    """A share in per cent, with or without the sign."""
    return 100 * units.share(f"{text.strip().removesuffix('%')}%")


def _count(text: str) -> int:
    """A number of links."""
    if not (text.strip().isdecimal() and len(text.strip()) <= 4):
        raise ValueError(f"{shown(text)} is not a number of links")
    return int(text)


def chosen_engine(name: str) -> EngineName:
    """The engine of this name."""
    return next(engine for engine in ENGINES if engine == name)
