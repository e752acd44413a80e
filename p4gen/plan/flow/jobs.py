"""Training jobs as phases: computation, then collectives of many groups at once (EPIC §L.1, Table 33)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from itertools import combinations
from typing import Final


@dataclass(frozen=True)
class Model:
    """A model and its training: degrees of parallelism, batch, GPUs."""

    layers: int
    hidden: int
    parameters: float
    tokens: int
    """Tokens of a sequence."""
    batch: int
    """Sequences of an iteration."""
    tp: int
    dp: int
    pp: int = 1
    flops: float = 312e12
    """Floating-point operations of a GPU in a second."""
    bytes: int = 2
    """Bytes of an element."""


MODELS: Final = {
    "gpt-3-175b": Model(96, 12288, 175e9, 2048, 1536, 4, 32, 8, 125e12),
    "gpt-3-13b": Model(40, 5120, 13e9, 2048, 128, 8, 16),
    "llama-65b": Model(80, 8192, 65e9, 4096, 128, 8, 16),
    "llama-7b": Model(32, 4096, 6.7e9, 4096, 128, 8, 16),
}
"""Table 33."""


@dataclass(frozen=True)
class Group:
    """A communication group of a job: its ranks are GPUs of the job, counted from 0."""

    name: str
    ranks: tuple[int, ...]


class Call(Enum):
    """What the groups of a phase do."""

    ALLREDUCE = auto()
    HALF = auto()
    """A ReduceScatter or an AllGather."""
    EXCHANGE = auto()
    """Two ranks send to each other."""


@dataclass(frozen=True)
class Phase:
    """Computation of all GPUs, then a call of each of the groups at the same time; either may be empty."""

    compute: float
    """Seconds."""
    groups: tuple[int, ...] = ()
    """Indices of the job's groups."""
    volume: float = 0.0
    """Bytes that each rank of a group contributes, gets, or sends."""
    call: Call = Call.ALLREDUCE


@dataclass(frozen=True)
class Job:
    """A job: its phases, repeated ``iterations`` times, on ``gpus`` GPUs."""

    name: str
    gpus: int
    groups: tuple[Group, ...]
    phases: tuple[Phase, ...]
    iterations: int = 1
    start: float = 0.0
    """Seconds at which it is submitted."""


def grid(tp: int, dp: int, pp: int = 1) -> tuple[tuple[Group, ...], tuple[Group, ...]]:
    """The TP groups and the DP groups of a job with these degrees. TP ranks are neighbours, DP ranks are ``tp`` apart;
    degrees of one have no groups."""
    inner = [
        Group(f"tp{stage}.{row}", tuple((stage * dp + row) * tp + i for i in range(tp)))
        for stage in range(pp)
        for row in range(dp)
    ]
    outer = [
        Group(f"dp{stage}.{column}", tuple((stage * dp + i) * tp + column for i in range(dp)))
        for stage in range(pp)
        for column in range(tp)
    ]
    return tuple(inner) if tp > 1 else (), tuple(outer) if dp > 1 else ()


def stages(ranks: int, pp: int) -> Iterator[Group]:
    """Pairs of each rank of a pipeline's stages, of ``ranks`` each, and its successor in the next stage."""
    for first in range((pp - 1) * ranks):
        yield Group(f"pp{first // ranks}.{first % ranks}", (first, first + ranks))


def experts(gpus: int, ep: int) -> Iterator[Group]:
    """All pairs of each ``ep`` neighbours: an AlltoAll of theirs is an exchange of each pair."""
    for first in range(0, gpus - ep + 1, ep):
        for one, other in combinations(range(first, first + ep), 2):
            yield Group(f"ep{first // ep}.{one - first}.{other - first}", (one, other))


def parallel_job(
    name: str,
    tp: int,
    dp: int,
    compute: float,
    tp_volume: float,
    dp_volume: float,
    iterations: int,
    *,
    pp: int = 1,
    pp_volume: float = 0.0,
    ep: int = 1,
    ep_volume: float = 0.0,
    sharded: bool = False,
    start: float = 0.0,
) -> Job:
    """A job whose iterations compute, reduce in the TP groups, exchange what experts get and give, exchange what
    neighbours in the pipeline do, and reduce in the DP groups; ``sharded``: in these a ReduceScatter of gradients, then
    an AllGather of parameters. ``compute`` is in seconds, volumes are in bytes of a rank; all are per iteration."""
    inner, outer = grid(tp, dp, pp)
    parts = [
        (inner, tp_volume, (Call.ALLREDUCE,)),
        (tuple(experts(tp * dp * pp, ep)), ep_volume / ep, (Call.EXCHANGE,)),
        (tuple(stages(tp * dp, pp)), pp_volume, (Call.EXCHANGE,)),
        (outer, dp_volume, (Call.HALF, Call.HALF) if sharded else (Call.ALLREDUCE,)),
    ]
    groups: list[Group] = []
    phases: list[Phase] = []
    for members, volume, calls in parts:
        if members and volume:
            numbers = tuple(range(len(groups), len(groups) + len(members)))
            groups += members
            phases += [Phase(0.0, numbers, volume, call) for call in calls]
    phases = [replace(phases[0], compute=compute), *phases[1:]] if phases else [Phase(compute)]
    return Job(name, tp * dp * pp, tuple(groups), tuple(phases), iterations, start)


def training_job(
    name: str,
    model: Model,
    *,
    tp: int | None = None,
    dp: int | None = None,
    pp: int | None = None,
    batch: int | None = None,
    flops: float | None = None,
    iterations: int = 3,
    start: float = 0.0,
) -> Job:
    """A job that trains a model; by default with the degrees, batch and GPUs of the model.

    An iteration of N parameters on G GPUs computes for 6·N·s·batch/(G·flops) seconds (s tokens of a sequence). Each TP
    group reduces activations four times a layer: 4·(layers/pp)·(batch/dp)·s·hidden elements; each DP group its
    gradients: N/(tp·pp) elements. Neighbours in a pipeline exchange the activations of batch/dp sequences and their
    gradients. A pipeline of pp stages takes batch/dp + pp - 1 turns for batch/dp sequences: computation and the calls
    of TP groups are as much longer.
    """
    tp, dp, pp = tp or model.tp, dp or model.dp, pp or model.pp
    batch, flops = batch or model.batch, flops or model.flops
    sequences = batch / dp
    turns = (sequences + pp - 1) / sequences
    compute = 6 * model.parameters * model.tokens * batch / (tp * dp * pp * flops)
    between = sequences * model.tokens * model.hidden * model.bytes
    activations = 4 * model.layers / pp * between
    gradients = model.parameters * model.bytes / (tp * pp)
    volumes = turns * compute, turns * activations, gradients
    return parallel_job(name, tp, dp, *volumes, iterations, pp=pp, pp_volume=between, start=start)
