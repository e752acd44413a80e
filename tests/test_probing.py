"""What `p4gen doctor --host` says of a switch that does not answer; tests/lab has the rest, with packets."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from p4gen.errors import FailedError
from p4gen.library import probing
from p4gen.manager.api import Status, SwitchStatus


class Deaf:
    """A group and its manager: a call fails, and counters have grown meanwhile."""

    payload, dtype = 256, np.dtype(np.int32)

    def __init__(self, nic: dict[str, int], switch: dict[str, int]) -> None:
        self.dropped: dict[str, int] = {"bad_icrc": 2}
        self._drops: dict[str, int] = {"forward.no_route": 5}
        self._nic, self._switch = nic, switch

    def all_reduce(self, _values: Any, timeout: float) -> Any:
        self.dropped, self._drops = self._nic, self._switch
        raise FailedError(f"has not ended in {timeout:g} s")

    def report(self) -> Counter[str]:
        return Counter(sent=3)

    def status(self) -> Status:
        return Status(0.0, (), (SwitchStatus("s0", reachable=True, drops=self._drops),), ())


@pytest.mark.parametrize(
    ("nic", "switch", "said"),
    [
        ({"bad_icrc": 6}, {"forward.no_route": 5}, "this NIC has dropped 4 by bad_icrc"),
        (
            {"bad_icrc": 2},
            {"forward.no_route": 5, "lookup.bad_icrc": 1},
            "switches have dropped 1 by s0 lookup.bad_icrc",
        ),
        ({"bad_icrc": 2}, {"forward.no_route": 5}, "3 packets were sent, and nobody has counted any"),
    ],
)
def test_the_counters_of_both_ends_say_why_there_is_no_answer(
    nic: dict[str, int], switch: dict[str, int], said: str
) -> None:
    deaf: Any = Deaf(nic, switch)
    check = probing._answer(deaf, deaf, 2.0)
    assert (check.ok, check.found) == (False, f"has not ended in 2 s; {said}")
