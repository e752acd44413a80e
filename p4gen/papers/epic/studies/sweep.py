"""EPIC's packet-level simulation repeated: its tables, and sweeps over size, loss and lossy links (§7.4, §K)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from p4gen.errors import InputError
from p4gen.families import load_collective
from p4gen.host.collectives.plan import Flow
from p4gen.host.transport.clock import SECOND, US, duration_text
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.verbs import Recovery
from p4gen.net.collectives.config import SimConfig
from p4gen.net.collectives.hosts import simulate_hosts
from p4gen.net.collectives.simulation import SimResult, simulate
from p4gen.net.mixture import JobConfig, Mixture
from p4gen.net.study import Axis, Measured, Point
from p4gen.net.traffic.traffic import MAX_FLOW, Pattern, Traffic, TrafficConfig
from p4gen.net.world.faults import Faults, Impairment
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.papers.epic.studies.tables import PAPER, M, PaperTable, Solution
from p4gen.plan.placement.placer import switch_of
from p4gen.vocabulary import CollectiveSpec
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

EPIC_PROGRAM: Final = EpicSpec(lanes=256, window=64, message=4, groups=1)
"""Suggested by the paper's simulation: payloads of 1 KB (Table 25 tends to 88.3 of 100 Gb/s), and a window that a
round trip with a recovery does not exhaust."""
EPIC_TIMEOUT: Final = {Mode.I: 7 * US, Mode.II: 8 * US, Mode.III: 7 * US}
"""A recovery over a star takes 2.8 us in either mode. Mode II's timer causes duplicates, so it is the longer one."""
EPIC_RECOVERY: Final = Recovery.IDEAL
LINKS_LOSS: Final = 0.05
LARGEST: Final = 4 * M
"""The largest of the paper's message sizes that is run by default; of Table 35 all are."""
CONGESTED: Final = 200_000_000_000
"""Table 35: bit/s of a link. Background traffic takes half of one."""
_OTHER: Final = "other"
"""The host that the first rank exchanges background traffic with."""
CONGESTED_TIMEOUT: Final = 100 * US
QUEUE: Final = 4 << 20
"""Bytes; an AllGather's Broadcasts meet at every rank, and only configured loss may occur."""

_TABLES: Final = {Axis.SIZE: 25, Axis.LOSS: 31, Axis.LINKS: 32}
"""The tables of a sweep's figures, for AllReduce."""


# --- what is run ---


def points(axis: Axis, base: SimConfig, values: Sequence[float] | None = None) -> list[Point]:
    """The points of a sweep. ``base`` gives everything that is not swept; its program's mode selects the paper's row.

    By default the paper's values, sizes to 4 MiB.
    """
    program = base.program
    solution = Solution.MODE_III if program.terminates else Solution.MODE_II
    if program.own_psns:
        solution = Solution.MODE_I
    sized = [t for t in PAPER.values() if t.collective is base.collective and t.axis is axis and solution in t.rows]
    paper = PAPER[_TABLES[axis]] if axis is not Axis.SIZE else sized[0] if sized else None
    row = paper.rows[solution] if paper and paper.collective is base.collective else {}
    given = values if values else _values(paper or PAPER[_TABLES[axis]], base)
    return [Point(solution, value, _at(axis, base, value), axis, row.get(value)) for value in given]


def table_points(number: int, base: SimConfig, values: Sequence[float] | None = None) -> list[Point]:
    """The points of one of the paper's tables, row by row.

    ``base`` gives topology, program but for its mode, size where that is not the axis, seed and engine. Raises
    ``InputError`` for a table that is not one of them.
    """
    if number not in PAPER:
        raise InputError(f"there is no table {number}: EPIC's tables of simulation are {', '.join(map(str, PAPER))}")
    table = PAPER[number]
    base = replace(base, topology=roomy(base.topology))
    rows: list[Point] = []
    for solution, row in table.rows.items():
        config = replace(solving(Solution(solution), base), collective=table.collective)
        if table.axis is Axis.NOTHING:
            config = replace(config, size=0)
        if table.collective is Collective.ALLGATHER:
            config = replace(config, timeout=CONGESTED_TIMEOUT)  # Broadcasts that meet at a rank wait for each other
        given = [0.0] if table.axis is Axis.NOTHING else values if values else _values(table, base)
        rows += [Point(solution, value, _at(table.axis, config, value), table.axis, row.get(value)) for value in given]
    return rows


