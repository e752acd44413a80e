"""Plans with an IncTree as files: ``p4gen route`` writes them, simulations and the manager's policy read them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from p4gen.errors import Diagnostic, InputError
from p4gen.inputs import quote, read_text
from p4gen.plan.placement.placer import separate_ports
from p4gen.plan.placement.tree import IncTree, TreeEdge, tree_along
from p4gen.plan.route.fabric import Fabric, Shape
from p4gen.version import __version__
from p4gen.vocabulary.topology import TopologySpec

FORM: Final = "inctree"
_Plan = TypeVar("_Plan")


def digest(topology: TopologySpec) -> str:
    """A digest of the parts of a topology that a plan depends on: nodes, links in the order of ports, and
    bandwidths."""
    links = [[*link.ends, topology.setting(link, "bandwidth")] for link in topology.links]
    text = json.dumps([topology.switches, topology.hosts, links])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class TreePlan:
    """A tree for a group on a topology, with its rate and a bound."""

    topology: TopologySpec
    ranks: tuple[str, ...]
    inc: frozenset[str]
    """Switches that aggregate."""
    shape: Shape
    pipelines: int
    """The number of pipelines of the switches' programs."""
    ports: int
    bound: float
    """No tree of the model is faster, in bit/s."""
    algorithm: str

    @cached_property
    def fabric(self) -> Fabric:
        """The fabric and the ranks that it was planned for."""
        return Fabric(self.topology, self.ranks, self.inc)

    @property
    def rate(self) -> float:
        """Bit/s of each rank, with headers."""
        return self.shape.rate(self.fabric)

    @property
    def gap(self) -> float:
        """By how much a better tree could be faster, as a share of its rate."""
        return max(0.0, 1 - self.rate / self.bound)

    @cached_property
    def tree(self) -> IncTree:
        """The tree for programs of these pipelines and ports."""
        return tree_of(self.topology, self.ranks, self.shape, self.ports // self.pipelines)

    def check(self) -> None:
        """Raises ``InputError`` with every reason why p4gen cannot forward over the tree."""
        unknown = [f"there is no switch '{name}'" for name in sorted(self.inc - set(self.topology.switches))]
        unknown += [f"there is no host '{name}'" for name in self.ranks if name not in self.topology.hosts]
        problems = unknown or list(self.shape.problems(self.fabric))
        if problems:
            raise InputError(*problems)
        separate_ports(self.tree)

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data, the content of its file."""
        loads = self.shape.loads(self.fabric)
        return {
            "plan": FORM,
            "p4gen": __version__,
            "topology": self.topology.name,
            "digest": digest(self.topology),
            "ranks": list(self.ranks),
            "aggregating": sorted(self.inc),
            "pipelines": self.pipelines,
            "ports": self.ports,
            "algorithm": self.algorithm,
            "rate_bps": self.rate,
            "bound_bps": self.bound,
            "gap": self.gap,
            "root": self.shape.root,
            "paths": [list(path) for path in self.shape.paths],
            "loads": dict(sorted(loads.items())),
            "nodes": _nodes(self.tree),
        }


def tree_of(topology: TopologySpec, ranks: tuple[str, ...], shape: Shape, ports: int | Mapping[str, int]) -> IncTree:
    """A shape as the tree of programs with so many ports of a pipeline, for all switches or each."""
    each = dict.fromkeys(topology.switches, ports) if isinstance(ports, int) else ports
    return tree_along(topology, ranks, shape.root, shape.below, each)


def _nodes(tree: IncTree) -> list[dict[str, Any]]:
    return [
        {
            "switch": node.key.switch,
            "pipeline": node.key.pipeline,
            "role": str(node.role),
            "parent": node.parent,
            "edges": [_edge(edge) for edge in node.edges],
        }
        for node in tree.nodes
    ]


def _edge(edge: TreeEdge) -> dict[str, Any]:
    return {
        "path": list(edge.path),
        "port": edge.port,
        "to": None if edge.far is None else list(edge.far),
        "ranks": sorted(edge.ranks),
    }


def read_json(file: Path, parse: Callable[[Any], _Plan]) -> _Plan:
    """Parse a file's content with ``parse``. Raises ``InputError`` with the file and the cause."""
    try:
        content = json.loads(read_text(file))
    except json.JSONDecodeError as error:
        raise InputError(Diagnostic(str(file), f"is not JSON: {error}")) from None
    try:
        return parse(content)
    except InputError as error:
        raise InputError(*(Diagnostic(str(file), each.message) for each in error.diagnostics)) from None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(Diagnostic(str(file), f"is no plan with an IncTree: {error!r}")) from None


def parsed_plan(content: Any, topology: TopologySpec) -> TreePlan:
    """Make a plan of a file's content. Raises ``InputError``, or Python's errors for missing or wrong parts."""
    if not isinstance(content, dict) or content.get("plan") != FORM:
        raise InputError("it has no IncTree; p4gen route TOPOLOGY --out makes one")
    if content["digest"] != digest(topology):
        raise InputError(
            f"it is for the topology {quote(content['topology'])} with digest {content['digest']}; "
            f"{topology.name} has {digest(topology)}"
        )
    plan = TreePlan(
        topology,
        tuple(map(str, content["ranks"])),
        frozenset(map(str, content["aggregating"])),
        Shape(str(content["root"]), tuple(tuple(map(str, path)) for path in content["paths"])),
        int(content["pipelines"]),
        int(content["ports"]),
        float(content["bound_bps"]),
        str(content["algorithm"]),
    )
    short = [path for path in plan.shape.paths if len(path) < 2]
    if short or plan.pipelines < 1 or plan.ports < plan.pipelines or plan.bound <= 0:
        raise InputError("a path has two ends at least, and pipelines, ports and the bound are positive")
    plan.check()
    if plan.to_json()["nodes"] != content["nodes"]:
        raise InputError("its nodes are not those of its paths")
    if abs(plan.rate - content["rate_bps"]) > 1e-6 * plan.rate:
        raise InputError(f"its rate is {content['rate_bps'] / 1e9:g} Gb/s; that of its paths is {plan.rate / 1e9:g}")
    return plan
