"""Switch processes that tests can kill, stop and start again at the same address; both targets."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from patience import PATIENCE_S

from p4gen.groups.group import SwitchConfig
from p4gen.host.collectives.plan import PsnSync
from p4gen.manager.api import SwitchInfo
from p4gen.manager.switches.agent import IncAgent
from p4gen.model.entries import Entry
from p4gen.p4 import p4c
from p4gen.p4.compile import compile_text
from p4gen.p4.info.text import to_text
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.plan.placement.network import Placement, place
from p4gen.plan.placement.placed import GroupRequest
from p4gen.program import compose, render
from p4gen.switch import bmv2
from p4gen.switch.running import end, free_port, scratch, started
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import load_topology

SPEC = EpicSpec(mode=Mode.III, lanes=8, groups=8, ports=8)
TARGETS = ("embedded", "bmv2")
_FOLDERS = ExitStack()
MISSING = [tool for tool in (bmv2.SWITCH, p4c.COMPILER) if shutil.which(tool) is None]


@cache
def _compiled(spec: ProgramSpec) -> tuple[str, str]:
    text = render(compose(spec)).text
    return text, to_text(compile_text(text, "program.p4").p4info)


@cache
def _json(spec: ProgramSpec) -> bytes:
    with scratch() as folder:
        source = folder / "program.p4"
        source.write_text(_compiled(spec)[0])
        return p4c.compile_for_bmv2(p4c.find() or "", source, folder).json.read_bytes()


@dataclass
class SwitchRig:
    """A switch process. Its ports lead nowhere; port 510 takes the agent's frames."""

    folder: Path
    target: str = "embedded"
    name: str = "s0"
    cpu_port: int = 510
    process: subprocess.Popen[bytes] | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def address(self) -> str:
        return f"unix:{self.folder / self.name}.sock"

    def info(self, spec: ProgramSpec = SPEC, **more: Any) -> SwitchInfo:
        text, p4info = _compiled(spec)
        config = text.encode() if self.target == "embedded" else _json(spec)
        return SwitchInfo(self.name, self.address, spec, p4info, config, **more)

    def start(self) -> None:
        if self.target == "embedded":
            ports = ["--unix", str(self.folder / f"{self.name}.ports"), "--ports", "8"]
            command = [sys.executable, "-m", "p4gen", "switch", *ports, "--cpu-port", str(self.cpu_port), "--until-eof"]
            command += ["--grpc-server-addr", self.address]
        else:
            command = [sys.executable, "-m", "p4gen.switch.guard", bmv2.SWITCH, "--no-p4", "--device-id", "1"]
            if bmv2.has_option("--thrift-port"):
                command += ["--thrift-port", str(free_port())]
            command += ["--log-console", "-L", "warn", "--", "--cpu-port", "510", "--grpc-server-addr", self.address]
            (self.folder / f"{self.name}.sock").unlink(missing_ok=True)
        log = self.folder / f"{self.name}.log"
        self.process = self._stack.enter_context(started(command, self.address, log, what=self.target, causes={}))

    def signal(self, number: int) -> None:
        """To the switch itself, which is a child of the guard for BMv2."""
        assert self.process is not None
        os.killpg(self.process.pid, number)

    def kill(self) -> None:
        assert self.process is not None
        self.signal(signal.SIGKILL)
        self.process.wait()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.signal(signal.SIGCONT)
            end(self.process)
        self._stack.close()


_RIGS: dict[str, SwitchRig] = {}


def rigs(target: str) -> SwitchRig:
    """For fixtures: a switch of a target that runs ``SPEC``'s program and holds nothing, or a skip that says what is
    missing. The process serves all tests, until ``close_rigs``."""
    if target == "bmv2" and MISSING:
        pytest.skip(f"not on PATH: {', '.join(MISSING)}")
    if target not in _RIGS:
        _RIGS[target] = SwitchRig(Path(_FOLDERS.enter_context(scratch())), target)
    rig = _RIGS[target]
    if rig.process is None or rig.process.poll() is not None:
        rig.start()
    agent = IncAgent(rig.info())
    agent.restart()
    agent.close()
    return rig


def close_rigs() -> None:
    """End all of them."""
    for rig in _RIGS.values():
        rig.close()
    _RIGS.clear()
    _FOLDERS.close()


def placement(groups: int, spec: EpicSpec = SPEC, topology: str = "star-4") -> Placement:
    """So many refined groups of all ranks."""
    found = load_topology(topology)
    slots = spec.slots_per_group
    return place(found, spec, [GroupRequest(found.rank_hosts, sync=PsnSync.REFINED, slots=slots)] * groups)


def config(groups: int, spec: EpicSpec = SPEC) -> SwitchConfig:
    """What the switch of a star holds for them."""
    (found,) = placement(groups, spec).switches.values()
    return found


def canonical(found: SwitchConfig) -> Any:
    """A configuration without the order of things, and with short names."""
    return (
        {_entry(entry) for entry in found.entries},
        {(g.group_id, frozenset(g.replicas)) for g in found.multicast_groups},
        {(s.session_id, frozenset(s.replicas), s.packet_length) for s in found.clone_sessions},
    )


def _entry(entry: Entry) -> Any:
    def short(name: str) -> str:
        return name.rpartition(".")[2]

    action = (short(entry.action.name), frozenset(entry.action.args.items()))
    return short(entry.table), frozenset(entry.match.items()), action, entry.priority


def size(found: SwitchConfig) -> int:
    """Entries, groups and sessions."""
    return len(found.entries) + len(found.multicast_groups) + len(found.clone_sessions)


def eventually(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_S
    while not (found := condition()):
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.01)
    return found
