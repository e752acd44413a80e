"""The demands of a plan's rate on a program's ranks: the window that keeps a link busy, and timers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from p4gen.groups.wire import headers
from p4gen.host.transport.clock import SECOND, US
from p4gen.plan.route.planfile import TreePlan
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.ticks import EVERY_US
from p4gen.vocabulary.topology import TopologySpec

MOST_WINDOW: Final = 1024
_TRIPS: Final = 4
"""Round trips whose data a window holds: results take one, their ACKs another, and queues make them longer."""
_LEAST: Final = 8
"""The fewest messages of a window, as it moves on by whole messages."""
_FILLED: Final = 0.75
"""Share of a queue that windows may fill."""


def round_trip(plan: TreePlan, spec: CollectiveSpec) -> float:
    """Seconds from a rank to the root and back, without queues."""
    topology = plan.topology
    packet = 8 * (spec.payload_bytes + headers(spec))
    slowest = min(plan.fabric.bandwidths[name] for name in plan.shape.loads(plan.fabric))
    delay = max(topology.setting(link, "delay") for link in topology.links)
    hop: float = (delay + topology.switch_latency) / SECOND + packet / slowest
    return 2.0 * plan.shape.depth(plan.shape.root) * hop


def window(plan: TreePlan, spec: CollectiveSpec) -> int:
    """W with which the plan's rate is reached."""
    return window_of(plan.topology, plan.shape.loads(plan.fabric), plan.rate, round_trip(plan, spec), spec, paced=False)


def window_of(
    topology: TopologySpec, loads: Mapping[str, int], rate: float, trip: float, spec: CollectiveSpec, *, paced: bool
) -> int:
    """The window, in messages, with which flows have this rate in bit/s, at a round trip in s. It is less where the
    windows of a link's flows, by its name, would overrun its queue, or wait there longer than ticks take until an edge
    sends again; those of ``paced`` flows do not wait."""
    message = 8 * spec.message * (spec.payload_bytes + headers(spec))
    wanted = max(_LEAST, math.ceil(_TRIPS * rate * trip / message) + 3)
    used = [(link, loads[link.name]) for link in topology.links if loads.get(link.name)]
    room = _FILLED * 8 * min(topology.setting(link, "queue") / flows for link, flows in used)
    if spec.wants_ticks and not paced:
        room = min(room, EVERY_US / 1e6 * min(topology.setting(link, "bandwidth") / flows for link, flows in used))
    return max(2, min(wanted, int(room / message), MOST_WINDOW))


def timeout(plan: TreePlan, spec: CollectiveSpec) -> int:
    """A retransmission timer, in ps, that is longer than the windows of all flows wait at the fullest link."""
    return timeout_of(plan.rate, round_trip(plan, spec), spec)


def timeout_of(rate: float, trip: float, spec: CollectiveSpec) -> int:
    """The retransmission timer, in ps, for flows of ``rate`` bit/s with a round trip of ``trip`` s."""
    window_bits = 8 * spec.window * spec.message * (spec.payload_bytes + headers(spec))
    return 50 * US + int((4 * window_bits / rate + 4 * trip) * SECOND)
