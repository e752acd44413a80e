"""Training jobs as phases: computation, then collectives of many groups at once (EPIC §L.1, Table 33)."""

from __future__ import annotations

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Phase:
    """Computation of all GPUs, then an AllReduce of each of the groups at the same time; either may be empty."""

    compute: float
    """Seconds."""
    groups: tuple[int, ...] = ()
    """Indices of the job's groups."""
    volume: float = 0.0
    """Bytes that each rank of a group contributes."""


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
    start: float = 0.0,
) -> Job:
    """A job whose iterations compute, then reduce in the TP groups, then in the DP groups. ``compute`` is in seconds,
    volumes are in bytes of a rank; all are per iteration."""
    inner, outer = grid(tp, dp, pp)
    phases = [Phase(compute, tuple(range(len(inner))), tp_volume)]
    if outer:
        phases.append(Phase(0.0, tuple(range(len(inner), len(inner) + len(outer))), dp_volume))
    return Job(name, tp * dp * pp, (*inner, *outer), tuple(phases), iterations, start)


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
    gradients: N/(tp·pp) elements. The data between pipeline stages is small beside it, and left out.
    """
    tp, dp, pp = tp or model.tp, dp or model.dp, pp or model.pp
    batch, flops = batch or model.batch, flops or model.flops
    compute = 6 * model.parameters * model.tokens * batch / (tp * dp * pp * flops)
    activations = 4 * model.layers / pp * (batch / dp) * model.tokens * model.hidden * model.bytes
    gradients = model.parameters * model.bytes / (tp * pp)
    return parallel_job(name, tp, dp, compute, activations, gradients, iterations, pp=pp, start=start)
