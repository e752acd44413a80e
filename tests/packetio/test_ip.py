"""The one way to the ``ip`` command: what it prints, and what is said when it fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from p4gen.errors import FailedError, MissingToolError
from p4gen.packetio.ip import ip

needs_ip = pytest.mark.skipif(shutil.which("ip") is None, reason="ip (iproute2) is not on PATH")


@needs_ip
def test_what_it_prints() -> None:
    assert ip("-o link show lo").startswith("1: lo")
    assert ip("link show lo", "addr show lo").count(": lo") == 2


@needs_ip
@pytest.mark.parametrize("before", [(), ("env", "-u", "P4GEN")])
def test_the_command_that_fails_is_named_with_the_cause(before: tuple[str, ...]) -> None:
    said = 'ip link show no-such-link: Device "no-such-link" does not exist.'
    for commands in (["link show no-such-link"], ["link show lo", "link show no-such-link", "link show lo"]):
        with pytest.raises(FailedError) as caught:
            ip(*commands, before=before)
        assert caught.value.reason == said


def test_rights_that_are_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "ip"
    fake.write_text("#!/bin/sh\necho 'RTNETLINK answers: Operation not permitted' >&2\nexit 2\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FailedError) as caught:
        ip("link set lo up")
    assert (
        caught.value.reason == "ip link set lo up: RTNETLINK answers: Operation not permitted (CAP_NET_ADMIN is needed)"
    )


def test_a_machine_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError) as caught:
        ip("link set lo up")
    assert caught.value.reason == "ip link set lo up: ip is not on PATH: apt-get install iproute2"
    with pytest.raises(MissingToolError, match="mnexec is not on PATH"):
        ip("link set lo up", before=["mnexec", "-a", "1"])
