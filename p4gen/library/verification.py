"""``p4gen.verify``: every reachable state of a collective, and the scope that options describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import collective, load_spec
from p4gen.groups.connections import connection_entries
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import parsed, quote
from p4gen.library.programs import Described, spec_of
from p4gen.library.search_options import SearchOptions
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation
from p4gen.rocev2.psn import PSN_MASK
from p4gen.verification.family import ScopeOrder, verification_of
from p4gen.verification.findings.results import Problem, Progress, Result
from p4gen.verification.scope import GroupScope
from p4gen.verification.smallest import small_program
from p4gen.verification.system import System
from p4gen.verification.world import Budget, Scope
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

if TYPE_CHECKING:
    from p4gen.verification.findings.story import Story
    from p4gen.verification.parts.flows import FlowScope
    from p4gen.verification.search.knowledge import Knowledge

TREE, FLOWS = "tree-3-2", "clos:2x2x1"
"""The topologies of groups, and of connections, if none is named."""
"""The program that is verified, where nothing else is asked for: the smallest with all of a mode's behaviour."""


_OF_GROUPS: Final = ("collectives", "concurrent", "first_psn", "flow", "sync", "stale", "idle_since", "rank_window")
"""Options that programs that serve connections do not have."""
_OF_ALL: Final = ("first_psn", "stale")
"""Those of them that programs of a family with scopes of its own may have."""
MEMORY: Final = 4 << 30
"""Bytes for the set of states."""


@dataclass(frozen=True)
class Report:
    """What a search has found.

    >>> import p4gen
    >>> seeded = {"packets": 2, "loss": 1, "fault": "duplicate-unanswered"}
    >>> report = p4gen.verify("star-2", {"mode": "II", "window": 1}, **seeded)
    >>> report.ok, report.problem.property
    (False, 'livelock')
    >>> report.story.splitlines()[-1]
    '   3  s0>h0: CONTROL 5 is lost'
    """

    scope: Scope
    result: Result
    problem: Problem | None
    """The shortest violation that is known."""

    @property
    def ok(self) -> bool:
        """Whether all states are known, and none violates anything."""
        return self.problem is None and self.result.complete

    @property
    def story(self) -> str:
        """The events that lead to the violation, in words; empty without one."""
        return "" if self.problem is None else self.replay().text()

    def replay(self) -> Story:
        """The run that leads to the violation, played again."""
        from p4gen.verification.findings.counterexample import story_of  # noqa: PLC0415 - only violations need it

        assert self.problem is not None
        return story_of(System(self.scope), self.problem.events)

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        problem = None if self.problem is None else {"property": self.problem.property, "text": self.problem.text}
        return self.result.summary() | {"problem": problem, "story": self.story}


