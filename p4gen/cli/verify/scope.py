"""The scope that a command line of ``p4gen verify`` describes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from p4gen.cli.options import collective_from, spec_fields, spec_from
from p4gen.cli.values import parsed
from p4gen.errors import Diagnostic, InputError
from p4gen.groups.connections import connection_entries
from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.host.transport.verbs import Recovery
from p4gen.inputs import shown
from p4gen.ptf.family import conformance_of
from p4gen.ptf.mutations import Mutation
from p4gen.rocev2.psn import PSN_MASK
from p4gen.verify.family import ScopeOrder, verification_of
from p4gen.verify.parts.flows import FlowScope
from p4gen.verify.scope import Scope
from p4gen.verify.world import Budget, Explored
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
SMALL = {"lanes": "8", "window": "3", "message": "1", "groups": "1"}
"""The program that is verified, where nothing else is asked for: the smallest with all of a mode's behaviour."""


def small_program(topology: TopologySpec, flags: Mapping[str, str | None]) -> CollectiveSpec:
    """The smallest program for a topology that has the given fields. Raises ``InputError`` for wrong values."""
    degree = max(len(ports) for name, ports in topology.ports.items() if name in topology.switches)
    small = SMALL | {"fan_in": str(degree), "ports": str(max(4, degree))}
    known = type(collective_from(None, dict(flags))).model_fields
    given: dict[str, str | None] = {name: value for name, value in flags.items() if value is not None}
    chosen: dict[str, str | None] = {name: value for name, value in small.items() if name in known}
    return collective_from(None, chosen | given)


def scope_of(topology_name: str | None, spec_file: Path | None, options: Mapping[str, Any]) -> Explored:
    """The scope that options describe. Raises ``InputError``."""
    flags = {name: options[name] for name in spec_fields()}
    given = spec_from(spec_file, flags)
    if not isinstance(given, CollectiveSpec):
        if spec_file is None:
            chosen = {name: value for name, value in flags.items() if value is not None}
            small = {name: str(value) for name, value in verification_of(given).small(given).items()}
            given = spec_from(None, {**small, **chosen})
        own = verification_of(given).scopes
        if own is None:
            return _flows(load_topology(topology_name or FLOWS), given, options)
        return own.make(given, _order(load_topology(topology_name or own.topology), given, options))
    topology = load_topology(topology_name or TREE)
    spec = small_program(topology, flags) if spec_file is None else given
    names = [name.strip() for name in options["collectives"].split(",")]
    wrong = [name for name in names if name not in list(Collective)]
    if wrong:
        raise InputError(Diagnostic("--collective", f"{shown(wrong[0])} is none of {', '.join(Collective)}"))
    return Scope(
        topology,
        spec,
        tuple(map(Collective, names)),
        options["packets"],
        options["concurrent"],
        _budget(options),
        parsed("--first-psn", _psn, options["first_psn"]),
        Flow(options["flow"]),
        PsnSync(options["sync"]),
        Recovery(options["recovery"]) if options["recovery"] else None,
        rank_window=options["rank_window"],
        fault=_fault(spec, options["fault"]),
        stale=options["stale"],
        idle_since=parsed("--idle-since", _psn, options["idle_since"]) if options["idle_since"] else None,
    )


def _flows(topology: TopologySpec, spec: ProgramSpec, options: Mapping[str, Any]) -> FlowScope:
    facet = connection_entries(spec)
    if facet is None:
        raise InputError(f"{spec.program} serves neither groups nor connections: there is nothing to search")
    _refuse_groups(f"{spec.program} serves connections", options)
    if options["forge"]:
        raise InputError(Diagnostic("--forge", f"is for switches that are endpoints; {spec.program} serves hosts' own"))
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
        parsed("--first-psn", _psn, options["first_psn"]),
        _fault(spec, options["fault"]),
    )


def _refuse_groups(what: str, options: Mapping[str, Any]) -> None:
    for name, default in OF_GROUPS.items():
        if options[name] != default:
            flag = {"collectives": "collective"}.get(name, name).replace("_", "-")
            raise InputError(Diagnostic(f"--{flag}", f"is for groups; {what}"))


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
        raise InputError(Diagnostic("--fault", f"there is no fault {shown(name)}; `p4gen ptf mutate` lists them"))
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
