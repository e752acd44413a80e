"""A running lab: its network, its processes, and operations on them."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from p4gen.errors import FailedError, InputError
from p4gen.host import raw
from p4gen.labs.connections import Connections
from p4gen.labs.forked import join_network
from p4gen.labs.groups import Groups
from p4gen.labs.hosts import hostd
from p4gen.labs.hosts.hosts import HostClient
from p4gen.labs.job import JOIN_S, LabJob
from p4gen.labs.network import wires
from p4gen.labs.network.hostnet import MANAGER_SOCKET
from p4gen.labs.network.impairments import Impairments
from p4gen.labs.network.network import MANAGEMENT, Network
from p4gen.labs.parties import Parties
from p4gen.labs.prerequisites import interface
from p4gen.labs.processes import START_S, Process, end_all, wait_for
from p4gen.labs.scratch import add_address
from p4gen.labs.softroce import proxy
from p4gen.labs.softroce.execute import EXECUTE
from p4gen.labs.switches import address, control_socket, prepare, switch_process
from p4gen.manager.api import LinkPort, SwitchInfo
from p4gen.manager.remote.client import ManagerClient
from p4gen.switch import targets
from p4gen.switch.control import ask
from p4gen.switch.running import listens

MANAGER_LOG, MANAGER_DB, AUDIT_LOG = "manager.log", "manager.db", "audit.jsonl"
TLS_ADDRESS = f"{MANAGEMENT}:9560"
"""Where tenants reach the manager."""
_MANAGER_CAUSES = {
    "Address already in use": "its address is taken",
    "database or disk is full": "No space left on device",
}
_TICK_MS = {targets.EMBEDDED: 50, targets.BMV2: 200}
"""Milliseconds between ticks. Two ticks without an acknowledgement retransmit a window, so this is longer than a window
takes on a busy machine."""
_STATUS_S = 10.0
"""Seconds to wait for a switch's answer whether it traces, which it gives from a separate thread."""