def verify(
    topology: TopologySpec | str | Path | None = None,
    program: Described = None,
    *,
    seconds: float | None = None,
    workers: int = 2,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> Report:
    """Check every reachable state of a collective, with the faults that ``options`` allow the network.

    >>> import p4gen
    >>> report = p4gen.verify("star-2", {"mode": "II", "window": 1}, packets=2, loss=1)
    >>> report.ok, report.result.distinct > 100
    (True, True)

    ``program`` is a program, a spec, a YAML file, or fields of the smallest program that serves the topology;
    ``options`` are the fields of ``SearchOptions``. ``progress`` is called with how far the search is. After
    ``seconds`` the search stops, and ``report.result.complete`` is False.

    Raises ``InputError`` for what the program cannot do, with the option as its place.
    """
    fields = program if isinstance(program, Mapping) else {}
    spec = None if program is None or isinstance(program, Mapping) else spec_of(program)
    scope = scope_of(topology, spec, fields, SearchOptions.checked(options))
    report, _ = search(scope, seconds=seconds, workers=workers, progress=progress)
    return report


def search(
    scope: Scope,
    *,
    seconds: float | None = None,
    workers: int = 2,
    progress: Callable[[Progress], None] | None = None,
    reduce: bool = True,
    memory: int = MEMORY,
    **how: Any,
) -> tuple[Report, Knowledge]:
    """Search a scope, as ``verify`` does, and what the search knows of its switches; ``reduce`` leaves out orders of
    independent events, ``how`` are other arguments of ``Search``."""
    # The search needs Numba, which takes a while to load.
    from p4gen.verification.search.search import Search  # noqa: PLC0415

    first = Search(System(scope), reduce=reduce, workers=workers, memory=memory, **how)
    result = first.run(seconds=seconds, report=progress)
    problem = result.problem
    if problem is not None and reduce:
        # Reduction leaves out orders of events, among them shorter ones: search again without it, as far as that.
        again = Search(System(scope), reduce=False, workers=workers, memory=memory, liveness=False)
        problem = again.run(depth=len(problem.events), seconds=seconds).problem or problem
    return Report(scope, result, problem), first.knowledge


def scope_of(
    place: TopologySpec | str | Path | None,
    spec: ProgramSpec | None,
    fields: Mapping[str, Any],
    o: SearchOptions,
) -> Scope:
    """The scope that options describe, of a program, or of the smallest one with these fields.

    Raises ``InputError``.
    """

    given = load_spec(None, fields) if spec is None else spec
    if not given.takes_part:
        if spec is None:
            chosen = {name: value for name, value in fields.items() if value is not None}
            given = load_spec(None, {**verification_of(given).small(given), **chosen})
        own = verification_of(given).scopes
        if own is None:
            return _flows(load_topology(place or FLOWS), given, o)
        _refuse_groups(f"{given.program} serves none", o, [name for name in _OF_GROUPS if name not in _OF_ALL])
        for name, why in own.refused.items():
            if getattr(o, name) != SearchOptions.model_fields[name].default:
                raise InputError(Diagnostic(Option(name), f"{given.program}: {why}"))
        return own.make(given, _order(load_topology(place or own.topology), given, o))
    where = load_topology(place or TREE)
    program = small_program(where, fields) if spec is None else collective(given)
    names = [name.strip() for name in o.collectives.split(",")]
    wrong = [name for name in names if name not in list(Collective)]
    if wrong:
        raise InputError(Diagnostic(Option("collective"), f"{quote(wrong[0])} is none of {', '.join(Collective)}"))
    return GroupScope(
        where,
        program,
        tuple(map(Collective, names)),
        o.packets,
        o.concurrent,
        parsed("first_psn", _psn, o.first_psn),
        o.flow,
        o.sync,
        o.recovery,
        budget=_budget(o),
        rank_window=o.rank_window,
        fault=_fault(program, o.fault),
        stale=o.stale,
        idle_since=parsed("idle_since", _psn, o.idle_since) if o.idle_since else None,
    )


def _flows(topology: TopologySpec, spec: ProgramSpec, o: SearchOptions) -> FlowScope:
    facet = connection_entries(spec)
    if facet is None:
        raise InputError(f"{spec.program} serves neither groups nor connections: there is nothing to search")
    _refuse_groups(f"{spec.program} serves connections", o, _OF_GROUPS)
    if o.forge:
        raise InputError(
            Diagnostic(Option("forge"), f"is for switches that are endpoints; {spec.program} serves hosts' own")
        )
    from p4gen.verification.parts.flows import FlowScope  # noqa: PLC0415 - only connections need traffic

    return FlowScope(
        topology,
        spec,
        facet.core(spec),
        o.packets,
        budget=_budget(o),
        recovery=o.recovery or Recovery.SELECTIVE_REPEAT,
        fault=_fault(spec, o.fault),
    )


def _order(topology: TopologySpec, spec: ProgramSpec, o: SearchOptions) -> ScopeOrder:
    """The same for a family with scopes of its own."""
    return ScopeOrder(
        topology,
        o.packets,
        _budget(o),
        o.recovery,
        parsed("first_psn", _psn, o.first_psn),
        _fault(spec, o.fault),
        o.stale,
    )


def _budget(o: SearchOptions) -> Budget:
    """What the network may do; one loss if the options say nothing."""
    faults = (o.duplicate, o.reorder, o.corrupt, o.timeouts, o.forge)
    return Budget(o.loss if o.loss is not None else 0 if any(faults) else 1, *faults)


def _refuse_groups(what: str, o: SearchOptions, names: Sequence[str]) -> None:
    for name in names:
        if getattr(o, name) != SearchOptions.model_fields[name].default:
            option = {"collectives": "collective"}.get(name, name)
            raise InputError(Diagnostic(Option(option), f"is for groups; {what}"))


def _fault(spec: ProgramSpec, name: str | None) -> Mutation | None:
    if name is None:
        return None
    known = {mutation.name: mutation for mutation in conformance_of(spec).seeding(spec).mutations}
    if name not in known:
        raise InputError(Diagnostic(Option("fault"), f"there is no fault {quote(name)}; `p4gen ptf mutate` lists them"))
    return known[name]


def _psn(text: str) -> int:
    value = int(text, 0)
    if not 0 <= value <= PSN_MASK:
        raise ValueError(f"a PSN has 24 bits: {quote(text)}")
    return value


def reductions(text: str) -> tuple[bool, bool]:
    """Whether a list of reductions has the partial-order one, and symmetry."""
    names = [] if text == "none" else text.split(",")
    wrong = [name for name in names if name not in ("por", "symmetry")]
    if wrong:
        raise ValueError(f"{quote(wrong[0])} is neither por nor symmetry, nor none alone")
    return "por" in names, "symmetry" in names
