"""What a run costs: processor time and packets of hosts and switches."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from p4gen.labs.processes import Process
from p4gen.labs.session import Lab


@dataclass(frozen=True)
class Usage:
    """What a node has used."""

    seconds: float = 0.0
    """Processor time of its process, that of the kernel included."""
    packets: int = 0
    """Packets that have arrived at its interfaces, and that have left by them."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.seconds + other.seconds, self.packets + other.packets)

    def since(self, before: Usage) -> Usage:
        """What was used since then; nothing if the process or the interface is a new one."""
        return Usage(max(0.0, self.seconds - before.seconds), max(0, self.packets - before.packets))

    @property
    def microseconds(self) -> float:
        """Processor time for each packet, in microseconds; 0 without any."""
        return 1e6 * self.seconds / self.packets if self.packets else 0.0


def total(usages: Mapping[str, Usage], nodes: Iterable[str]) -> Usage:
    """What these nodes have used together."""
    return sum((usages[name] for name in nodes if name in usages), Usage())


def usages(lab: Lab) -> dict[str, Usage]:
    """What each switch and each host has used since its start, by name."""
    packets = dict.fromkeys([*lab.topology.switches, *lab.topology.hosts], 0)
    for switch in lab.topology.switches:
        links = lab.job.ports_of(switch)
        for port, counters in lab.link_counters(switch).items():
            carried = counters["in_packets"] + counters["out_packets"]
            packets[switch] += carried
            if (other := links[port].other(switch)) in lab.topology.hosts:
                packets[other] += carried
    return {
        name: Usage(_seconds(lab.switches[name] if name in lab.switches else lab.hosts[name].process), number)
        for name, number in packets.items()
    }


def _seconds(process: Process) -> float:
    """Processor time of a process and of those that it has started, such as a guest's; 0 if it has ended."""
    with contextlib.suppress(OSError):
        started = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
        return sum(time.clock_gettime(~pid << 3 | _SCHEDULED) for pid in (process.pid, *map(int, started)))
    return 0.0


_SCHEDULED = 2
"""The clock of a process, in the kernel's numbers of clocks (clock_getcpuclockid(3)), with the process above."""
