"""Checks whether a program can serve the groups planned for a switch."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from p4gen.groups import addresses
from p4gen.groups.entrances import port_problems
from p4gen.groups.family import group_entries
from p4gen.groups.group import Edge, GroupContext
from p4gen.rocev2.headers import ip_text
from p4gen.vocabulary import ServingSpec
from p4gen.vocabulary.message import Collective

_SERVED = (Collective.ALLREDUCE, Collective.REDUCE, Collective.BROADCAST)


def problems(spec: ServingSpec, groups: Sequence[GroupContext]) -> Iterator[str]:
    """Every reason, in a sentence each; none when a program of ``spec`` can serve all of ``groups`` on one switch."""
    if len(groups) > spec.groups:
        yield f"{len(groups)} groups; the program has room for {spec.groups}"
    for group in groups:
        name = f"group {group.context}"
        yield from (f"{name}: {reason}" for reason in _of_group(spec, group))
        yield from (f"{name}: {reason}" for edge in group.edges for reason in _of_edge(spec, group, edge))
        yield from (f"{name}: {reason}" for reason in _of_patterns(spec, group))
        yield from (f"{name}: {reason}" for reason in _of_slots(spec, group))
    ports = sum(len(edge.entrances) for group in groups for edge in group.edges)
    if ports > spec.entrances:
        yield f"packets come in by {ports} ports of endpoints; the program has room for {spec.entrances}"
    yield from _dangling(groups)
    yield from _overlaps(spec, groups)
    yield from _blocks(spec, groups)
    edges = [edge for group in groups for edge in group.edges]
    for what, values in (
        ("context", [group.context for group in groups]),
        ("edge id", [edge.edge_id for edge in edges]),
        ("endpoint", [f"({ip_text(edge.local.ip)}, QP {edge.local.qp})" for edge in edges]),
    ):
        yield from (f"{what} {value} is used {count} times" for value, count in Counter(values).items() if count > 1)


def _of_group(spec: ServingSpec, group: GroupContext) -> Iterator[str]:
    if not 0 <= group.context < spec.groups:
        yield f"contexts of this program are 0 to {spec.groups - 1}"
    if not 1 <= len(group.edges) <= spec.fan_in:
        yield f"{len(group.edges)} edges; the program takes 1 to {spec.fan_in}"
    if not 1 <= group.epoch <= 255:
        yield f"epoch {group.epoch} is not in 1 to 255"
    if not 0 <= group.first_psn < 1 << 24:
        yield f"first PSN {group.first_psn} does not fit into 24 bits"
    yield from addresses.problems(spec, {end.ip for edge in group.edges for end in (edge.local, edge.remote)})
    pipes = sorted({spec.architecture.pipe_of(port) for edge in group.edges for port in edge.entrances})
    if len(pipes) > 1:
        yield f"its edges are in the pipes {' and '.join(map(str, pipes))}, each of which has registers of its own"
    if not 0 <= group.pipeline < spec.pipelines:
        yield f"it is in pipeline {group.pipeline}; the program has {spec.pipelines}"


def _of_edge(spec: ServingSpec, group: GroupContext, edge: Edge) -> Iterator[str]:
    where = f"edge {edge.edge_id}"
    last = group_entries(spec).last_edge_id(spec)
    if not 1 <= edge.edge_id <= last:
        yield f"edge id {edge.edge_id} is not in 1 to {last}"
    yield from (f"{where}: {problem}" for problem in port_problems(spec, (edge.port, *edge.more_ports)))
    for port in edge.entrances:
        pipeline = min(spec.architecture.front_number(port) // (spec.ports // spec.pipelines), spec.pipelines - 1)
        if pipeline != group.pipeline:
            yield f"{where} is on port {port}, which belongs to pipeline {pipeline} and not to {group.pipeline}"
    if edge.to_pipeline is None:
        return
    if not 0 <= edge.to_pipeline < spec.pipelines or edge.to_pipeline == group.pipeline:
        yield f"{where} leads to pipeline {edge.to_pipeline}, which is no other of the program's {spec.pipelines}"
    if edge.first_hop:
        yield f"{where} leads to another pipeline, so no rank is at its other end"


def _of_patterns(spec: ServingSpec, group: GroupContext) -> Iterator[str]:
    if not group.patterns:
        yield "it serves no pattern"
    for pattern in group.patterns:
        what = f"{pattern.collective} {pattern.root}"
        if pattern.collective not in _SERVED:
            yield f"{pattern.collective} is no pattern of its own; there are {', '.join(_SERVED)}"
        elif pattern.collective is Collective.ALLREDUCE and pattern.root:
            yield f"allreduce has root {pattern.root}; it has none, which is 0"
        elif not all(0 <= root < spec.roots for root in pattern.roots):
            yield f"{what}: a root is a rank from 0 to {spec.roots - 1}"
        if pattern.toward is None:
            if pattern.collective is not Collective.ALLREDUCE:
                yield f"{what}: it is not said which edge leads toward the root"
        elif not 0 <= pattern.toward < len(group.edges):
            yield f"{what}: edge number {pattern.toward} leads toward the root; there are {len(group.edges)}"
    served = Counter((pattern.collective, root) for pattern in group.patterns for root in pattern.roots)
    yield from (f"{what} {root} is given {count} times" for (what, root), count in served.items() if count > 1)


def _of_slots(spec: ServingSpec, group: GroupContext) -> Iterator[str]:
    yield from group_entries(spec).problems(spec, group)
    ranges = group.ranges()
    needed, formula = spec.needed_slots, spec.slots_formula
    if spec.own_state and group.slots != needed:
        yield f"{group.slots} slots; each context of the program has {needed}"
    if ranges and (group.slots < needed or group.slots & (group.slots - 1)):
        yield f"{group.slots} slots; it takes a power of two of at least {formula} = {needed}"
    for first, end in ranges:
        if first < 0 or end > spec.total_slots:
            yield f"slots {first} to {end - 1} exceed the {_memory(spec)}'s {spec.total_slots}"


def _dangling(groups: Sequence[GroupContext]) -> Iterator[str]:
    """The internal edges whose other end no context has, a sentence each."""
    ends = {
        (group.pipeline, edge.local.ip, edge.local.qp, edge.remote.ip, edge.remote.qp)
        for group in groups
        for edge in group.edges
        if edge.to_pipeline is not None
    }
    for group in groups:
        for edge in group.edges:
            wanted = (edge.to_pipeline, edge.remote.ip, edge.remote.qp, edge.local.ip, edge.local.qp)
            if edge.to_pipeline is not None and wanted not in ends:
                yield f"group {group.context}: edge {edge.edge_id} has no other end in pipeline {edge.to_pipeline}"


def _overlaps(spec: ServingSpec, groups: Sequence[GroupContext]) -> Iterator[str]:
    banks: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for group in groups:
        if group.block is None:
            banks[group.pipeline] += [(first, end, group.context) for first, end in group.ranges()]
    for pipeline, ranges in sorted(banks.items()):
        for (_, end, left), (first, _, right) in pairwise(sorted(ranges)):
            if end > first:
                bank = f" of pipeline {pipeline}" if spec.pipelines > 1 else ""
                yield f"group {left} and group {right} overlap at slot {first}{bank}"


def _blocks(spec: ServingSpec, groups: Sequence[GroupContext]) -> Iterator[str]:
    shared = [(group.block, group) for group in groups if group.block is not None]
    for block, group in shared:
        if not 0 <= block < spec.shared_blocks:
            yield f"group {group.context}: block {block}; the program has {spec.shared_blocks}"
    epochs = Counter((block, group.pipeline, group.epoch) for block, group in shared)
    for (block, _, epoch), count in epochs.items():
        if count > 1:
            yield f"block {block}: {count} groups share it in the same epoch {epoch}"


def _memory(spec: ServingSpec) -> str:
    return "pipeline" if spec.pipelines > 1 else "switch"
