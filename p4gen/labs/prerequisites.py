"""The requirements of a lab on the machine, checked before anything is created."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from p4gen import packages
from p4gen.errors import InputError, MissingToolError
from p4gen.labs.network import mininet
from p4gen.switch import targets
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec

INTERFACE_LENGTH = 15
"""The most characters in the name of an interface (IFNAMSIZ - 1)."""
_CAPABILITIES = {12: "CAP_NET_ADMIN", 13: "CAP_NET_RAW", 21: "CAP_SYS_ADMIN"}


def check(target: str) -> None:
    """Raises ``MissingToolError`` unless labs with this target can run here: tools, Mininet, capabilities."""
    for tool in packages.LAB:
        if tool != mininet.MNEXEC and shutil.which(tool) is None:
            raise MissingToolError(f"a lab needs {tool}, which is not on PATH: {packages.install(tool)}")
    mininet.check()
    targets.check(target)
    lacking = missing_capabilities()
    if lacking:
        raise MissingToolError(
            f"a lab creates namespaces and interfaces, and opens raw sockets; {', '.join(lacking)} "
            f"{'is' if len(lacking) == 1 else 'are'} missing: run as root (in a container: --privileged)"
        )


def missing_capabilities(status: Path = Path("/proc/self/status")) -> list[str]:
    """The capabilities that a lab needs and this process does not have (capabilities(7))."""
    try:
        lines = status.read_text(encoding="ascii").splitlines()
    except OSError:
        return list(_CAPABILITIES.values()) if os.geteuid() else []
    effective = next((int(line.split()[1], 16) for line in lines if line.startswith("CapEff")), 0)
    return [name for number, name in _CAPABILITIES.items() if not effective >> number & 1]


def interface(node: str, port: int) -> str:
    """The name of a node's interface."""
    return f"{node}-eth{port}"


def check_topology(topology: TopologySpec, spec: ProgramSpec) -> None:
    """Raises ``InputError`` when the network cannot be built: names are too long, or switches have too many links."""
    problems = []
    for node, links in topology.ports.items():
        name = interface(node, max(len(links) - 1, 0))
        if len(name) > INTERFACE_LENGTH:
            problems.append(f"{node}: its interface would be {name}; Linux allows {INTERFACE_LENGTH} characters")
        if node in topology.switches and len(links) > spec.ports:
            problems.append(f"{node} has {len(links)} links; the program has {spec.ports} ports (--ports)")
    if problems:
        raise InputError(*problems)
