"""``p4gen.verify``: every reachable state of a collective, and the scope that options describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.families import load_collective, load_spec
from p4gen.groups.connections import connection_entries
from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import parsed, shown
from p4gen.library.programs import Program
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation
from p4gen.rocev2.psn import PSN_MASK
from p4gen.verification.family import ScopeOrder, verification_of
from p4gen.verification.findings.results import Problem, Progress, Result
from p4gen.verification.parts.flows import FlowScope
from p4gen.verification.scope import Scope
from p4gen.verification.system import System
from p4gen.verification.world import Budget, Explored
from p4gen.vocabulary import CollectiveSpec, ProgramSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec, load_topology

TREE, FLOWS = "tree-3-2", "clos:2x2x1"
"""The topologies of groups, and of connections, if none is named."""
OF_GROUPS: Mapping[str, Any] = {
    "collectives": "allreduce", "concurrent": 1, "first_psn": "5", "flow": "results", "sync": "subgroups",
    "stale": False, "idle_since": None, "rank_window": None,
}  # fmt: skip
"""Options that only programs that serve groups have, with their defaults."""
SMALL: Final = {"lanes": 8, "window": 3, "message": 1, "groups": 1}
"""The program that is verified, where nothing else is asked for: the smallest with all of a mode's behaviour."""


DEFAULTS: Final[Mapping[str, Any]] = {
    **OF_GROUPS, "packets": 3, "loss": None, "duplicate": 0, "reorder": 0, "corrupt": 0, "timeouts": 0, "forge": 0,
    "recovery": None, "fault": None,
}  # fmt: skip
"""The options of a search, with their defaults."""
MEMORY: Final = 4 << 30
"""Bytes for the set of states."""


@dataclass(frozen=True)
class Report:
    """What a search has found."""

    scope: Explored
    result: Result
    problem: Problem | None
    """The shortest violation that is known."""
    story: str
    """The events that lead to it, in words; empty without one."""

    @property
    def ok(self) -> bool:
        """Whether all states are known, and none violates anything."""
        return self.problem is None and self.result.complete

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        problem = None if self.problem is None else {"property": self.problem.property, "text": self.problem.text}
        return self.result.summary() | {"problem": problem, "story": self.story}


