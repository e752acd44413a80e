"""gRPC addresses: which are none, and whether anybody listens there."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from p4gen.errors import InputError
from p4gen.switch.address import checked, listens


@pytest.mark.parametrize("address", ["127.0.0.1:9559", "switch-1.lab:0", "[::1]:9559", "[fe80::1%eth0]:1", "unix:/s0"])
def test_addresses(address: str) -> None:
    assert checked(address) == address


@pytest.mark.parametrize(
    ("address", "cause"),
    [
        ("9559", "say HOST:PORT"),
        (":9559", "say HOST:PORT"),
        ("a b:9559", "say HOST:PORT"),
        ("localhost:65536", "a port is a number from 0 to 65535"),
        ("::1:9559", "an IPv6 address stands in brackets, as in [::1]:9559"),
        ("[::1:9559", "an IPv6 address stands in brackets"),
        ("[localhost]:9559", "an IPv6 address stands in brackets"),
        ("unix:", "a path follows"),
    ],
)
def test_what_is_no_address(address: str, cause: str) -> None:
    with pytest.raises(InputError) as caught:
        checked(address)
    assert caught.value.reason.startswith(f"address '{address}': {cause}")


@pytest.mark.parametrize(
    ("family", "host", "name"), [(socket.AF_INET, "127.0.0.1", "127.0.0.1"), (socket.AF_INET6, "::1", "[::1]")]
)
def test_whether_anybody_listens(family: socket.AddressFamily, host: str, name: str) -> None:
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError as error:
            pytest.skip(f"no {host} here: {error}")
        address = f"{name}:{server.getsockname()[1]}"
        assert not listens(address)
        server.listen()
        assert listens(address)
    assert not listens(address)


def test_whether_anybody_listens_at_a_unix_socket(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    assert not listens(f"unix:{path}")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()
        assert listens(f"unix:{path}")
