"""Logs: the same numbers, in memory or on disk."""

import numpy as np
import pytest

from p4gen.verification.search.log import Log


@pytest.mark.parametrize("most", [0, 10, 1000])
def test_a_log_has_what_was_added(most: int) -> None:
    log = Log(most)
    assert len(log.all()) == 0
    parts = [np.arange(start, start + 7, dtype=np.uint32) for start in range(0, 70, 7)]
    for part in parts:
        log.add(part)
    assert len(log) == 70
    assert log.all().tolist() == list(range(70))
    log.add(parts[0])
    assert log.all().tolist()[70:] == list(range(7))