def verify(
    topology: TopologySpec | str | Path | None = None,
    program: Program | ProgramSpec | Mapping[str, Any] | None = None,
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

    ``program`` is a program, or fields of the smallest one that serves the topology; ``options`` are those of ``p4gen
    verify``, with underscores: ``packets``, ``loss``, ``duplicate``, ``reorder``, ``forge`` and so on. ``progress`` is
    called with how far the search is. After ``seconds`` the search stops, and ``report.result.complete`` is False.

    Raises ``InputError`` for what the program cannot do, with the option as its place.
    """
    # The search needs Numba, which takes a while to load.
    from p4gen.verification.findings.counterexample import told  # noqa: PLC0415
    from p4gen.verification.search.search import Search  # noqa: PLC0415

    if unknown := sorted(options.keys() - DEFAULTS.keys()):
        raise InputError(Diagnostic(Option(unknown[0]), "is no option of searches"))
    fields = program if isinstance(program, Mapping) else {}
    spec = program.spec if isinstance(program, Program) else program if isinstance(program, ProgramSpec) else None
    scope = scope_of(topology, spec, fields, {**DEFAULTS, **options})
    system = System(scope)
    result = Search(system, workers=workers, memory=MEMORY).run(seconds=seconds, report=progress)
    problem = result.problem
    if problem is not None:
        problem = shortest(scope, problem, workers, MEMORY, seconds)
    story = "" if problem is None else told(System(scope), problem.events).text()
    return Report(scope, result, problem, story)


def shortest(scope: Explored, problem: Problem, workers: int, memory: int, seconds: float | None) -> Problem:
    """The shortest way to a violation that a search with reduction has found: that leaves out orders of events, among
    them shorter ones, so this searches again without it, as far as that."""
    from p4gen.verification.search.search import Search  # noqa: PLC0415

    again = Search(System(scope), reduce=False, workers=workers, memory=memory, liveness=False)
    return again.run(depth=len(problem.events), seconds=seconds).problem or problem


def small_program(topology: TopologySpec, fields: Mapping[str, Any]) -> CollectiveSpec:
    """The smallest program for a topology that has the given fields. Raises ``InputError`` for wrong values."""
    degree = max(len(ports) for name, ports in topology.ports.items() if name in topology.switches)
    small = SMALL | {"fan_in": degree, "ports": max(4, degree)}
    given = {name: value for name, value in fields.items() if value is not None}
    known = type(load_collective(None, given)).model_fields
    return load_collective(None, {name: value for name, value in small.items() if name in known} | given)


def scope_of(
    place: TopologySpec | str | Path | None,
    spec: ProgramSpec | None,
    fields: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Explored:
    """The scope that options describe, of a program, or of the smallest one with these fields.

    Raises ``InputError``.
    """

    def topology(default: str) -> TopologySpec:
        return place if isinstance(place, TopologySpec) else load_topology(place or default)

    given = load_spec(None, fields) if spec is None else spec
    if not isinstance(given, CollectiveSpec):
        if spec is None:
            chosen = {name: value for name, value in fields.items() if value is not None}
            given = load_spec(None, {**verification_of(given).small(given), **chosen})
        own = verification_of(given).scopes
        if own is None:
            return _flows(topology(FLOWS), given, options)
        return own.make(given, _order(topology(own.topology), given, options))
    where = topology(TREE)
    program = small_program(where, fields) if spec is None else given
    names = [name.strip() for name in options["collectives"].split(",")]
    wrong = [name for name in names if name not in list(Collective)]
    if wrong:
        raise InputError(Diagnostic(Option("collective"), f"{shown(wrong[0])} is none of {', '.join(Collective)}"))
    return Scope(
        where,
        program,
        tuple(map(Collective, names)),
        options["packets"],
        options["concurrent"],
        _budget(options),
        parsed("first_psn", _psn, str(options["first_psn"])),
        Flow(options["flow"]),
        PsnSync(options["sync"]),
        Recovery(options["recovery"]) if options["recovery"] else None,
        rank_window=options["rank_window"],
        fault=_fault(program, options["fault"]),
        stale=options["stale"],
        idle_since=parsed("idle_since", _psn, str(options["idle_since"])) if options["idle_since"] else None,
    )


def _flows(topology: TopologySpec, spec: ProgramSpec, options: Mapping[str, Any]) -> FlowScope:
    facet = connection_entries(spec)
    if facet is None:
        raise InputError(f"{spec.program} serves neither groups nor connections: there is nothing to search")
    _refuse_groups(f"{spec.program} serves connections", options)
    if options["forge"]:
        raise InputError(
            Diagnostic(Option("forge"), f"is for switches that are endpoints; {spec.program} serves hosts' own")
        )
    return FlowScope(
        topology,
        spec,
        facet.core(spec),
        options["packets"],
        budget=_budget(options),
        recovery=Recovery(options["recovery"]) if options["recovery"] else Recovery.SELECTIVE_REPEAT,
        fault=_fault(spec, options["fault"]),
    )


def _order(topology: TopologySpec, spec: ProgramSpec, options: Mapping[str, Any]) -> ScopeOrder:
    """The same for a family with scopes of its own."""
    _refuse_groups(f"{spec.program} serves none", {**options, "first_psn": OF_GROUPS["first_psn"]})
    return ScopeOrder(
        topology,
        options["packets"],
        _budget(options),
        Recovery(options["recovery"]) if options["recovery"] else None,
        parsed("first_psn", _psn, str(options["first_psn"])),
        _fault(spec, options["fault"]),
    )


def _refuse_groups(what: str, options: Mapping[str, Any]) -> None:
    for name, default in OF_GROUPS.items():
        if options[name] != default:
            raise InputError(
                Diagnostic(Option({"collectives": "collective"}.get(name, name)), f"is for groups; {what}")
            )


def _budget(options: Mapping[str, Any]) -> Budget:
    """What options allow the network; one loss if they say nothing."""
    loss = options["loss"]
    faults = [options[name] for name in ("duplicate", "reorder", "corrupt", "timeouts", "forge")]
    return Budget(loss if loss is not None else 0 if any(faults) else 1, *faults)


def _fault(spec: ProgramSpec, name: str | None) -> Mutation | None:
    if name is None:
        return None
    known = {mutation.name: mutation for mutation in conformance_of(spec).seeding(spec).mutations}
    if name not in known:
        raise InputError(Diagnostic(Option("fault"), f"there is no fault {shown(name)}; `p4gen ptf mutate` lists them"))
    return known[name]


def _psn(text: str) -> int:
    value = int(text, 0)
    if not 0 <= value <= PSN_MASK:
        raise ValueError(f"a PSN has 24 bits: {shown(text)}")
    return value


def reductions(text: str) -> tuple[bool, bool]:
    """Whether a list of reductions has the partial-order one, and symmetry."""
    names = [] if text == "none" else text.split(",")
    wrong = [name for name in names if name not in ("por", "symmetry")]
    if wrong:
        raise ValueError(f"{shown(wrong[0])} is neither por nor symmetry, nor none alone")
    return "por" in names, "symmetry" in names
