"""``p4gen.simulate``: a collective over a virtual network, and the options that such runs have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final

from p4gen.choices import ENGINES, EngineName
from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import collective as collective_spec
from p4gen.families import families, family_of
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import drawn, parsed, shown
from p4gen.library.programs import Program, generate
from p4gen.net.collectives.simulation import SimConfig, SimResult, Simulation
from p4gen.net.own import FamilyResult, OwnRun, OwnRuns, RunOrder
from p4gen.net.world.faults import Faults, Impairment, Script, parse_outage, parse_place
from p4gen.vocabulary import CollectiveSpec, ProgramSpec, units
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

DEFAULT_TIMEOUT, DEFAULT_SIZE = "50us", "1M"
_SHORTEST_TIMER: Final = US
_OF_GROUPS: Final[Mapping[str, Any]] = {"root": 0, "sync": "subgroups", "concurrent": 1}
"""Options that only collectives of IncTrees have, with their defaults."""
Texts = str | Sequence[str]


@dataclass(frozen=True)
class RunOptions:
    """The options of a run, as ``p4gen sim run`` has them: texts have units, such as ``256K``, ``1%`` or ``50us``."""

    collective: str | None = None
    """By default allreduce, or the first of a family with calls of its own."""
    size: str | int | None = None
    """Bytes that each rank contributes."""
    root: int = 0
    repeat: int = 1
    concurrent: int = 1
    """Groups of all ranks at once."""
    sync: str = "subgroups"
    loss: Texts = ()
    """Shares of packets, each with or without a place: ``1%``, ``5%@h0``, ``1%@h0-s0``, ``1%@h0>s0``."""
    burst: float | None = None
    """The mean number of packets lost in a row."""
    reorder: Texts = ()
    duplicate: Texts = ()
    corrupt: Texts = ()
    down: Texts = ()
    """Links that are down for a time: ``h0-s0@10us-60us``."""
    scripts: Texts = ()
    """Single losses: ``drop the 3rd UP_DATA of rank 2``."""
    recovery: str | None = None
    timeout: str | None = None
    retries: int | None = None
    dcqcn: bool = False
    engine: str = "jit"
    seed: int | None = None
    """Drawn if None."""
    own: Mapping[str, Any] = field(default_factory=dict)
    """Options that only runs of one family have."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> RunOptions:
        """Options by name; names that are not those of a run are a family's own, if a family has them."""
        names = {one.name for one in fields(cls)} - {"own"}
        own = {name for family in families().values() if family.answers(OwnRuns) for name in _runs(family.name).options}
        return cls(
            **{name: value for name, value in options.items() if name in names},
            own={name: value for name, value in options.items() if name in own and value is not None},
        )


