"""The baseline of EPIC's Tables 3 and 19 to 24: an MPI library's own collectives, over TCP between a lab's hosts.

``python -m p4gen.papers.epic.experiments.mpi COLLECTIVE LARGEST`` is the program of every rank of ``p4gen lab --exec``.
Rank 0 starts MPICH's ``mpiexec``, which would start a proxy on each host over SSH: hosts of a lab have no SSH, so
``-launcher manual`` prints the proxies' commands, and each rank runs its own. A proxy starts the MPI process of its
host, which is this module with ``--process`` in front. The process of rank 0 prints one line of JSON.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from multiprocessing.connection import Client, Listener
from pathlib import Path
from statistics import fmean
from typing import Any, Final

import numpy as np

from p4gen.host.collectives.arrays import Array
from p4gen.labs.runs.figures import LARGEST, calls_of, parts_of
from p4gen.labs.runs.timed import warm_up
from p4gen.papers.epic.studies.emulated import CALLS, SIZES
from p4gen.vocabulary.message import Collective

_PROCESS: Final = "--process"
_LAUNCH: Final = "HYDRA_LAUNCH: "
"""What mpiexec prints before a command that is to be run on a host; commands have the number of their proxy."""
_LAST: Final = "HYDRA_LAUNCH_END"
"""What it prints behind the last one."""
_OVER_TCP: Final = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp"}
_TRIES, _PAUSE_S = 600, 0.1
"""How often, and after how long, a rank looks for rank 0, which starts when it does."""
_BLOCK: Final = 1 << 20
"""Elements that are compared at a time."""
_RANGE: Final = 1 << 20
"""One more than the largest element, so that sums of many ranks fit."""


def main(arguments: list[str]) -> int:
    """Run a rank, or with ``--process`` an MPI process. Returns the exit status."""
    if arguments[0] == _PROCESS:
        return _measure(Collective(arguments[1]), int(arguments[2]))
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    return _start(address, ranks, arguments) if rank == 0 else _follow(address, rank)


def _start(address: tuple[str, int], ranks: int, arguments: list[str]) -> int:
    hosts = ",".join(f"{host}:1" for host in os.environ["P4GEN_RANKS"].split(","))
    command = [str(Path(sys.executable).with_name("mpiexec")), "-launcher", "manual", "-localhost", address[0]]
    command += ["-disable-hostname-propagation", "-hosts", hosts, "-n", str(ranks)]
    command += [sys.executable, "-m", __spec__.name, _PROCESS, *arguments]
    environment = os.environ | _OVER_TCP
    with (
        Listener(address) as listener,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as starter,
    ):
        assert starter.stdout is not None
        proxies: dict[int, list[str]] = {}
        for line in starter.stdout:
            if line.startswith(_LAUNCH):
                words = shlex.split(line.removeprefix(_LAUNCH))
                proxies[int(words[words.index("--proxy-id") + 1])] = words
            elif line.startswith(_LAST):
                subprocess.Popen(proxies[0], env=environment)
                for _ in range(ranks - 1):
                    with listener.accept() as rank:
                        rank.send(proxies[rank.recv()])
            else:
                sys.stdout.write(line)
        return starter.wait()


def _follow(address: tuple[str, int], rank: int) -> int:
    for _ in range(_TRIES):
        try:
            with Client(address) as first:
                first.send(rank)
                command = first.recv()
            return subprocess.run(command, env=os.environ | _OVER_TCP, check=False).returncode
        except OSError:
            time.sleep(_PAUSE_S)
    sys.stderr.write(f"rank 0 does not answer at {address[0]}\n")
    return 1


def _measure(collective: Collective, largest: int) -> int:
    from mpi4py import MPI  # noqa: PLC0415 - its import starts MPI, which only a process of mpiexec's can

    world = MPI.COMM_WORLD
    rows = []
    for size in [0] if collective is Collective.BARRIER else [each for each in SIZES if each <= largest]:
        parts = parts_of(size)
        calls, problem = _calls(world, collective, min(size, LARGEST))
        for _ in range(warm_up(size)):
            calls()
        times = []
        for _ in range(calls_of(size, CALLS) * parts):
            world.Barrier()
            begun = time.perf_counter()
            calls()
            times.append(world.allreduce(time.perf_counter() - begun, MPI.MAX))
        rates = [(size * 8 / 1e6 or 1) / sum(times[at : at + parts]) for at in range(0, len(times), parts)]
        if wrong := problem():
            sys.stderr.write(f"{collective} of {size:,} bytes at rank {world.rank}: {wrong}\n")
            world.Abort(1)
        rows.append({"collective": collective, "size": size, "mean": fmean(rates), "calls": len(rates)})
    if world.rank == 0:
        sys.stdout.write(json.dumps({"library": MPI.Get_library_version().split("\n")[0], "rows": rows}) + "\n")
    return 0


def _calls(world: Any, collective: Collective, size: int) -> tuple[Callable[[], Any], Callable[[], str]]:
    """What makes a call, and what compares its result with the ranks' data; "" if they are equal."""
    elements, everyone = size // 4, range(world.size)
    share = elements // world.size
    first = share * world.rank
    own = _data(world.rank, 0, share if collective is Collective.ALLGATHER else elements)
    match collective:
        case Collective.BARRIER:
            return world.Barrier, str
        case Collective.BROADCAST:
            return partial(world.Bcast, own), partial(_difference, own, 0, [0])
        case Collective.ALLREDUCE:
            out = np.empty(elements, np.int32)
            return partial(world.Allreduce, own, out), partial(_difference, out, 0, everyone)
        case Collective.REDUCE:
            out = np.empty(0 if world.rank else elements, np.int32)
            return partial(world.Reduce, own, out), partial(_difference, out, 0, everyone)
        case Collective.REDUCE_SCATTER:
            out = np.empty(share, np.int32)
            return partial(world.Reduce_scatter_block, own, out), partial(_difference, out, first, everyone)
        case _:
            out = np.empty(share * world.size, np.int32)
            blocks = np.split(out, world.size)
            return partial(world.Allgather, own, out), lambda: next(
                filter(None, (_difference(block, 0, [rank]) for rank, block in enumerate(blocks))), ""
            )


def _data(rank: int, first: int, last: int) -> Array:
    """The elements of a rank from the first to the one before the last."""
    found: Array = (np.arange(first, last) * (2 * rank + 1) % _RANGE).astype(np.int32)
    return found


def _difference(out: Array, first: int, ranks: Iterable[int]) -> str:
    """How a result differs from the sum of what ranks have from the element ``first`` on; "" if it does not."""
    for start in range(0, out.size, _BLOCK):
        block = out[start : start + _BLOCK]
        sums = sum(_data(rank, first + start, first + start + block.size) for rank in ranks)
        if (block != sums).any():
            return f"results differ from element {start + int((block != sums).argmax())} on"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
