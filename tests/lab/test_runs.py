"""What hosts are asked in a run, and what their answers come to; the hosts are made up."""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import create_autospec

import pytest
from patience import PATIENCE_S, until

from p4gen.errors import FailedError, InputError
from p4gen.labs.calls import CallOrder
from p4gen.labs.hosts.ranks import PreparedCall, Ranks
from p4gen.labs.hosts.tasks import Answer, Batch, BatchTask
from p4gen.labs.job import Wanted
from p4gen.labs.parties import Party
from p4gen.labs.processes import Process
from p4gen.labs.runs.run import Run
from p4gen.labs.runs.usage import Usage, total, usages
from p4gen.labs.session import Lab
from p4gen.manager.ranks.calls import CallResult
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.scin.spec import ScinSpec
from p4gen.plan.placement.windows import Schedule
from p4gen.records import from_plain, to_plain
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import load_topology

HOSTS = ("h0", "h1", "h2")
CALL = CallOrder("allreduce", 4096)
BARRIER = CallOrder("barrier", 0)


class FakeLab:
    """A lab whose hosts answer as a test wants. ``wrong`` are the calls by their numbers in a run, with barriers, of
    which rank 1 has a wrong result; hosts in ``failing`` refuse to run, with a reason."""

    def __init__(self, spec: ProgramSpec, wrong: set[int] | None = None, failing: dict[str, str] | None = None) -> None:
        self.wrong, self.failing = wrong or set(), failing or {}
        self.asked: list[tuple[str, str]] = []
        """Hosts, and what they were asked."""
        self.batches: dict[str, list[Batch]] = defaultdict(list)
        self.times: dict[str, list[float]] = defaultdict(list)
        self.given_up: list[Party] = []
        self.job = SimpleNamespace(spec=spec)
        self.hosts = {name: SimpleNamespace(ask=self._asks(name), call=self._counters) for name in HOSTS}
        self.topology = SimpleNamespace(switches=(), hosts=())
        self.parties = SimpleNamespace(give_up=self._give_up)
        self.traced, self.switch_drops = list, dict

    def check_running(self, hosts: Any) -> None:
        assert tuple(hosts) == HOSTS

    def _give_up(self, party: Party) -> list[str]:
        self.given_up.append(party)
        return ["g is destroyed"]

    def _counters(self, _do: str) -> dict[str, Any]:
        return {"groups": {}, "faults": {}, "refused": {}, "undelivered": 0, "kernel_drops": 0}

    def _asks(self, name: str) -> Any:
        def ask(do: str, group: str, batch: Any = None, times: Any = ()) -> Future[dict[str, Any]]:
            assert group == "g"
            self.times[name] += times
            self.asked.append((name, do))
            future: Future[dict[str, Any]] = Future()
            if do == "prepare":
                self.batches[name].append(from_plain(Batch, batch))
                future.set_result({})
            elif name in self.failing:
                future.set_exception(FailedError(self.failing[name]))
            else:
                future.set_result({"answers": [to_plain(each) for each in self._answers(name)]})
            return future

        return ask

    def _answers(self, name: str) -> list[Answer]:
        rank, batch = HOSTS.index(name), self.batches[name][-1]
        numbers = range(batch.first, batch.first + len(batch.calls))
        return [Answer(100 + rank, 200 + rank, 1, False, "wrong" * (rank == 1 and n in self.wrong)) for n in numbers]

    def run(self, calls: list[CallOrder], **options: Any) -> Run:
        return Run(cast(Lab, self), Party("g", HOSTS, ""), calls, seed=1, **options)


def test_a_node_has_used_processor_time_and_carried_packets(tmp_path: Path) -> None:
    star = load_topology("star-4")
    lab = SimpleNamespace(topology=star, job=SimpleNamespace(ports_of=lambda name: dict(enumerate(star.ports[name]))))
    counts = {"in_packets": 10, "out_packets": 20}
    lab.link_counters = lambda name: dict.fromkeys(lab.job.ports_of(name), counts)
    spins = Process("spins", [sys.executable, "-c", "while True: pass"], tmp_path / "log", lambda: True)
    ended = Process("ended", ["true"], tmp_path / "log", lambda: True)
    for process in (spins, ended):
        process.start()
    ended.end()
    lab.switches = {"s0": spins}
    lab.hosts = {name: SimpleNamespace(process=ended) for name in star.hosts}
    try:
        before = usages(cast(Lab, lab))
        assert [before[name] for name in star.hosts] == [Usage(0.0, 30)] * 4
        until(lambda: usages(cast(Lab, lab))["s0"].seconds > before["s0"].seconds)
    finally:
        spins.end()
    assert before["s0"].packets == total(before, star.hosts).packets == 120
    assert Usage(3.0, 130).since(Usage(1.0, 120)).microseconds == pytest.approx(2e5)
    assert Usage(1.0, 5).since(Usage(2.0, 10)) == Usage()


def test_hosts_prepare_before_any_runs_and_a_barrier_is_one_of_the_calls() -> None:
    lab = FakeLab(EpicSpec())
    outcome = lab.run([CALL, CALL, CALL], ahead=8192).result()
    assert outcome.ok
    assert [each.call for each in outcome.calls] == [CALL] * 3
    assert {each.duration for each in outcome.calls} == {102}
    in_turn = [(name, do) for do in ("prepare", "run") for name in HOSTS]
    assert lab.asked == in_turn * 2
    for batches in lab.batches.values():
        assert [batch.calls for batch in batches] == [(BARRIER, CALL) * 2, (BARRIER, CALL)]
        assert [batch.first for batch in batches] == [0, 4]


