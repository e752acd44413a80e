"""What a manager's status says, as metrics for Prometheus.

Labels are names of groups, switches, modules and the like, of what there is now: their number is bounded, and what is
gone has no metric any more. Rates and sums over time are for who asks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from typing_extensions import override

from p4gen.manager.access.tenants import tenant_of
from p4gen.manager.api import ConnectionState, GroupState, Manager, ManagerError
from p4gen.manager.durations import BOUNDS_S
from p4gen.manager.statistics import Statistics, statistics

Sample = tuple[tuple[str, ...], float]
"""The values of a metric's labels, and its own."""


@dataclass(frozen=True)
class Family:
    """A metric: ``samples`` finds it in a manager's statistics. A name that ends in ``_total`` is a counter's."""

    name: str
    help: str
    labels: tuple[str, ...]
    samples: Callable[[Statistics], Iterable[Sample]]

    def metric(self, found: Statistics) -> Metric:
        """The metric with its samples."""
        kind = CounterMetricFamily if self.name.endswith("_total") else GaugeMetricFamily
        metric = kind(self.name, self.help, labels=self.labels)
        for labels, value in self.samples(found):
            metric.add_metric(labels, value)
        return metric


def _of_groups(field: str, name: str, text: str) -> Family:
    """A number of each group."""

    def samples(found: Statistics) -> Iterator[Sample]:
        for group in found["groups"]:
            yield (tenant_of(group["name"]), group["name"]), float(group[field])

    return Family(f"p4gen_group_{name}", text, ("tenant", "group"), samples)


def _of_switches(field: str, name: str, text: str) -> Family:
    """A number of each switch, or the number of what a list of it has."""

    def samples(found: Statistics) -> Iterator[Sample]:
        for switch in found["switches"]:
            value = switch[field]
            yield (switch["name"],), float(len(value) if isinstance(value, list) else value)

    return Family(f"p4gen_switch_{name}", text, ("switch",), samples)


def _states(what: str, kinds: Iterable[str]) -> Callable[[Statistics], Iterator[Sample]]:
    def samples(found: Statistics) -> Iterator[Sample]:
        counts = Counter(each["state"] for each in found[what])
        yield from (((state,), counts[state]) for state in map(str, kinds))

    return samples


def _drops(found: Statistics) -> Iterator[Sample]:
    for switch in found["switches"]:
        for place, packets in switch["drops"].items():
            module, _, reason = place.partition(".")
            yield (switch["name"], module, reason), packets


def _nic_drops(found: Statistics) -> Iterator[Sample]:
    counts = Counter[tuple[str, str]]()
    for rank in found["ranks"]:
        for reason, packets in rank["dropped"].items():
            counts[rank["group"], reason] += packets
    yield from (((tenant_of(group), group, reason), packets) for (group, reason), packets in counts.items())


def _connection_packets(found: Statistics) -> Iterator[Sample]:
    counts = Counter[str]()
    for connection in found["connections"]:
        counts.update(connection["counts"])
    yield from (((name,), packets) for name, packets in counts.items())


FAMILIES: Final = (
    Family("p4gen_groups", "Groups, by state.", ("state",), _states("groups", GroupState)),
    _of_groups("ranks", "ranks", "Ranks of the group."),
    _of_groups("generation", "generation", "The group's generation."),
    _of_groups("ring", "on_ring", "Whether its calls run on a ring of hosts, 0 or 1."),
    _of_groups("invocations", "calls_total", "Calls that a rank has completed."),
    _of_groups("data_bytes", "data_bytes_total", "Bytes of completed calls, of each call its own size."),
    _of_groups("sent", "sent_packets_total", "Packets that its ranks have sent, those sent again included."),
    _of_groups("resent", "resent_packets_total", "Packets that its ranks have sent again."),
    _of_groups("timeouts", "timeouts_total", "Retransmission timers that have run out."),
    _of_groups("naks", "naks_total", "NAKs that its ranks have received."),
    _of_groups("cnps", "cnps_total", "Congestion notifications that its ranks have received."),
    Family(
        "p4gen_nic_drops_total", "Frames that NICs of ranks have dropped.", ("tenant", "group", "reason"), _nic_drops
    ),
    _of_switches("reachable", "reachable", "Whether the switch answers, 0 or 1."),
    _of_switches("contexts", "contexts", "Contexts in use."),
    _of_switches("contexts_total", "contexts_limit", "Contexts that the program has."),
    _of_switches("slots", "slots", "Slots in use, over all pipelines."),
    _of_switches("slots_total", "slots_limit", "Slots that the program has, over all pipelines."),
    _of_switches("entries", "entries", "Table entries that the agent has installed."),
    _of_switches("ticks_per_second", "ticks_per_second", "Ticks that the agent sends."),
    _of_switches("links_down", "links_down", "Neighbours that cannot be reached."),
    Family("p4gen_switch_drops_total", "Packets that the program has dropped.", ("switch", "module", "reason"), _drops),
    Family(
        "p4gen_leases", "Groups that hold their switches by a lease.", (), lambda s: [((), s["leases"].get("held", 0))]
    ),
    Family(
        "p4gen_lease_requests_total", "Calls for which a group asked for a lease, by outcome.", ("outcome",),
        lambda s: [((outcome,), count) for outcome, count in s["leases"].items() if outcome != "held"],
    ),
    Family(
        "p4gen_connections", "Registered connections, by state.", ("state",), _states("connections", ConnectionState)
    ),
    Family(
        "p4gen_connection_packets", "Packets of registered connections that their switches count, by counter.",
        ("counter",), _connection_packets,
    ),
    Family(
        "p4gen_handshakes_total", "Messages of RDMA CM, by outcome.", ("outcome",),
        lambda s: [((outcome,), count) for outcome, count in s["handshakes"].items()],
    ),
)  # fmt: skip
"""All metrics but ``UP`` and ``WRITES``."""
UP: Final = "p4gen_manager_up"
WRITES: Final = "p4gen_switch_write_seconds"


class ManagerMetrics(Collector):
    """The metrics of a manager, which is asked each time. Of one that does not answer only ``UP`` is left, which is
    0."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager

    @override
    def collect(self) -> Iterator[Metric]:
        try:
            found = statistics(self._manager.status())
        except ManagerError:
            yield GaugeMetricFamily(UP, "Whether the manager answers, 0 or 1.", 0)
            return
        yield GaugeMetricFamily(UP, "Whether the manager answers, 0 or 1.", 1)
        for family in FAMILIES:
            yield family.metric(found)
        yield _writes(found)


def _writes(found: Statistics) -> Metric:
    text = "P4Runtime requests of the agent that write, and how long they took."
    metric = HistogramMetricFamily(WRITES, text, labels=("switch",))
    bounds = [*map(str, BOUNDS_S), "+Inf"]
    for switch in found["switches"]:
        durations: dict[str, Any] = switch["writes"]
        counts = durations["counts"] or [0] * len(bounds)
        buckets = list(zip(bounds, accumulate(counts), strict=True))
        metric.add_metric((switch["name"],), buckets, durations["seconds"])
    return metric
