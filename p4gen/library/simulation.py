"""``p4gen.simulate``: a collective over a virtual network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import OwnSpec, family_of
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.inputs import drawn, parsed, quote
from p4gen.library.programs import Described, spec_of
from p4gen.library.run_options import RunOptions
from p4gen.net.collectives.config import Call, Work
from p4gen.net.job import Job
from p4gen.net.order import RunOrder
from p4gen.net.result import RunResult
from p4gen.net.runs import Runs
from p4gen.net.world.faults import Faults, Impairment, Script, parse_outage, parse_place
from p4gen.vocabulary import ProgramSpec, units
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import Pfc, TopologySpec, load_topology

_SHORTEST_TIMER: Final = US
_PFC: Final = ("xoff", "xon", "headroom")
_OF_GROUPS: Final = ("root", "sync", "concurrent", "calls")
"""Options that not all families have."""
_OF_ONE_CALL: Final = ("collective", "size", "root", "repeat")
"""Options that say what all groups call."""


def simulate(
    topology: TopologySpec | str | Path,
    program: Described = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> RunResult:
    """Run a collective over a virtual network, and check every rank's result against NumPy's.

    >>> import p4gen
    >>> result = p4gen.simulate("star-4", p4gen.generate(mode="II", lanes=8), size="4K", loss="1%", seed=7)
    >>> result.ok, result.to_dict()["collective"]
    (True, 'allreduce')

    ``topology`` is a topology, its name, or a YAML file; ``program`` what ``generate`` has made, or what it takes;
    ``options`` are the fields of ``RunOptions``, and those that runs of one family have. ``progress(done, total)`` is
    called now and then. The same seed gives the same run.

    Raises ``InputError``, with the option as its place, for what the program or the topology cannot do. A run that does
    not end, or ends with wrong results, raises nothing: ``result.ok`` is False, and ``result.to_dict()`` says why.
    """
    spec, place = spec_of(program), load_topology(topology)
    own = {name: value for name, value in options.items() if name in family_of(spec).facet(Runs).options}
    asked = RunOptions.checked({name: value for name, value in options.items() if name not in own})
    return job_of(place, spec, asked, own).run(progress)


def job_of(topology: TopologySpec, spec: ProgramSpec, o: RunOptions, own: Mapping[str, Any]) -> Job[Any, RunResult]:
    """The run that options describe; ``own`` are the options that only the program's family has. Raises
    ``InputError``."""
    return (
        _mixture(topology, spec, o) if o.jobs else family_of(spec).facet(Runs).make(run_order(topology, spec, o, own))
    )


def _mixture(topology: TopologySpec, spec: ProgramSpec, o: RunOptions) -> Job[Any, RunResult]:
    """The jobs of a file."""
    from p4gen.library.mixtures import load_jobs  # noqa: PLC0415 - most runs need none of it
    from p4gen.net.mixture import Mixture  # noqa: PLC0415

    for name in (*_OF_ONE_CALL, "sync", "concurrent", "calls", "dcqcn"):
        if getattr(o, name) != RunOptions.model_fields[name].default:
            raise InputError(Diagnostic(Option(name), "does not go with jobs, which say what runs"))
    nics = {"recovery": o.recovery, "retry_count": o.retries}
    if o.timeout is not None:
        nics["timeout"] = parsed("timeout", timer, o.timeout)
    faults = network_faults(o, topology, in_order=spec.needs_order)
    common = {"topology": paused(topology, o), "program": spec, "faults": faults, "engine": o.engine}
    common["seed"] = drawn(o.seed)
    return Mixture(load_jobs(Path(o.jobs or ""), common, nics))


def paused(topology: TopologySpec, o: RunOptions) -> TopologySpec:
    """The topology with the priority flow control that options ask for, or its own. Raises ``InputError``."""
    if o.pfc is None:
        return topology
    found = parsed("pfc", _flow_control, o.pfc)
    if topology.buffer is not None:
        raise InputError(Diagnostic(Option("pfc"), f"does not go with the buffer that {topology.name} shares"))
    own = {} if topology.pfc is None else {"priorities": topology.pfc.priorities}
    return topology.model_copy(update={"pfc": found.model_copy(update=own)})


def _flow_control(text: str) -> Pfc:
    values = [units.size(each) for each in text.split(",")]
    if len(values) > len(_PFC):
        raise ValueError(f"say '100K' or '100K,50K,64K', not {quote(text)}")
    try:
        return Pfc.model_validate(dict(zip(_PFC, values, strict=False)))
    except ValidationError as error:
        raise ValueError(error.errors()[0]["msg"].removeprefix("Value error, ")) from None


def run_order(
    topology: TopologySpec, spec: OwnSpec, o: RunOptions, own: Mapping[str, Any], *, size: str | None = None
) -> RunOrder[OwnSpec]:
    """What options ask for of a program; ``size`` is that of a call where they say none. Raises ``InputError``."""
    runs = family_of(spec).facet(Runs)
    collective = o.collective or runs.collectives[0]
    if collective not in runs.collectives:
        known = ", ".join(runs.collectives)
        raise InputError(
            Diagnostic(Option("collective"), f"{quote(collective)} is none of those of {spec.family}: {known}")
        )
    for name in _OF_GROUPS:
        if getattr(o, name) != RunOptions.model_fields[name].default and name not in runs.also:
            raise InputError(Diagnostic(Option(name), f"is for collectives of IncTrees, not for {spec.family}"))
    for name in _OF_ONE_CALL if o.calls else ():
        if getattr(o, name) != RunOptions.model_fields[name].default:
            raise InputError(Diagnostic(Option(name), "does not go with calls, which say what each group calls"))
    given = size if o.size is None else o.size
    return RunOrder(
        paused(topology, o),
        spec,
        collective,
        None if given is None else parsed("size", units.size, given),
        o.repeat,
        network_faults(o, topology, in_order=spec.needs_order),
        drawn(o.seed),
        o.recovery,
        None if o.timeout is None else parsed("timeout", timer, o.timeout),
        o.retries,
        DcqcnConfig() if o.dcqcn else None,
        o.engine,
        {name: parsed(name, one.read, str(own.get(name, one.default))) for name, one in runs.options.items()},
        o.root,
        o.concurrent,
        o.sync,
        tuple(parsed("calls", lambda text: _group(text, topology, runs), text) for text in o.calls),
    )


def _group(text: str, topology: TopologySpec, runs: Runs[Any]) -> Work:
    """A group and its calls, as in "h0,h1: reduce 64K root 1, barrier". Raises ``ValueError``."""
    named, colon, asked = text.partition(":")
    hosts = tuple(host.strip() for host in named.split(","))
    unknown = [host for host in hosts if host not in topology.hosts]
    if not colon or unknown:
        raise ValueError(
            f"there is no host {quote(unknown[0])} in {topology.name}"
            if colon
            else f"hosts and calls are separated by a colon, as in 'h0,h1: barrier', not {quote(text)}"
        )
    return Work(tuple(_call(one.split(), runs) for one in asked.split(",")), hosts)


def _call(words: list[str], runs: Runs[Any]) -> Call:
    collective, *rest = words or [""]
    if collective not in runs.collectives:
        raise ValueError(f"{quote(collective)} is none of {', '.join(runs.collectives)}")
    root = 0
    if len(rest) > 1 and rest[-2] == "root" and rest[-1].isdecimal():
        root, rest = int(rest[-1]), rest[:-2]
    if len(rest) > 1:
        raise ValueError(
            f"a call is a collective, a size and a root, as in 'reduce 64K root 1', not {quote(' '.join(words))}"
        )
    return Call(Collective(collective), units.size(rest[0]) if rest else 0, root)


def network_faults(o: RunOptions, topology: TopologySpec, *, in_order: bool = False) -> Faults:
    """The faults on a topology that options describe. Where links are to keep the order of packets, a duplicate follows
    at once. Raises ``InputError``."""
    if o.burst is not None and not o.loss:
        raise InputError(Diagnostic(Option("burst"), "is the length of bursts of loss: it goes with loss"))
    impairments = []
    for name in ("loss", "reorder", "duplicate", "corrupt"):
        for text in getattr(o, name):
            value, where = parse_place(text)
            chance: dict[str, Any] = {name: parsed(name, units.share, value)}
            if name == "loss":
                chance["burst"] = o.burst or 1.0
            if name == "duplicate" and in_order:
                chance["jitter"] = 0
            impairments.append(Impairment(where, **chance))
    scripts = tuple(Script.parse(text) for text in o.scripts)
    ranks = len(topology.rank_hosts)
    for script in scripts:
        if script.rank is not None and script.rank >= ranks:
            raise InputError(f"script '{script.text}': there is no rank {script.rank}; there are 0 to {ranks - 1}")
    faults = Faults(tuple(impairments), tuple(parse_outage(text) for text in o.down), scripts)
    faults.check(topology)
    return faults


def timer(text: str) -> int:
    """A retransmission timer, ps. One much shorter than a round trip retransmits everything before it can be answered,
    and simulated time would hardly advance; InfiniBand's shortest is 8 us. Raises ``ValueError``."""
    value = units.duration(text)
    if 0 < value < _SHORTEST_TIMER:
        raise ValueError(f"a retransmission timer must be at least 1us, or 0 for none, not {quote(text)}")
    return value