def measure(solution: str, config: SimConfig) -> Measured:
    """Run a row's configuration. ``Studies.measure``."""
    row = Solution(solution)
    how: dict[Solution, Callable[[SimConfig], SimResult]] = {
        Solution.RING: simulate_hosts,
        Solution.TO_RANK0: simulate_hosts,
        Solution.CNP: beside_background,
        Solution.NO_CNP: beside_background,
    }
    result = how.get(row, simulate)(config)
    return Measured(
        figure(row, result), result.duration, result.sent, result.resent, result.timeouts, result.naks, result.cnps,
        (*result.errors, *(result.diagnosis.lines() if result.diagnosis is not None else ())),
    )  # fmt: skip


def beside_background(config: SimConfig) -> SimResult:
    """Run a call while the first rank and ``_OTHER`` send to each other, at half the rate of a link."""
    first, common = config.topology.rank_hosts[0], (config.topology, config.program)

    def flow(*hosts: str) -> TrafficConfig:
        traffic = (Traffic(Pattern.FLOW, hosts, MAX_FLOW),)
        return TrafficConfig(*common, traffic, seed=config.seed, pace=CONGESTED // 2, endless=True)

    jobs = JobConfig("call", config), JobConfig("up", flow(first, _OTHER)), JobConfig("down", flow(_OTHER, first))
    found = Mixture(jobs).run()
    call = found.jobs["call"].result
    assert isinstance(call, SimResult)
    return replace(call, errors=found.errors)


def figure(solution: Solution, result: SimResult) -> float:
    """Algorithm throughput in Gb/s, or Barriers a second; 0 when it did not end.

    One definition for all: time counts until every connection on which a rank receives results has delivered them all,
    and has its own sends acknowledged. In an AllReduce or a Barrier on a tree a connection carries both; in Mode II
    the ACK arrives a round trip after the result, as Tables 25 and 30 show, and in Mode III before it. All others
    carry results one way, so the last result is the end.
    """
    if not result.ended:
        return 0.0
    config = result.config
    both = config.collective is Collective.BARRIER or (
        config.collective is Collective.ALLREDUCE and solution is not Solution.RING
    )
    time = result.duration if both else result.last_result
    if not time:
        return 0.0
    if config.collective is Collective.BARRIER:
        return config.repeat * SECOND / time
    return config.size * config.repeat * 8 * SECOND / time / 1e9


def _values(table: PaperTable, base: SimConfig) -> list[float]:
    if table.axis is Axis.SIZE:
        return table.values if Solution.CNP in table.rows else [size for size in table.values if size <= LARGEST]
    if table.axis is Axis.LINKS:
        return [n for n in table.values if n <= len(base.topology.rank_hosts)]
    return table.values


def _at(axis: Axis, base: SimConfig, value: float) -> SimConfig:
    hosts = base.topology.rank_hosts
    match axis:
        case Axis.SIZE:
            return replace(base, size=int(value))
        case Axis.LOSS:
            return _lossy(base, hosts[:1], value / 100)
        case Axis.LINKS:
            return _lossy(base, hosts[: int(value)], LINKS_LOSS)
        case Axis.NOTHING:
            return base


def recovery_in(mode: Mode) -> Recovery:
    """The NICs' recovery in the paper's simulation; switches of Mode I accept packets in order only."""
    return Recovery.GO_BACK_N if mode.stores else EPIC_RECOVERY


def _lossy(base: SimConfig, hosts: Sequence[str], loss: float) -> SimConfig:
    more = [Impairment(host, loss=loss) for host in hosts if loss]
    return replace(base, faults=Faults((*base.faults.impairments, *more), base.faults.outages, base.faults.scripts))


# --- how the rows differ ---


def solving(solution: Solution, base: SimConfig) -> SimConfig:
    """``base`` with the settings of a table's row."""
    match solution:
        case Solution.MODE_II | Solution.MODE_III:
            mode = Mode.III if solution is Solution.MODE_III else Mode.II
            program = _program(base.program, mode, **({"reliability": "sack"} if mode.augmented else {}))
            return replace(base, program=program, recovery=EPIC_RECOVERY, timeout=EPIC_TIMEOUT[mode])
        case Solution.MODE_I | Solution.GO_BACK_N:
            mode = Mode.I if solution is Solution.MODE_I else Mode.III
            # Mode I does with W x M slots. But then the fastest rank finds no room once a result is lost, and what it
            # has under way is lost as well; here both have as many slots as Mode III needs.
            slots = _program(base.program, Mode.III).slots_per_group
            program = _program(base.program, mode, reliability="gbn", slots=slots)
            return replace(base, program=program, recovery=Recovery.GO_BACK_N, timeout=EPIC_TIMEOUT[mode])
        case Solution.NIC_SR | Solution.MODE_II_NIC_SR | Solution.MODE_II_GO_BACK_N:
            mode = Mode.III if solution is Solution.NIC_SR else Mode.II
            goes_back = solution is Solution.MODE_II_GO_BACK_N
            program = _program(base.program, mode, reliability="gbn" if goes_back else "sr")
            recovery = Recovery.GO_BACK_N if goes_back else Recovery.SELECTIVE_REPEAT
            return replace(base, program=program, recovery=recovery, timeout=EPIC_TIMEOUT[mode])
        case Solution.RING | Solution.TO_RANK0:
            program = _program(base.program, Mode.II)
            return replace(base, program=program, recovery=Recovery.SELECTIVE_REPEAT, timeout=CONGESTED_TIMEOUT)
        case Solution.CNP | Solution.NO_CNP:
            # Without CNP the switch silently drops packets out of range, as in Algorithm 2, line 32.
            quiet = {"congestion": "none", "variant": "no-nak"} if solution is Solution.NO_CNP else {}
            return replace(
                base,
                topology=congested(base.topology),
                program=_program(base.program, Mode.III, reliability="gbn", **quiet),
                recovery=Recovery.GO_BACK_N,
                timeout=CONGESTED_TIMEOUT,
                dcqcn=DcqcnConfig(line_rate=CONGESTED),
                flow=Flow.ACKS,
            )


def _program(spec: CollectiveSpec, mode: Mode, **more: Any) -> CollectiveSpec:
    given = spec.model_dump(mode="json", exclude_unset=True)
    for name in ("reliability", "congestion", "variant", "fold"):
        given.pop(name, None)
    return load_collective(None, given | {"mode": mode.value} | more)


def congested(topology: TopologySpec) -> TopologySpec:
    """Table 35's network: links of 200 Gb/s, and a host beside the ranks for the background traffic of the first
    one."""
    ranks = topology.rank_hosts
    links = [link.model_copy(update={"bandwidth": CONGESTED}) for link in topology.links]
    return topology.changed(
        hosts=(*topology.hosts, _OTHER),
        ranks=ranks,
        links=(*links, [switch_of(topology, ranks[0]), _OTHER]),
        defaults=topology.defaults.model_copy(update={"bandwidth": CONGESTED}),
    )


def roomy(topology: TopologySpec) -> TopologySpec:
    """The network, with queues that hold what all ranks may have outstanding toward one (``QUEUE``)."""
    queue = max(QUEUE, topology.defaults.queue)
    return topology.changed(defaults=topology.defaults.model_copy(update={"queue": queue}))


def assumptions(points: Sequence[Point]) -> list[str]:
    """The assumptions behind the figures."""
    config = points[0].config
    spec, link = config.program, config.topology.defaults
    solutions = list(dict.fromkeys(point.solution for point in points))
    lines = [
        f"{config.topology.name}: {link.bandwidth / 1e9:g} Gb/s and {duration_text(link.delay)} a link, "
        f"{duration_text(config.topology.switch_latency)} through a switch, queues of {link.queue >> 10:,} KiB",
        f"payload {spec.payload_bytes} bytes a packet, 58 bytes of headers and ICRC, 24 more on the wire",
        f"window {spec.window} messages of {spec.message} packets; the control message precedes the data",
        "ACK on the last packet of a message and on retransmitted packets, cumulative",
    ]
    for solution in solutions:
        mine = next(point.config for point in points if point.solution is solution)
        program = f"{mine.program.program}, {mine.program.slots_per_group} slots"
        rate = "DCQCN" if mine.dcqcn else "no congestion control"
        timer = duration_text(mine.timeout)
        lines.append(f"{solution}: {program}, recovery '{mine.nic_recovery}', timer {timer}, {rate}")
    if any(point.config.faults.impairments for point in points):
        lines.append("loss affects both directions of a link, data and ACKs alike")
    if {Solution.CNP, Solution.NO_CNP} & set(solutions):
        lines += [
            f"background: RDMA flows from the first rank to a host beside the ranks and back, {CONGESTED / 2e9:g} Gb/s "
            "each with all overhead; they queue with the call's packets at the first rank's NIC and at its switch",
            "ranks continue once their sends are acknowledged; without CNP packets out of range are "
            "silently dropped (Algorithm 2, line 32), and the two row labels are exchanged, as the text requires",
        ]
    return [
        *lines,
        "time runs from the first rank's call until all results have arrived, and if contributions and results share "
        "a connection (AllReduce, Barrier) until the contributions are acknowledged too",
    ]
