"""A training step with data or tensor parallelism, in a lab: collectives on switches beside gloo's ring, in turn.

``python -m p4gen.torch.training dp STEPS`` is the program of every rank (`p4gen lab --exec`). Rank 0
prints a line of JSON. Needs torch.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

import p4gen.torch  # noqa: F401 - registers the backend

WIDTH: Final = 128
LAYERS: Final = 4
ROWS: Final = {"dp": 8192, "tp": 1024}
"""Rows of a rank's batch; with tensor parallelism all ranks have the same one. As in EPIC's testbed, data parallelism
computes long for each gradient."""


class Block(nn.Module):
    """What a transformer does with each position by itself: two linear layers beside a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Of the same shape."""
        return rows + self.down(nn.functional.gelu(self.up(rows)))


def model(parallel: str, group: Any) -> nn.Module:
    """Blocks whose gradients (``dp``) or activations (``tp``) are added in a process group."""
    torch.manual_seed(0)
    blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
    if parallel == "dp":
        return DistributedDataParallel(blocks, process_group=group)
    # DTensor takes meshes of the same ranks and names for the same one, whatever their groups are.
    mesh = DeviceMesh.from_group(group, "cpu", mesh_dim_names=(dist.get_backend(group),))
    for block in blocks:
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return blocks


def trainer(parallel: str, group: Any) -> Callable[[], float]:
    """A function that makes a step and returns its loss."""
    blocks = model(parallel, group)
    optimizer = torch.optim.SGD(blocks.parameters(), lr=0.1)
    rank = dist.get_rank() if parallel == "dp" else 0
    rows = torch.randn(ROWS[parallel], WIDTH, generator=torch.Generator().manual_seed(rank))

    def step() -> float:
        loss = (blocks(rows) - rows.roll(1, 0)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def main(parallel: str, steps: int) -> None:
    """Make steps in turn in both groups, one after the other, and print what they took."""
    torch.set_num_threads(1)
    dist.init_process_group("inc")
    groups = {"inc": dist.group.WORLD, "gloo": dist.new_group(backend="gloo")}
    trainers = {name: trainer(parallel, group) for name, group in groups.items()}
    seconds: dict[str, list[float]] = {name: [] for name in groups}
    losses: dict[str, list[float]] = {name: [] for name in groups}
    for number in range(steps + 1):
        for name, step in trainers.items():
            dist.barrier(groups["gloo"])
            began = time.monotonic()
            losses[name].append(step())
            dist.barrier(groups["gloo"])
            if number:  # the first step makes buckets and buffers
                seconds[name].append(time.monotonic() - began)
    if dist.get_rank() == 0:
        apart = max(abs(a - b) / abs(b) for a, b in zip(losses["inc"], losses["gloo"], strict=True))
        found = {name: statistics.median(each) for name, each in seconds.items()}
        sys.stdout.write(json.dumps(found | {"apart": apart}) + "\n")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
