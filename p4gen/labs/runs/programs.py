"""The user's own program on every host: each process is a rank, and calls ``p4gen.join`` or `torch.distributed`.

In a guest it finds its working directory and this Python's packages at the same places, and the device. Its lines are
passed on with the rank in front. The first process that fails has the others end.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from rich.console import Console

from p4gen.host.raw import kernel_sink
from p4gen.labs.forked import in_network
from p4gen.labs.job import LabJob
from p4gen.labs.network import hostnet
from p4gen.labs.network.impairments import ALL
from p4gen.labs.network.outages import fail_links
from p4gen.labs.prerequisites import interface
from p4gen.labs.session import TLS_ADDRESS, Lab
from p4gen.labs.softroce.ports import DEVICE, GATEWAY, INTERFACE, MANAGER_PORT
from p4gen.labs.softroce.proxy import PACKAGES
from p4gen.manager.access.tenants import ALONE, load_tenants
from p4gen.manager.api import HostAddresses, HostInfo
from p4gen.records import from_plain
from p4gen.rocev2.headers import ip_text, is_ipv6

_HOSTS: Final = Path("/etc/hosts")
PORT: Final = 29500
"""MASTER_PORT, on rank 0's host; its network is the lab's own."""
_IN_GUEST: Final = {
    "P4GEN_MANAGER": f"{GATEWAY}:{MANAGER_PORT}", "P4GEN_VERBS": DEVICE, "PYTHONPATH": f"/p4gen:{PACKAGES}",
}  # fmt: skip
_NOT_IN_GUEST: Final = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "LD_PRELOAD", "VIRTUAL_ENV")
"""What this machine's variables say of it, and not of a guest."""
_GRACE_S: Final = 15.0
"""Seconds in which the other processes may end by themselves when one has failed."""
_ENDING_S: Final = 3.0
_LOOK_S: Final = 0.05


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Run the command on every host. Returns the worst exit status, and all of them by host; 128 and the number of the
    signal for a process that one has ended."""
    wanted = lab.job.wanted
    for kind, value, place in wanted.impairments:
        lab.impairments.suffer(place or ALL, kind, value)
    jobs = _jobs(lab.job, wanted.ranks or lab.topology.rank_hosts)
    found = {host: _configured(lab, host) for host in lab.topology.hosts}
    _name_hosts(lab, found)
    programs = []
    for tenant, hosts in jobs.items():
        whose = f" of {tenant}" if tenant else ""
        console.print(f"{len(hosts)} ranks{whose} run: {wanted.command}", markup=False)
        shared = _environment(lab, hosts, found[hosts[0]]) | _access(lab.job, tenant)
        mark = f"{tenant} " if tenant else ""
        programs += [_Program(lab, rank, host, shared, f"[{mark}{rank}]") for rank, host in enumerate(hosts)]
    threading.Thread(target=fail_links, args=(lab, wanted.outages, console), daemon=True).start()
    try:
        _await(programs, wanted.deadline, console)
    finally:
        for program in programs:
            program.end()
    statuses = {program.host: program.status for program in programs}
    worst = max(statuses.values())
    told = ", ".join(f"{host} {status}" for host, status in statuses.items() if status)
    console.print(f"exit statuses: {told}" if told else f"all {len(programs)} ranks have ended with status 0")
    return worst, {"passed": not worst, "seed": wanted.seed, "statuses": statuses}


def _jobs(job: LabJob, hosts: Sequence[str]) -> dict[str, list[str]]:
    """The hosts of each tenant, whose ranks are a job of its own; without tenants all are one."""
    tenants = ALONE if job.tenants is None else load_tenants(job.tenants)
    found: dict[str, list[str]] = {}
    for host in hosts:
        found.setdefault(tenants.owner(host), []).append(host)
    return found


def _access(job: LabJob, tenant: str) -> dict[str, str]:
    """How the programs of a tenant reach the manager, where that is not its socket."""
    if job.certificates is None:
        return {}
    return {"P4GEN_MANAGER": TLS_ADDRESS, "P4GEN_TLS": str(job.certificates / tenant)}


def _configured(lab: Lab, host: str) -> HostAddresses:
    """Register a host, and configure its interface. What the kernel would answer to RoCE packets is dropped as long as
    the lab runs. A guest has done so itself."""
    if host in lab.hosts:
        return from_plain(HostAddresses, lab.hosts[host].hello.result())
    addresses = lab.manager.register_host(HostInfo(host, out_of_order=True))

    def configure() -> None:
        hostnet.configure(interface(host, 0), addresses)
        lab.sinks.append(kernel_sink())

    in_network(lab.network.pid(host), configure)
    return addresses


def _name_hosts(lab: Lab, found: Mapping[str, HostAddresses]) -> None:
    """Put the hosts' names into each host's own /etc/hosts: there is no name server, and who asks one waits for it."""
    file = lab.job.scratch / "hosts"
    lines = []
    for host, addresses in found.items():
        lines += [f"{ip_text(each)} {host}\n" for each in addresses.ips]
        # PyTorch's store asks for the names of IPv4 addresses as IPv6 has them.
        lines += [f"::ffff:{ip_text(each)} {host}.mapped\n" for each in addresses.ips if not is_ipv6(each)]
    file.write_text(_HOSTS.read_text(encoding="utf-8") + "".join(lines), encoding="utf-8")
    for host in found:
        # A guest has a file of its own, and does not see this one.
        command = ["tee", str(_HOSTS)] if host in lab.job.machines else ["mount", "--bind", str(file), str(_HOSTS)]
        text = file.read_text(encoding="utf-8")
        done = subprocess.run([*lab.inside(host), *command], input=text, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.stderr.write(f"p4gen: warning: {host} knows no names: {done.stderr.strip()}\n")


def _environment(lab: Lab, hosts: Sequence[str], first: HostAddresses) -> dict[str, str]:
    """The variables that are the same at all ranks."""
    return {
        **os.environ,
        "PYTHONUNBUFFERED": "1",
        "WORLD_SIZE": str(len(hosts)),
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "MASTER_ADDR": ip_text(first.ip),
        "MASTER_PORT": str(PORT),
        "P4GEN_MANAGER": lab.manager_address,
        "P4GEN_RANKS": ",".join(hosts),
        "P4GEN_TIMER": f"{lab.job.timeout_ms:g}ms",
    }


class _Program:
    """The process of one rank, in its host's network."""

    def __init__(self, lab: Lab, rank: int, host: str, shared: dict[str, str], mark: str) -> None:
        self.rank, self.host, self._mark = rank, host, mark
        guest = host in lab.job.machines
        device = INTERFACE if guest else interface(host, 0)
        variables = shared | {"RANK": str(rank), "P4GEN_HOST": host, "GLOO_SOCKET_IFNAME": device}
        variables |= _IN_GUEST if guest else {"P4GEN_INTERFACE": device}
        command = ["sh", "-c", lab.job.wanted.command]
        if guest:
            told = (f"{name}={value}" for name, value in variables.items() if name not in _NOT_IN_GUEST)
            command = ["env", f"--chdir={os.getcwd()}", *told, *command]
        self._process = subprocess.Popen(
            [*lab.inside(host), *command],
            env=os.environ if guest else variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        # What a rank prints is no figure of the lab's: with --json it does not go to standard output.
        out = sys.stderr if lab.job.wanted.as_json else sys.stdout
        pipes = ((self._process.stdout, out), (self._process.stderr, sys.stderr))
        self._threads = [threading.Thread(target=self._pass_on, args=pipe, daemon=True) for pipe in pipes]
        for thread in self._threads:
            thread.start()

    @property
    def status(self) -> int:
        """The exit status of a process that has ended, or 128 and the number of the signal."""
        code = self._process.returncode
        return 128 - code if code < 0 else code

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def end(self) -> None:
        """Have it end, with all that it has started, by SIGKILL if need be; wait until its lines have been passed
        on."""
        for number in (15, 9):
            if self.running:
                os.killpg(self._process.pid, number)
            try:
                self._process.wait(_ENDING_S)
            except subprocess.TimeoutExpired:
                continue
            break
        for thread in self._threads:
            thread.join(_ENDING_S)

    def _pass_on(self, pipe: IO[str], out: IO[str]) -> None:
        for line in pipe:
            out.write(f"{self._mark} {line.rstrip()}\n")
            out.flush()


def _await(programs: Sequence[_Program], deadline: float, console: Console) -> None:
    """Wait until all have ended, or one has failed and the others have had time to end; ``deadline`` seconds at
    most."""
    until = time.monotonic() + deadline
    failed: _Program | None = None
    while any(program.running for program in programs):
        if time.monotonic() > until:
            late = ", ".join(f"rank {p.rank} ({p.host})" for p in programs if p.running)
            console.print(f"{late} did not end in time, and is ended", markup=False)
            return
        time.sleep(_LOOK_S)
        if failed is None:
            failed = next((p for p in programs if not p.running and p.status), None)
            if failed is not None:
                console.print(f"rank {failed.rank} ({failed.host}) has failed with status {failed.status}")
                until = min(until, time.monotonic() + _GRACE_S)
