"""What a lab is to do, as a file for the process inside the namespaces."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from p4gen.families import WrittenCollective
from p4gen.records import from_plain, to_plain
from p4gen.spec.topology import TopologySpec, load_topology
from p4gen.switch.running import Program

JOIN_S = 120.0
"""For all ranks to hear of a group."""

JOB_FILE, RESULT_FILE, LOCK_FILE = "job.json", "result.json", "lock"
"""In the lab's scratch folder."""
LAST_WORD = b"end"
"""What the lab says to its launcher when it ends by itself, however that goes."""


@dataclass(frozen=True)
class Wanted:
    """What to do once the lab stands: a prompt, or a scenario. Texts are as the user gave them, and have been checked.

    Impairments are (kind, share or time, place), in the order of the command line.
    """

    what: str = "prompt"
    """``prompt``, ``scenario``, ``suite`` or ``measure``."""
    collective: str = "allreduce"
    size: int = 1 << 20
    root: int = 0
    ranks: tuple[str, ...] = ()
    repeat: int = 1
    impairments: tuple[tuple[str, str, str], ...] = ()
    outages: tuple[tuple[str, str, float, float], ...] = ()
    """Links (two nodes) that fail, when, and when they are restored (0: not), in seconds after the first call."""
    seed: int = 0
    as_json: bool = False
    deadline: float = 120.0
    """Seconds after which a scenario has failed."""


@dataclass(frozen=True)
class LabJob:
    """A lab: its network, program, target, and folders."""

    topology: TopologySpec
    topology_file: Path
    """What it was read from: the run's own copy."""
    spec: WrittenCollective
    program: Program
    target: str
    engine: str
    folder: Path
    """Where the run's logs and captures go."""
    scratch: Path
    """Sockets; removed at the end."""
    address_file: Path
    """Where ``p4gen top`` looks for the manager."""
    wanted: Wanted
    timeout_ms: float = 50.0
    """The retransmission timeout of queue pairs."""
    pcap: bool = False
    """Capture everything from the start."""
    verbose: bool = False
    """BMv2 logs every step of every packet."""
    policy: str | None = None
    """Where the manager puts groups (``find_policy``); its default otherwise."""

    def save(self, path: Path) -> None:
        """Write it as JSON."""
        fields = to_plain(self)
        del fields["topology"]
        path.write_text(json.dumps(fields), encoding="utf-8")

    @classmethod
    def load(cls, path: Path) -> LabJob:
        """What ``save`` wrote."""
        fields = json.loads(path.read_text(encoding="utf-8"))
        return from_plain(cls, fields | {"topology": load_topology(Path(fields["topology_file"]))})
