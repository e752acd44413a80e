"""Who reaches a manager: by a socket its user, by TCP who shows a certificate of the right authority."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from patience import PATIENCE_S

from p4gen.errors import InputError
from p4gen.manager.api import Code, ManagerError
from p4gen.manager.process import running_manager
from p4gen.manager.remote.client import ManagerClient
from p4gen.manager.remote.service import SERVICE, ManagerServer
from p4gen.manager.remote.tls import VARIABLE, check_exposed, client_identity, read_identity
from p4gen.protos import incmanager as pb
from p4gen.switch.running import scratch

from .certificates import certificates
from .test_service import FakeManager

NOBODY = 65534


@pytest.fixture
def folder() -> Iterator[Path]:
    with scratch() as made:
        yield made


@pytest.fixture
def server(folder: Path) -> Iterator[ManagerServer]:
    """At a unix socket and, with TLS, at a port."""
    identity = read_identity(certificates() / "manager")
    with ManagerServer(FakeManager(), f"unix:{folder}/m.sock", "127.0.0.1:0", identity=identity) as made:
        yield made


def refused(client: ManagerClient) -> str:
    with client, pytest.raises(ManagerError) as caught:
        client.groups()
    assert caught.value.code is Code.UNREACHABLE
    return caught.value.reason


def test_a_certificate_of_the_authority_is_served(server: ManagerServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = server.addresses[1]
    with ManagerClient(address, tls=certificates() / "alice") as client:
        assert client.groups() == []
    with ManagerClient(address.replace("127.0.0.1", "localhost"), tls=certificates() / "bob") as client:
        assert client.groups() == []
    monkeypatch.setenv(VARIABLE, str(certificates() / "ops"))
    with ManagerClient(address) as client:
        assert client.groups() == []
    with ManagerClient(server.addresses[0]) as client:
        assert client.groups() == [], "a socket needs none"


def test_a_port_without_a_certificate_gives_nothing(server: ManagerServer) -> None:
    assert "no certificate was shown (--tls, P4GEN_TLS)" in refused(ManagerClient(server.addresses[1]))
    authority = (certificates() / "ca.crt").read_bytes()
    for credentials in (None, grpc.ssl_channel_credentials(authority), grpc.ssl_channel_credentials()):
        address = server.addresses[1]
        made = grpc.insecure_channel(address) if credentials is None else grpc.secure_channel(address, credentials)
        with made as channel:
            ask = channel.unary_unary(f"/{SERVICE}/ListGroups", lambda m: m.SerializeToString(), lambda data: data)
            with pytest.raises(grpc.RpcError) as caught:
                ask(pb.ListGroupsRequest(), timeout=PATIENCE_S)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("mine", ["of another authority", "of a server", "of nobody"])
def test_other_certificates_are_refused(server: ManagerServer, folder: Path, mine: str) -> None:
    if mine == "of another authority":
        taken = shutil.copytree(certificates("another") / "alice", folder / "mine")
        shutil.copy(certificates() / "ca.crt", taken)  # so that it trusts the manager
    elif mine == "of a server":
        taken = certificates() / "manager"
    else:
        taken = shutil.copytree(certificates() / "alice", folder / "mine")
        command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-noenc", "-subj", "/CN=alice", "-days", "1"]
        command += ["-keyout", str(taken / "tls.key"), "-out", str(taken / "tls.crt")]
        subprocess.run(command, check=True, capture_output=True)
    assert "it may not accept the certificate that was shown" in refused(ManagerClient(server.addresses[1], tls=taken))


def test_a_client_refuses_a_manager_of_another_authority(server: ManagerServer) -> None:
    assert "CERTIFICATE_VERIFY_FAILED" in refused(
        ManagerClient(server.addresses[1], tls=certificates("another") / "alice")
    )


def test_a_socket_is_its_user_s_alone(server: ManagerServer, folder: Path) -> None:
    path = folder / "m.sock"
    assert path.stat().st_mode & 0o777 == 0o600
    if os.geteuid():
        pytest.skip("only root can become somebody else")
    os.chmod(folder, 0o755)
    program = """
import os, socket, sys
os.setgid(int(sys.argv[2])), os.setuid(int(sys.argv[2]))
try:
    socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError as error:
    print(error.strerror)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), str(NOBODY)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "Permission denied\n"


def test_what_is_wrong_with_a_folder_is_said(folder: Path) -> None:
    def why() -> str:
        with pytest.raises(InputError) as caught:
            ManagerClient("127.0.0.1:1", tls=folder)
        return str(caught.value)

    assert why() == f"{folder}/ca.crt: error: cannot read: No such file or directory"
    for name in ("ca.crt", "tls.crt", "tls.key"):
        shutil.copy(certificates() / "alice" / name, folder)
    ManagerClient("127.0.0.1:1", tls=folder).close()
    shutil.copy(certificates() / "bob" / "tls.key", folder)
    assert why() == f"{folder}/tls.key: error: does not go with tls.crt: KEY_VALUES_MISMATCH"
    (folder / "tls.key").write_text("secret")
    assert why().startswith(f"{folder}/tls.key: error: does not go with tls.crt: ")
    assert "secret" not in why()
    (folder / "ca.crt").write_text("no certificate")
    assert why() == f"{folder}/ca.crt: error: holds no certificate in PEM"
    assert client_identity("unix:/run/p4gen.sock", folder) is None


def test_keys_are_not_shown() -> None:
    identity = read_identity(certificates() / "alice")
    assert b"PRIVATE KEY" in identity.key
    assert "PRIVATE" not in repr(identity)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:9560", "node.example:9560"])
def test_what_other_machines_can_reach_needs_tls(address: str, folder: Path) -> None:
    made = running_manager(["127.0.0.1:0", address])
    with pytest.raises(InputError, match=r"other machines can reach it.* give --tls DIR, or --insecure"):
        made.__enter__()
    check_exposed(["127.0.0.1:0", "[::1]:0", "localhost:9560", f"unix:{folder}/m.sock", "127.8.9.10:1"], "")


def test_a_manager_with_tls_or_insecure(folder: Path) -> None:
    with running_manager([f"unix:{folder}/m.sock", "0.0.0.0:0"], "star-2", tls=certificates() / "manager") as server:
        port = server.addresses[1].rpartition(":")[2]
        with ManagerClient(f"localhost:{port}", tls=certificates() / "alice") as client:
            assert client.groups() == []
        refused(ManagerClient(f"127.0.0.1:{port}"))
        with ManagerClient(server.address) as client:
            assert client.groups() == []
    with (
        running_manager(["0.0.0.0:0"], "star-2", insecure=True) as server,
        ManagerClient(f"127.0.0.1:{server.address.rpartition(':')[2]}") as client,
    ):
        assert client.groups() == []


def test_the_process_s_mask_is_as_it_was(folder: Path) -> None:
    before = os.umask(0o027)
    try:
        ManagerServer(FakeManager(), f"unix:{folder}/m.sock").close()
    finally:
        assert os.umask(before) == 0o027
