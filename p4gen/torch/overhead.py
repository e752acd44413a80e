"""AllReduce through ``torch.distributed`` beside the same call of ``p4gen.join``'s communicator, in turn.

``python -m p4gen.torch.overhead BYTES CALLS`` is the program of every rank (`p4gen lab --exec`). Rank 0 prints medians
in milliseconds, and their ratio.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.distributed as dist

import p4gen.torch  # noqa: F401 - registers the backend


def main(size: int, calls: int) -> None:
    """Call each of both so many times, with int32, after one call of each."""
    dist.init_process_group("inc")
    world = dist.group.WORLD
    values = np.arange(size // 4, dtype=np.int32)
    tensor = torch.from_numpy(values.copy())
    ways: dict[str, Callable[[], object]] = {
        "communicator": lambda: world.ranks.all_reduce(values),
        "torch": lambda: dist.all_reduce(tensor),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(calls + 1):
        for name, call in ways.items():
            dist.barrier()
            began = time.monotonic()
            call()
            seconds[name].append(time.monotonic() - began)
    found = {name: 1e3 * statistics.median(each[1:]) for name, each in seconds.items()}
    if dist.get_rank() == 0:
        each = ", ".join(f"{name} {median:.2f} ms" for name, median in found.items())
        sys.stdout.write(f"{size:,} bytes: {each}, {found['torch'] / found['communicator']:.2f} times\n")
    dist.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
