"""What the ranks of ``p4gen sim run`` call: dispatch, and AllGather, straight or relayed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from typing_extensions import override

from p4gen.errors import Diagnostic, InputError, Option
from p4gen.net.order import RunOrder
from p4gen.papers.multiwrite.ranks.calls import SharedCall
from p4gen.papers.multiwrite.ranks.options import ALLGATHER, Relay
from p4gen.papers.multiwrite.ranks.planning import block_size, check_memory, plan
from p4gen.papers.multiwrite.ranks.relaying import Rank, Relayed, Scheme
from p4gen.papers.multiwrite.simulation import Layer
from p4gen.papers.multiwrite.spec import MultiwriteSpec
from p4gen.vocabulary.topology import TopologySpec


class RunCall(Protocol):
    """A call that all ranks of a run make."""

    @abstractmethod
    def start(self, rank: Rank) -> None:
        """Have a rank begin its part of the call."""

    @abstractmethod
    def problem(self, rank: Rank) -> str:
        """How a rank's result differs from NumPy's; "" if it does not."""
        ...

    @abstractmethod
    def layer(self, number: int) -> SharedCall:
        """What it comes to on a layer."""
        ...


@dataclass(frozen=True)
class RunPlan:
    """The calls of a run: their title, the layers that they use, and how their data is drawn."""

    title: str
    layers: tuple[Layer, ...]
    draw: Callable[[np.random.Generator], RunCall]


@dataclass(frozen=True)
class _Straight(RunCall):
    """A call over the one layer that there is."""

    call: SharedCall

    @override
    def start(self, rank: Rank) -> None:
        self.call.start(rank.members[0])

    @override
    def problem(self, rank: Rank) -> str:
        return self.call.problem(rank.members[0])

    @override
    def layer(self, _number: int) -> SharedCall:
        return self.call


def run_plan(order: RunOrder[MultiwriteSpec]) -> RunPlan:
    """The calls that an order asks for. Raises ``InputError`` if the program cannot serve them."""
    spec, topology = order.program, order.topology
    if order.collective == ALLGATHER:
        return _gather(spec, topology, order)
    made = plan(spec, len(topology.rank_hosts), order.collective, order.size, order.options)
    return RunPlan(made.title, (Layer(made.packets),), lambda chance: _Straight(made.draw(chance)))


def _gather(spec: MultiwriteSpec, topology: TopologySpec, order: RunOrder[MultiwriteSpec]) -> RunPlan:
    ranks = len(topology.rank_hosts)
    scheme = _scheme(topology, order)
    block = block_size(spec, scheme.domain, order.size)
    layers = scheme.layers(topology, block, spec.payload)
    title = f"{ALLGATHER} of {block * scheme.domain:,} bytes, {ranks} ranks{scheme}"
    check_memory(title, sum(layer.packets for layer in layers) * spec.payload * ranks * ranks)

    def draw(chance: np.random.Generator) -> RunCall:
        return Relayed(chance.integers(0, 256, (ranks, block), np.uint8), scheme, spec.payload)

    return RunPlan(title, layers, draw)


def _scheme(topology: TopologySpec, order: RunOrder[MultiwriteSpec]) -> Scheme:
    ranks, options = len(topology.rank_hosts), order.options
    relay, direct, domains = options["relay"], options["split"], options["domains"]
    if relay is not Relay.NONE:
        domains = 2
    elif direct is not None:
        raise InputError(Diagnostic(Option("split"), "there is nothing to split without --relay"))
    if ranks % domains or ranks // domains < 2:
        raise InputError(
            Diagnostic(
                Option("domains"),
                f"{ranks} ranks are not {domains} {'domains' if domains > 1 else 'domain'} of two or more",
            )
        )
    link = min(topology.setting(link, "bandwidth") for link in topology.links) // 8
    rate = options["relay_rate"] // 8
    scheme = Scheme.balanced(ranks // domains, relay, link, unicast=options["unicast"], rate=rate)
    return scheme if direct is None else replace(scheme, direct=direct)
