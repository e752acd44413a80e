"""Commands that start the switches of a lab on interfaces, and explanations of their failures."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from p4gen.labs.job import LabJob
from p4gen.labs.processes import Process
from p4gen.switch import bmv2, dataplane, targets
from p4gen.switch.bm_thrift import ThriftRegisters
from p4gen.switch.running import listens

_FIRST_THRIFT_PORT = 9090
_THRIFT_S, _LOOK_S = 3.0, 0.02
_QUEUE = 1024
"""Length of an egress queue of BMv2, in packets."""
_CAUSES = {
    "No such device": "an interface of the switch is missing",
    "Cannot allocate memory": "there is not enough memory",
    "cannot listen": "its socket cannot be created",
}


def address(job: LabJob, switch: str) -> str:
    """The address of the switch's P4Runtime server."""
    return f"unix:{job.scratch / f'{switch}.sock'}"


def switch_process(job: LabJob, switch: str, interfaces: Mapping[int, str]) -> Process:
    """The process of a switch. The manager loads its program."""
    folder = job.folder / switch
    folder.mkdir(parents=True, exist_ok=True)
    command = _bmv2(job, switch) if job.target == targets.BMV2 else _embedded(job, switch)
    arch = job.spec_of(switch).architecture
    ports = [word for link, name in interfaces.items() for word in ("-i", f"{arch.front_port(link)}@{name}")]
    if job.target == targets.BMV2:
        cut = command.index("--")
        command = [*command[:cut], *ports, *command[cut:]]
    else:
        command += ports
    causes = bmv2.CAUSES if job.target == targets.BMV2 else _CAUSES
    return Process(f"switch {switch}", command, folder / dataplane.LOG_FILE, lambda: ready(job, switch), causes)


def ready(job: LabJob, switch: str) -> bool:
    """Whether a switch can be used."""
    return listens(address(job, switch))


def prepare(job: LabJob, switch: str) -> None:
    """Configure a switch that answers: lengthen BMv2's egress queues, whose 64 packets are fewer than ranks have in
    flight."""
    if job.target != targets.BMV2 or not bmv2.has_option("--thrift-port"):
        return
    server, deadline = ThriftRegisters(_thrift_port(job, switch)), time.monotonic() + _THRIFT_S
    # Thrift's server comes up after P4Runtime's; builds without it accept the option, too.
    while not server.set_queue_depths(_QUEUE) and time.monotonic() < deadline:
        time.sleep(_LOOK_S)


def _thrift_port(job: LabJob, switch: str) -> int:
    # The switches of the lab share a network namespace in which nothing else runs.
    return _FIRST_THRIFT_PORT + job.topology.switches.index(switch)


def trace_file(job: LabJob, switch: str) -> Path:
    """The file to which the embedded switch writes traces."""
    return job.folder / switch / "trace.txt"


def control_socket(job: LabJob, switch: str) -> Path:
    """The control socket of the embedded switch, which turns traces on and off."""
    return job.scratch / f"{switch}.ctl"


def _embedded(job: LabJob, switch: str) -> list[str]:
    command = [sys.executable, "-m", "p4gen", "switch", "--grpc-server-addr", address(job, switch)]
    command += ["--cpu-port", str(job.spec.architecture.cpu_port), "--engine", job.engine]
    return [*command, "--trace", str(trace_file(job, switch)), "--control", str(control_socket(job, switch))]


def _bmv2(job: LabJob, switch: str) -> list[str]:
    path = shutil.which(bmv2.SWITCH)
    assert path is not None
    command = [path, "--no-p4", "--device-id", "1", "--log-console"]
    command += ["--log-level", "trace" if job.verbose else "warn"]
    if bmv2.has_option("--thrift-port"):
        command += ["--thrift-port", str(_thrift_port(job, switch))]
    command += ["--", "--grpc-server-addr", address(job, switch)]
    return [*command, "--cpu-port", str(job.spec.architecture.cpu_port)]
