"""The rows of a level: the same, in memory or on disk."""

from __future__ import annotations

import errno

import numpy as np
import pytest

from p4gen.verification.search import frontier
from p4gen.verification.search.frontier import Frontier
from p4gen.verification.search.search import Search
from p4gen.verification.search.worker import Worker
from p4gen.verification.system import System
from p4gen.verification.world import Budget
from verify.scopes import scope


@pytest.mark.parametrize("most", [0, 100, 1 << 20])
def test_rows_are_taken_in_the_order_in_which_they_were_added(most: int) -> None:
    """Pieces of words of 16 bits, and of more, which a file holds one after the other."""
    level = Frontier(3, most)
    rows = np.arange(300, dtype=np.uint32).reshape(100, 3)
    rows[37] += 1 << 20
    for start in range(0, 100, 10):
        level.add(rows[start : start + 10])
        level.add(rows[:0])
    assert level.count == 100
    taken = [level.take(15) for _ in range(5)]
    assert np.concatenate(taken).tolist() == rows.tolist()
    assert level.count == 0


def test_a_search_whose_levels_are_on_disk_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scope("III", "star-3", budget=Budget(losses=1), packets=2)
    found = []
    for most in (frontier.IN_MEMORY, 0):
        monkeypatch.setattr(Frontier.__init__, "__defaults__", (most,))
        result = Search(System(one), workers=2).run()
        found.append((result.complete, result.distinct, result.transitions, result.depth, result.ends))
    assert found[0] == found[1]
    assert found[0][0]


def test_a_search_without_room_on_disk_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was counted until then is said, and nothing is called verified."""

    def full(self: Worker, fresh: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def denied(self: Worker, fresh: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    one = scope("III", packets=2)
    system = System(one)
    search = Search(system)
    keep = Worker.keep
    calls: list[int] = []

    def later(self: Worker, fresh: object) -> int:
        calls.append(1)
        return keep(self, fresh) if len(calls) < 20 else full(self, fresh)  # type: ignore[arg-type]

    monkeypatch.setattr(Worker, "keep", later)
    result = search.run()
    assert (result.complete, result.problem) == (False, None)
    assert result.why.startswith("no room for temporary files in ")
    assert result.distinct > 1
    monkeypatch.setattr(Worker, "keep", denied)
    with pytest.raises(PermissionError):
        Search(System(one)).run()