def simulate(
    topology: TopologySpec | str | Path,
    program: Program | ProgramSpec | Mapping[str, Any] | str | Path | None = None,
    *,
    progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> SimResult | FamilyResult:
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
    spec = program.spec if isinstance(program, Program) else generate(program).spec
    unknown = options.keys() - {one.name for one in fields(RunOptions)}
    own = _runs(spec.family).options.keys() if family_of(spec).answers(OwnRuns) else set()
    if unknown - own:
        raise InputError(Diagnostic(Option(sorted(unknown - own)[0]), f"is no option of runs of {spec.program}"))
    asked = RunOptions.of(options)
    place = topology if isinstance(topology, TopologySpec) else load_topology(topology)
    if isinstance(spec, CollectiveSpec) or not family_of(spec).answers(OwnRuns):
        return Simulation(group_run(place, collective_spec(spec), asked)).run(progress)
    return family_run(place, spec, asked)[0].run(progress)


def group_run(topology: TopologySpec, spec: CollectiveSpec, o: RunOptions, *, size: str = DEFAULT_SIZE) -> SimConfig:
    """The run of groups on IncTrees that options describe; ``size`` is that of a call where they say none.

    Raises ``InputError``.
    """
    name = o.collective or str(Collective.ALLREDUCE)
    if name not in list(Collective):
        raise InputError(Diagnostic(Option("collective"), f"{shown(name)} is none of {', '.join(Collective)}"))
    collective = Collective(name)
    barrier = collective is Collective.BARRIER
    if barrier and o.size:
        raise InputError(Diagnostic(Option("size"), "a barrier has no data"))
    config = SimConfig(
        topology,
        spec,
        collective,
        0 if barrier else parsed("size", units.size, str(o.size or size)),
        o.repeat,
        network_faults(o, topology, in_order=spec.needs_order),
        drawn(o.seed),
        Recovery(o.recovery) if o.recovery else None,
        parsed("timeout", timer, o.timeout or DEFAULT_TIMEOUT),
        o.retries,
        dcqcn=DcqcnConfig() if o.dcqcn else None,
        engine=chosen_engine(o.engine),
        root=o.root,
        sync=PsnSync(o.sync),
    )
    return config if o.concurrent == 1 else replace(config, work=config.jobs * o.concurrent)


def family_run(topology: TopologySpec, spec: ProgramSpec, o: RunOptions) -> tuple[OwnRun, int]:
    """The run that options describe of a family that brings its own, and its seed. Raises ``InputError``."""
    facet = _runs(spec.family)
    collective = o.collective or facet.collectives[0]
    if collective not in facet.collectives:
        known = ", ".join(facet.collectives)
        raise InputError(
            Diagnostic(Option("collective"), f"{shown(collective)} is none of those of {spec.family}: {known}")
        )
    for name, default in _OF_GROUPS.items():
        if getattr(o, name) != default and name not in facet.also:
            raise InputError(Diagnostic(Option(name), f"is for collectives of IncTrees, not for {spec.family}"))
    seed = drawn(o.seed)
    order = RunOrder(
        topology,
        spec,
        collective,
        None if o.size is None else parsed("size", units.size, str(o.size)),
        o.repeat,
        network_faults(o, topology),
        seed,
        Recovery(o.recovery) if o.recovery else None,
        None if o.timeout is None else parsed("timeout", timer, o.timeout),
        o.retries,
        DcqcnConfig() if o.dcqcn else None,
        chosen_engine(o.engine),
        {name: parsed(name, one.read, str(o.own.get(name, one.default))) for name, one in facet.options.items()},
        o.root,
        o.concurrent,
    )
    return facet.make(order), seed


def network_faults(o: RunOptions, topology: TopologySpec, *, in_order: bool = False) -> Faults:
    """The faults on a topology that options describe. Where links are to keep the order of packets, a duplicate follows
    at once. Raises ``InputError``."""
    if o.burst is not None and not o.loss:
        raise InputError(Diagnostic(Option("burst"), "is the length of bursts of loss: it goes with loss"))
    impairments = []
    for name in ("loss", "reorder", "duplicate", "corrupt"):
        for text in _listed(getattr(o, name)):
            value, where = parse_place(text)
            chance: dict[str, Any] = {name: parsed(name, units.share, value)}
            if name == "loss":
                chance["burst"] = o.burst or 1.0
            if name == "duplicate" and in_order:
                chance["jitter"] = 0
            impairments.append(Impairment(where, **chance))
    scripts = tuple(Script.parse(text) for text in _listed(o.scripts))
    ranks = len(topology.rank_hosts)
    for script in scripts:
        if script.rank is not None and script.rank >= ranks:
            raise InputError(f"script '{script.text}': there is no rank {script.rank}; there are 0 to {ranks - 1}")
    faults = Faults(tuple(impairments), tuple(parse_outage(text) for text in _listed(o.down)), scripts)
    faults.check(topology)
    return faults


def timer(text: str) -> int:
    """A retransmission timer, ps. One much shorter than a round trip retransmits everything before it can be answered,
    and simulated time would hardly advance; InfiniBand's shortest is 8 us. Raises ``ValueError``."""
    value = units.duration(text)
    if 0 < value < _SHORTEST_TIMER:
        raise ValueError(f"a retransmission timer must be at least 1us, or 0 for none, not {shown(text)}")
    return value


def chosen_engine(name: str) -> EngineName:
    """The engine of this name. Raises ``InputError``."""
    for engine in ENGINES:
        if engine == name:
            return engine
    raise InputError(Diagnostic(Option("engine"), f"{shown(name)} is none of {', '.join(ENGINES)}"))


def _listed(texts: Texts) -> Sequence[str]:
    return (texts,) if isinstance(texts, str) else texts


def _runs(family: str) -> OwnRuns:
    return families()[family].facet(OwnRuns)