class Lab:
    """The lab of a job; ``start`` brings it up. All methods raise ``P4genError`` with the reason.

    ``outer`` is this process's id in the host's PID namespace.
    """

    def __init__(self, job: LabJob, outer: int) -> None:
        self.job, self.outer = job, outer
        self.topology = job.topology
        self.network = Network(job.topology, job.bridged, dict(job.wanted.bandwidths))
        self.switches: dict[str, Process] = {}
        self.hosts: dict[str, HostClient] = {}
        self.taps: dict[str, Process] = {}
        """Running captures, by node."""
        self.sinks: list[socket.socket] = []
        """What drops RoCE packets in the kernels of hosts that have no daemon."""
        self.groups = Groups(self)
        self.connections = Connections(self)
        self.stages: dict[str, float] = {}
        """Duration of the stages of the start, in seconds."""
        self._manager_process: Process | None = None
        self._manager: ManagerClient | None = None
        self._without_manager = False
        """Whether the manager was killed on request, so that runs go on without it."""
        self._wires: HostClient | None = None
        self._impairments: Impairments | None = None

    @property
    def parties(self) -> Parties:
        """Those of its hosts that make calls together: groups, or ends of connections."""
        return self.groups if self.job.grouped else self.connections

    # --- start and end ---

    @property
    def manager(self) -> ManagerClient:
        """A client of the manager. Raises ``FailedError`` when its process has ended."""
        assert self._manager is not None
        self.check_manager()
        return self._manager

    def check_manager(self, patience: float = 0.0) -> None:
        """Raises ``FailedError`` with a report when the manager's process has ended, or does so within ``patience``
        s."""
        process = self._manager_process
        if process is not None and process.popen is not None and patience:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.popen.wait(patience)
        if process is not None and process.popen is not None and not process.running:
            raise process.failure("the manager has ended")

    @property
    def manager_address(self) -> str:
        """The manager's gRPC address."""
        return f"unix:{self.job.scratch / MANAGER_SOCKET}"

    def start(self) -> None:
        """Build the network, start all processes at the same time, and wait until all of them answer.

        Raises ``FailedError`` with the report of each process that did not start.
        """
        began = time.monotonic()
        with self._stage("network"):
            self.network.build()
            if self.job.tenants is not None:
                self.network.manage()
        with self._stage("processes"):
            self.switches = {
                name: switch_process(self.job, name, self.network.interfaces(name)) for name in self.topology.switches
            }
            self._manager_process = self._manager_command()
            with_process = self.job.machines if self.job.wanted.command else self.topology.hosts
            self.hosts = {name: self._host(name) for name in with_process}
            for process in (self._manager_process, *self.switches.values()):
                process.start()
            self._wires = self._fork("wires", self.job.folder / "wires.log", wires.run) if self._wired else None
            if self.compiled:
                raw.load()
            forks = [*self.hosts.values(), *([self._wires] if self._wires else [])]
            for fork in forks:
                fork.process.start()  # before there are threads
            for fork in forks:
                fork.listen()
            wait_for([self._manager_process, *self.switches.values()], START_S)
            self._manager = ManagerClient(self.manager_address)
            self._manager.wait(START_S)
        with self._stage("programs"), ThreadPoolExecutor() as pool:
            list(pool.map(self.register, self.topology.switches))
        with self._stage("hosts"):
            wait_for([fork.process for fork in forks], START_S)
        self._impairments = Impairments(self, self._wires)
        add_address(self.job.address_file, self.manager_address)
        if self.job.pcap:
            for node in (*self.topology.switches, *self.topology.hosts):
                self.capture(node)
        self.stages["all"] = time.monotonic() - began

    @contextlib.contextmanager
    def _stage(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.stages[name] = time.monotonic() - began

    def stop(self) -> None:
        """End all processes in order, so that logs and captures are complete."""
        if self._manager is not None:
            with contextlib.suppress(Exception):
                self._manager.close()
        processes = [*self.taps.values(), *(host.process for host in self.hosts.values()), *self.switches.values()]
        if self._wires is not None:
            processes.append(self._wires.process)
        if self._manager_process is not None:
            processes.append(self._manager_process)
        end_all(processes)

    def _manager_command(self) -> Process:
        job = self.job
        command = [sys.executable, "-m", "p4gen", "manager", "--listen", self.manager_address]
        command += ["--topology", str(job.topology_file), "--db", str(job.folder / MANAGER_DB)]
        command += ["--tick-interval", str(_TICK_MS[job.pace])]
        if job.policy is not None:
            command += ["--policy", job.policy]
        if not job.replan:
            command += ["--replan", "off"]
        if job.plan is not None:
            command += ["--plan", str(job.plan)]
        if job.tenants is not None and job.certificates is not None:
            command += ["--listen", TLS_ADDRESS, "--tls", str(job.certificates / "manager")]
            command += ["--tenants", str(job.tenants), "--audit-log", str(job.folder / AUDIT_LOG)]
        log = job.folder / MANAGER_LOG
        place = self.manager_address
        return Process("the manager", command, log, lambda: listens(place), _MANAGER_CAUSES)

    def _host(self, name: str) -> HostClient:
        def main() -> int:
            join_network(self.network.pid(name))
            run = proxy.run if name in self.job.machines else hostd.run
            return run(self.job, name)

        return self._fork(name, self.job.folder / name / "host.log", main)

    def _fork(self, name: str, log: Path, main: Callable[[], int]) -> HostClient:
        what = f"host {name}" if name in self.topology.hosts else name
        process = Process(what, [f"p4gen.labs {name}"], log, lambda: client.ready, main=main)
        client = HostClient(name, process)
        return client

    @property
    def compiled(self) -> bool:
        """Whether there are hosts with p4gen's NIC."""
        return self.job.machines.keys() < set(self.topology.hosts)

    @property
    def _wired(self) -> bool:
        """Whether links between switches can have faults."""
        return any(set(link.ends) <= set(self.topology.switches) for link in self.job.bridged)

    @property
    def impairments(self) -> Impairments:
        """The faults of links, once the lab is up."""
        assert self._impairments is not None
        return self._impairments

    def register(self, switch: str) -> None:
        """Register a switch with the manager, which loads the program."""
        job = self.job
        prepare(job, switch)
        spec, program = job.spec_of(switch), job.program_of(switch)
        config = program.json if job.target == targets.BMV2 else program.p4
        assert config is not None
        links = self.topology.ports[switch]
        info = SwitchInfo(
            switch,
            address(job, switch),
            spec,
            program.p4info.read_text(encoding="utf-8"),
            config.read_bytes(),
            cpu_port=spec.architecture.cpu_port,
            links=tuple(LinkPort(p, link.other(switch), interface(switch, p)) for p, link in enumerate(links)),
        )
        try:
            self.manager.register_switch(info)
        except FailedError as error:
            process = self.switches[switch]
            if not process.running:
                raise process.failure(f"{process.name} has ended") from None
            reason = "; ".join(diagnostic.message for diagnostic in error.diagnostics)
            raise FailedError(f"{process.name}: {reason}; its log is {process.log}") from None

    # --- nodes ---

    def check_hosts(self, names: Sequence[str]) -> None:
        """Raises ``InputError``, which lists the hosts, for names that are not hosts."""
        for name in names:
            if name not in self.hosts:
                raise InputError(f"there is no host '{name}'; there are {', '.join(self.hosts)}")

    def check_running(self, hosts: Sequence[str]) -> None:
        """Raises ``FailedError`` when a process has ended without which these hosts cannot complete a call: the manager
        (unless it was killed on request), one of them, or a switch that every path between them needs."""
        processes = [self.hosts[host].process for host in hosts]
        if self._manager_process is not None and not self._without_manager:
            processes.append(self._manager_process)
        for process in processes:
            if not process.running:
                raise process.failure(f"{process.name} has ended")
        dead = [name for name, process in self.switches.items() if not process.running]
        if not dead:
            return
        gone = {link.name for name in dead for link in self.topology.ports[name]}
        if set(hosts) <= self.topology.distances(hosts[0], gone).keys():
            return
        # No switch is started while a run is awaited, so no path can exist again.
        stories = [self.switches[name].failure(f"switch {name} has ended").diagnostics[0] for name in dead]
        raise FailedError(*stories, "no other path connects the ranks")

    @property
    def without_manager(self) -> bool:
        """Whether the manager was killed on request and has not been started again."""
        return self._without_manager

    def check_switch(self, name: str) -> Process:
        """The process of a switch. Raises ``InputError``, which lists the switches."""
        if name not in self.switches:
            raise InputError(f"there is no switch '{name}'; there are {', '.join(self.switches)}")
        return self.switches[name]

    def fail_switch(self, name: str) -> None:
        """Kill a switch's process. Raises ``InputError`` if there is no such switch, or it is not running."""
        process = self.check_switch(name)
        if not process.running:
            raise InputError(f"{name} is not running")
        assert process.popen is not None
        process.popen.kill()
        process.popen.wait()

    def restart_switch(self, name: str) -> None:
        """Start a switch's process again, with empty state, and register it with the manager."""
        process = self.check_switch(name)
        if process.running:
            process.end()
        process.start()
        wait_for([process], START_S)
        self.register(name)

    def restart_manager(self) -> None:
        """Start the manager's process again, with its store; groups have continued meanwhile."""
        process = self._manager_process
        assert process is not None
        if process.running:
            process.end()
        (self.job.scratch / MANAGER_SOCKET).unlink(missing_ok=True)
        process.start()
        wait_for([process], START_S)
        self._without_manager = False
        self.manager.wait(START_S)

    def fail_manager(self) -> None:
        """Kill the manager's process."""
        process = self._manager_process
        assert process is not None
        if not process.running:
            raise InputError("the manager is not running")
        self.groups.all()  # while the manager can still be asked
        self._without_manager = True
        assert process.popen is not None
        process.popen.kill()
        process.popen.wait()

    # --- captures and traces ---

    def capture(self, node: str) -> Path:
        """Start a capture of all interfaces of a node, or end it if it is running. Returns the file."""
        file = self.job.folder / node / f"{node}.pcapng"
        if node in self.taps:
            self.taps.pop(node).end()
            return file
        if node in self.hosts:
            before, names = self.network.inside(node), [interface(node, 0)]
        else:
            self.check_switch(node)
            before, names = [], list(self.network.interfaces(node).values())
        number = 2
        while file.exists():
            file = file.with_name(f"{node}-{number}.pcapng")
            number += 1
        command = [*before, sys.executable, "-m", "p4gen.labs.network.tap", str(file), *names]
        process = Process(f"the capture of {node}", command, file.with_name("tap.log"), file.exists)
        process.start()
        wait_for([process], START_S)
        self.taps[node] = process
        return file

    def set_trace(self, switch: str, on: bool) -> None:
        """Turn tracing of the embedded switch on or off. May be repeated."""
        process = self.check_switch(switch)
        if self.job.target != targets.EMBEDDED:
            raise InputError("BMv2 traces from the start or not at all: p4gen lab … --verbose, then see its log")
        if not process.running:
            raise InputError(f"{switch} is not running")
        ask(control_socket(self.job, switch), f"trace {'on' if on else 'off'}")

    def traced(self) -> list[str]:
        """The switches that report that they are tracing."""
        found = []
        for name, process in self.switches.items():
            if self.job.target == targets.EMBEDDED and process.running:
                with contextlib.suppress(FailedError):
                    if ask(control_socket(self.job, name), "status", _STATUS_S)["trace"]:
                        found.append(name)
        return found

    # --- counters ---

    def link_counters(self, switch: str) -> dict[int, dict[str, int]]:
        """The kernel's counters of each port of a switch; ``in`` counts what the switch receives."""
        self.check_switch(switch)
        found = {}
        names = self.network.interfaces(switch).values()
        for port, name in zip(self.job.ports_of(switch), names, strict=True):
            folder = Path("/sys/class/net", name, "statistics")
            found[port] = {
                ours: int((folder / theirs).read_text(encoding="ascii"))
                for ours, theirs in (
                    ("in_packets", "rx_packets"),
                    ("in_bytes", "rx_bytes"),
                    ("out_packets", "tx_packets"),
                    ("out_bytes", "tx_bytes"),
                    ("in_dropped", "rx_dropped"),
                    ("out_dropped", "tx_dropped"),
                )
            }
        return found

    def host_counters(self) -> dict[str, Any]:
        """The counters of every host (``hostd.Daemon.counters``)."""
        asked = {name: host.ask("counters") for name, host in self.hosts.items()}
        return {name: future.result(JOIN_S) for name, future in asked.items()}

    def switch_drops(self) -> Mapping[str, Mapping[str, int]]:
        """Number of packets that programs dropped, by switch and reason; empty without a manager to ask."""
        if self._without_manager:
            return {}
        return {status.name: status.drops for status in self.manager.status().switches}

    def inside(self, host: str) -> list[str]:
        """The prefix of a command that runs it on a host: in its namespace, or in its guest."""
        return [*self.network.inside(host), *(EXECUTE if host in self.job.machines else ())]

    def shell_command(self, node: str) -> list[str]:
        """The command that opens a shell on a host, or ``p4gen shell`` on a switch."""
        if node in self.job.machines:
            return [*self.inside(node), "bash"]
        if node in self.hosts:
            return [*self.inside(node), shutil.which("bash") or "sh"]
        self.check_switch(node)
        return [sys.executable, "-m", "p4gen", "shell", "--grpc-addr", address(self.job, node)]