@pytest.mark.parametrize(("spec", "options"), [(ScinSpec(), {}), (EpicSpec(), {"aligned": False})])
def test_calls_that_are_not_aligned(spec: ProgramSpec, options: dict[str, Any]) -> None:
    lab = FakeLab(spec)
    assert lab.run([CALL, CALL], **options).result().ok
    assert [(batch.calls, batch.first) for batch in lab.batches["h0"]] == [((CALL,), 0), ((CALL,), 1)]


def test_calls_of_a_schedule_begin_in_its_windows_at_all_hosts() -> None:
    lab = FakeLab(EpicSpec())
    lab.job.wanted = Wanted(period=8.0)
    windows = ((0.75, 1.0), (0.25, 0.5))
    began = time.monotonic()
    assert lab.run([CALL] * 5, aligned=False, ahead=1 << 20, schedule=Schedule("lab", windows)).result().ok
    assert lab.times["h0"] == lab.times["h1"] == lab.times["h2"]
    first, *_ = lab.times["h0"]
    assert first > began + 8
    assert first % 8 == 2
    assert [at - first for at in lab.times["h0"]] == [0, 4, 8, 12, 16]


def test_a_run_ends_at_a_wrong_result_and_the_group_stays() -> None:
    lab = FakeLab(EpicSpec(), wrong={3})
    outcome = lab.run([CALL] * 5).result()
    assert [each.problems for each in outcome.calls] == [(), ("rank 1, allreduce 1: wrong",)]
    assert len(lab.batches["h0"]) == 2
    assert not lab.given_up


def test_ranks_that_fail_for_the_same_reason_tell_it_once() -> None:
    why = "allreduce of group g has not ended in {} s: the group is broken"
    lab = FakeLab(EpicSpec(), failing={"h0": why.format(3), "h1": why.format(4), "h2": "another reason"})
    outcome = lab.run([CALL]).result()
    assert outcome.failures == (why.format(3), "another reason", "h1: the same", "g is destroyed")
    assert (outcome.calls, len(lab.given_up)) == ((), 1)


def test_a_rank_that_leaves_a_barrier_too_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = FakeLab(EpicSpec())
    times = {"h0": (100, 150), "h1": (100, 250), "h2": (200, 250)}
    monkeypatch.setattr(lab, "_answers", lambda name: [Answer(*times[name], 1, False, "")])
    outcome = lab.run([BARRIER], aligned=False).result()
    assert outcome.problems == ("rank 0 left barrier 0 before all had reached it",)


def test_a_process_that_has_ended_is_told_and_the_group_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = FakeLab(EpicSpec())

    def check_running(_hosts: Any) -> None:
        raise FailedError("the manager has ended")

    monkeypatch.setattr(lab, "check_running", check_running)
    lab.hosts["h2"] = SimpleNamespace(ask=lambda *_, **__: Future(), call=lab._counters)
    with pytest.raises(FailedError) as failed:
        lab.run([CALL]).result()
    assert [each.message for each in failed.value.diagnostics] == ["the manager has ended", "g is destroyed"]


# --- a host's task ---


def task(*calls: PreparedCall) -> BatchTask:
    ranks = create_autospec(Ranks, instance=True)
    ranks.progress.return_value = 0.25
    return BatchTask("g", ranks, calls, Batch((CALL,) * len(calls), 1, 0, PATIENCE_S))


def test_a_task_makes_its_calls_in_turn() -> None:
    begun: list[Future[CallResult]] = []

    def begin(patience: float) -> Future[CallResult]:
        assert 0 < patience <= PATIENCE_S
        begun.append(Future())
        return begun[-1]

    made = task(*[PreparedCall(begin, lambda value: f"not {value}")] * 2)
    assert not begun
    made.start()
    until(lambda: len(begun) == 1)
    assert (made.progress(), made.done) == (0.25, False)
    begun[0].set_result(CallResult(5, 1, 2))
    until(lambda: len(begun) == 2)
    assert made.progress() == 1.25
    begun[1].set_result(CallResult(6, 3, 4, begun=2, ring=True))
    assert made.answers() == [Answer(1, 2, 1, False, "not 5"), Answer(3, 4, 2, True, "not 6")]
    assert (made.done, made.problem, made.progress()) == (True, "", 2)


def test_a_task_waits_for_the_time_of_a_call() -> None:
    begun: list[float] = []

    def begin(_: float) -> Future[CallResult]:
        begun.append(time.monotonic())
        ended: Future[CallResult] = Future()
        ended.set_result(CallResult(5, 1, 2))
        return ended

    made = task(*[PreparedCall(begin, lambda _: "")] * 3)
    now = time.monotonic()
    times = now + 0.1, now - 1, now + 0.2
    made.start(times)
    assert len(made.answers()) == 3
    assert all(at >= earliest for at, earliest in zip(begun, times, strict=True))


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (FailedError("no path"), "allreduce: no path"),
        (FailedError("allreduce of group g: no path"), "allreduce of group g: no path"),
        (InputError("32 bytes"), "allreduce: 32 bytes"),
        (KeyError("x"), "allreduce: KeyError: 'x'"),
    ],
)
def test_a_task_whose_call_fails_makes_no_other(error: Exception, problem: str) -> None:
    failed: Future[CallResult] = Future()
    failed.set_exception(error)
    made = task(PreparedCall(lambda _: failed, str), PreparedCall(lambda _: pytest.fail("begun"), str))
    made.start()
    with pytest.raises(FailedError, match=problem):
        made.answers()
    assert (made.done, made.problem) == (True, problem)
