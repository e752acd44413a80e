"""What verbs devices are told, and what becomes of one that cannot be used."""

from __future__ import annotations

import doctest
import importlib
import sys

import pytest

from p4gen.errors import FailedError, MissingToolError
from p4gen.host.device import codes
from p4gen.host.transport.clock import MS
from p4gen.host.transport.verbs import timeout_ps


def test_examples() -> None:
    assert doctest.testmod(codes) == (0, 4)


@pytest.mark.parametrize("least", [1, 4_096_000, 8_192_000, 8_192_001, 10 * MS, 50 * MS, 10**18])
def test_timeouts_are_never_shorter_and_not_twice_as_long(least: int) -> None:
    code = codes.timeout_code(least)
    assert 1 <= code <= 31
    assert timeout_ps(code) >= least or code == 31
    assert code in (1, 31) or timeout_ps(code) < 2 * least


def test_retries() -> None:
    assert [codes.retries(count) for count in (None, 0, 3, 7, 100)] == [7, 0, 3, 7, 7]


def test_path_mtus() -> None:
    assert [codes.path_mtu(payload, 1024) for payload in (4, 256, 260, 1024)] == [256, 256, 512, 1024]
    with pytest.raises(FailedError, match="2,048 bytes are longer than the path MTU, 1,024"):
        codes.path_mtu(2048, 1024)


def test_without_pyverbs_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyverbs", None)
    monkeypatch.delitem(sys.modules, "p4gen.host.device.library", raising=False)
    with pytest.raises(MissingToolError, match="apt install python3-pyverbs"):
        importlib.import_module("p4gen.host.device.library")
