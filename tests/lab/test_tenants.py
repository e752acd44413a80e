"""Two tenants in one lab: each has its hosts, its groups and its quota, and comes with its certificate."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .labs import SMALL, lab
from .traces import Traces

ROOT = Path(__file__).parents[2]
TENANTS = """
operators: [ops]
tenants:
  alice: {hosts: [h0, h1], groups: 1}
  bob: {hosts: [h2, h3]}
"""
PROGRAM = """
import os
import numpy as np
import p4gen
from p4gen.manager.api import GroupSpec, HostInfo, ManagerError
from p4gen.manager.remote.client import ManagerClient

def outcome(ask):
    try:
        ask()
    except ManagerError as error:
        return error.code.name
    return "OK"

with p4gen.join() as group:
    print("sum", group.all_reduce(np.full(1000, 1 + int(os.environ["P4GEN_HOST"][1]), np.int32))[999])
    if group.rank == 0:
        place, folder = os.environ["P4GEN_MANAGER"], os.environ["P4GEN_TLS"]
        own, others = (("h0", "h1"), ("h2", "h3")) if folder.endswith("alice") else (("h2", "h3"), ("h0", "h1"))
        with ManagerClient(place, tls=folder) as manager:
            print("groups", *(each.spec.name for each in manager.groups()))
            print("second group", outcome(lambda: manager.init_group(GroupSpec("second", own))))
            print("group of others", outcome(lambda: manager.init_group(GroupSpec("third", others))))
            print("group with another", outcome(lambda: manager.init_group(GroupSpec("third", (own[0], others[0])))))
            print("host of others", outcome(lambda: manager.register_host(HostInfo(others[0]))))
            print("switch", outcome(lambda: manager.switch("s0")))
            print("destroys", outcome(lambda: manager.destroy_group("second")))
        del os.environ["P4GEN_TLS"]
        with ManagerClient(place, timeout=5) as nobody:
            print("without a certificate", outcome(nobody.groups))
        os.seteuid(65534)
        with ManagerClient(os.environ["SOCKET"], timeout=5) as thief:
            print("stolen socket", outcome(thief.groups))
        os.seteuid(0)
    group.barrier()
"""
ANSWERS = {
    "groups": "world", "group of others": "DENIED", "group with another": "DENIED", "host of others": "DENIED",
    "switch": "DENIED", "without a certificate": "UNREACHABLE", "stolen socket": "UNREACHABLE",
}  # fmt: skip
QUOTAS = {
    "alice": {"second group": "NO_ROOM", "destroys": "NOT_FOUND"},
    "bob": {"second group": "OK", "destroys": "OK"},
}


@pytest.fixture
def site(tmp_path: Path) -> tuple[str, ...]:
    """The options of a lab with tenants and certificates."""
    subprocess.run([ROOT / "scripts" / "certs", tmp_path, "manager=100.64.0.1", "alice", "bob"], check=True)
    file = tmp_path / "tenants.yaml"
    file.write_text(TENANTS)
    return "--tenants", str(file), "--tls", str(tmp_path)


def test_tenants_ask_over_tls_for_what_is_theirs(
    machine: Traces, tmp_path: Path, site: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # What a process of the lab could find of the socket of its manager.
    command = f"SOCKET=unix:$(ls -d {machine.folder}/*/inc-manager.sock) {sys.executable} {program}"
    found = lab(tmp_path, "star-4", "--mode", "II", *SMALL, *site, "--exec", command)
    assert found.returncode == 0, found.stdout + found.stderr
    for tenant, total in (("alice", 3), ("bob", 7)):
        lines = [line for line in found.stdout.splitlines() if line.startswith(f"[{tenant} 0] ")]
        told = {" ".join(words): last for *words, last in (line.partition("] ")[2].split() for line in lines)}
        assert told == ANSWERS | QUOTAS[tenant] | {"sum": str(total)}
        assert f"[{tenant} 1] sum {total}" in found.stdout
    (log,) = tmp_path.glob("runs/*/audit.jsonl")
    noted = [json.loads(line) for line in log.read_text().splitlines()]
    asked = {(line["tenant"], line["method"], line["outcome"]) for line in noted}
    assert ("alice", "InitGroup", "PERMISSION_DENIED") in asked


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (("--exec", "true", "--ranks", "h0,h1,h2"), "h2 belongs to no tenant"),
        (("--collective", "allreduce"), "--tenants FILE and --tls DIR go with each other, --exec"),
    ],
)
def test_what_does_not_go_with_tenants_is_refused(
    tmp_path: Path, site: tuple[str, ...], options: tuple[str, ...], cause: str
) -> None:
    (tmp_path / "tenants.yaml").write_text(TENANTS.replace("h2, h3", "h3"))
    found = lab(tmp_path, "star-4", *site, *options)
    assert found.returncode == 2
    assert cause in " ".join(found.stderr.split())
