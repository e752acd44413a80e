"""Measurements: all engines in one run, with the same program and the same packets.

Rates are the best of several rounds. The rounds of all engines alternate, so that other load on the machine affects all
of them alike. Outputs are compared, so that an engine with wrong results is not measured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from p4gen.bench import bm
from p4gen.bench.workload import ByHand, Workload, benchmark_of
from p4gen.errors import FailedError
from p4gen.model import EngineName, Model
from p4gen.model.jit import Batch
from p4gen.p4 import ir, p4c
from p4gen.p4.compile import compile_text
from p4gen.scratch import scratch
from p4gen.switch import bmv2_build

THREADS = 2
BMV2_PACKETS = 10_000
ROUNDS = 20
_SLOW_SECONDS, _STRETCH = 2.0, 128
"""For engines that take packets one by one: seconds of a measurement, and packets of a round."""

INTERP, SINGLE, BATCHED, THREADED, BMV2, C = (
    "interp", "jit, packet by packet", "jit, batched", f"jit, batched, {THREADS} threads", "BMv2", "C loop",
)  # fmt: skip


_COMPILATIONS = 3
"""How often the time from P4 text to the first packet is measured; the best counts."""


@dataclass(frozen=True)
class Rate:
    """The result for one engine: ``packets`` processed in ``seconds``. ``note`` is the reason why it was not measured
    or, for BMv2, how it was built."""

    engine: str
    packets: int
    seconds: float
    note: str = ""

    @property
    def per_second(self) -> float:
        """Packets per second; 0 if the engine was not measured."""
        return self.packets / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Results:
    """All results of a workload. Times are in seconds, from P4 text to the first output packet; sizes in bytes."""

    program: str
    load: str
    passes: float
    """Mean number of passes of a packet through the switch."""
    rates: tuple[Rate, ...]
    compile_cold: float
    compile_cached: float
    front_end: float
    state_bytes: int
    snapshot: float
    restore: float
    memcpy: float

    def rate(self, engine: str) -> Rate:
        """The rate of one engine, which must be among the results."""
        return next(r for r in self.rates if r.engine == engine)

    def ratio(self, engine: str, other: str) -> float | None:
        """The rate of an engine divided by that of ``other``; None if one was not measured."""
        a, b = self.rate(engine).per_second, self.rate(other).per_second
        return a / b if a and b else None


def measure(works: Sequence[Workload], progress: Callable[[str], None] = lambda _: None) -> tuple[Results, ...]:
    """Measure the workloads of a program on all engines that this machine has. Raises ``FailedError`` when their
    outputs differ."""
    work = works[0]
    with scratch() as folder:
        progress("compiling")
        colds = [_first_packet(work, folder / f"cache{i}") for i in range(_COMPILATIONS)]
        warm = [_first_packet(work, folder / "cache0") for _ in range(_COMPILATIONS)]
        front, cold = min(f for f, _ in colds + warm), min(whole for _, whole in colds)
        cached = min(whole for _, whole in warm)
        program = compile_text(work.text, f"{work.spec.program}.p4").program
        absent = bm.why_not()
        for_bmv2 = absent if absent is not None else bm.program(work.text, folder / "bmv2")
        measured = []
        for number, each in enumerate(works):
            rates, native = _rates(each, program, for_bmv2, folder, folder / f"load{number}", progress)
            state = _snapshots(native)
            measured.append(
                Results(each.spec.program, each.load, each.passes, tuple(rates), cold, cached, front, *state)
            )
    return tuple(measured)


def _rates(
    work: Workload,
    program: ir.Program,
    for_bmv2: p4c.P4cOutput | str,
    folder: Path,
    own: Path,
    progress: Callable[[str], None],
) -> tuple[list[Rate], Model]:
    """The rates of all engines with a workload, and a native model. ``own`` is a folder for this workload alone."""
    progress(f"{work.load}: {INTERP}, {SINGLE}")
    rates = [_one_by_one(work, _model(work, program, "interp", folder / "cache0"), INTERP)]
    native = _model(work, program, "jit", folder / "cache0")
    rates.append(_one_by_one(work, native, SINGLE))
    native.reset()
    work.configure(native)
    progress(f"{work.load}: {BATCHED}, {C}")
    rates += _batches(work, program, native, folder)
    progress(f"{work.load}: {BMV2}")
    rates.insert(2, _bmv2(work, for_bmv2, own))
    return rates, native


def _model(work: Workload, program: ir.Program, engine: EngineName, cache: Path) -> Model:
    return work.configure(Model(program, engine=engine, cache=cache))


def _first_packet(work: Workload, cache: Path) -> tuple[float, float]:
    """Seconds that the front end takes, and seconds until the first packet has been processed."""
    start = time.perf_counter()
    program = compile_text(work.text, f"{work.spec.program}.p4").program
    front = time.perf_counter() - start
    model = work.configure(Model(program, engine="jit", cache=cache))
    model.process(*work.packets[0])
    return front, time.perf_counter() - start


def _one_by_one(work: Workload, model: Model, engine: str) -> Rate:
    best, begin = Rate(engine, 0, 0.0), time.perf_counter()
    for at in range(0, len(work.packets), _STRETCH):
        packets = work.packets[at : at + _STRETCH]
        start = time.perf_counter()
        for port, packet in packets:
            model.process(port, packet)
        rate = Rate(engine, len(packets), time.perf_counter() - start)
        best = max(best, rate, key=lambda r: r.per_second)
        if time.perf_counter() - begin > _SLOW_SECONDS:
            break
    return best


def _batches(work: Workload, program: ir.Program, native: Model, folder: Path) -> list[Rate]:
    batch, fresh = work.batch, native.snapshot()
    found = benchmark_of(work.spec).by_hand(work, folder)
    loop = None if isinstance(found, str) else found
    others = [_model(work, program, "jit", folder / "cache0") for _ in range(THREADS)]
    starts = [m.snapshot() for m in others]
    best = dict.fromkeys((BATCHED, THREADED, C), float("inf"))

    def time_run(engine: str, run: Callable[[], object]) -> None:
        start = time.perf_counter()
        run()
        best[engine] = min(best[engine], time.perf_counter() - start)

    for _ in range(ROUNDS):
        native.restore_snapshot(fresh)
        time_run(BATCHED, lambda: native.process_batch(batch))
        for model, start in zip(others, starts, strict=True):
            model.restore_snapshot(start)
        time_run(THREADED, lambda: _in_threads(others, batch))
        if loop is not None:
            loop.reset()
            time_run(C, loop.run)
    if loop is not None:
        _must_agree(loop, native, fresh, batch)
    rates = [Rate(BATCHED, len(batch), best[BATCHED]), Rate(THREADED, len(batch) * THREADS, best[THREADED])]
    rates.append(Rate(C, 0, 0.0, found) if isinstance(found, str) else Rate(C, len(batch), best[C]))
    return rates


def _in_threads(models: list[Model], batch: Batch) -> None:
    threads = [threading.Thread(target=m.process_batch, args=(batch,)) for m in models]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _must_agree(loop: ByHand, native: Model, fresh: np.ndarray, batch: Batch) -> None:
    loop.reset()
    native.restore_snapshot(fresh)
    if native.process_batch(batch).packets() != loop.packets(loop.run()):
        raise FailedError("the native engine and the C loop do not send the same packets")


def _bmv2(work: Workload, program: p4c.P4cOutput | str, folder: Path) -> Rate:
    if isinstance(program, str):
        return Rate(BMV2, 0, 0.0, program)
    packets = min(len(work.packets), BMV2_PACKETS)
    return Rate(BMV2, *bm.rate(work, packets, program, folder), note=str(bmv2_build.build()))


def _snapshots(native: Model) -> tuple[int, float, float, float]:
    """The size of the state, and the best times of a snapshot, a restore, and a plain copy of the same size."""
    taken = native.snapshot()
    target = np.empty_like(taken)
    runs: tuple[Callable[[], object], ...] = (
        native.snapshot,
        lambda: native.restore_snapshot(taken),
        lambda: np.copyto(target, taken),
    )
    best = [float("inf")] * 3
    for _ in range(50):
        for i, run in enumerate(runs):
            start = time.perf_counter()
            run()
            best[i] = min(best[i], time.perf_counter() - start)
    return len(taken), best[0], best[1], best[2]
