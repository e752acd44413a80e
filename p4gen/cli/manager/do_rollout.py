"""What ``p4gen manager rollout`` does."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import click

from p4gen.builder import build
from p4gen.cli.defaults import MANAGER_VARIABLE
from p4gen.errors import FailedError, InputError, P4genError
from p4gen.library.stations import stated
from p4gen.manager.api import GroupState, Manager, SwitchInfo
from p4gen.manager.remote.client import ManagerClient
from p4gen.vocabulary import ProgramSpec

_JSON: Final = b"{"
"""How p4c's JSON begins, which BMv2 takes; the embedded switch takes P4."""
_LOOK_S: Final = 0.1
_QUIET_S: Final = 1.0
"""Seconds for which all groups have to stay active."""


def do(
    spec: ProgramSpec, out: Path, *, manager: str | None, tls: str | None, switches: str | None, wait: float
) -> None:
    """Roll the program out. Raises ``InputError`` for switches that there are not, and for those of which it knows no
    configuration; ``FailedError`` when the old programs are back."""
    with ManagerClient(stated(manager, "manager", MANAGER_VARIABLE), tls=tls) as client:
        known = sorted(status.name for status in client.status().switches)
        names = switches.split(",") if switches else known
        if unknown := [name for name in names if name not in known]:
            raise InputError(f"--switches: there is no switch {', '.join(unknown)}; there are {', '.join(known)}")
        old = [client.switch(name) for name in names]
        new = _programs(spec, out, old)
        active = {group.spec.name for group in client.groups() if group.state is GroupState.ACTIVE}
        for number, info in enumerate(new):
            try:
                _load(client, info, old[number], active, wait)
            except P4genError as error:
                click.echo(f"{info.name}: {error.reason}")
                _back_out(client, old[number::-1])
                raise FailedError(f"the rollout has failed at {info.name}; its old programs are back") from None
        click.echo(f"{len(names)} switches run {spec.program}")


def _programs(spec: ProgramSpec, out: Path, old: Sequence[SwitchInfo]) -> list[SwitchInfo]:
    """The switches as they register with the new program, which is built once."""
    as_json = [info.device_config.lstrip().startswith(_JSON) for info in old]
    built = build(spec, out, use_p4c=any(as_json))
    stem = built.program.with_suffix("")
    if any(as_json) and not stem.with_suffix(".json").exists():
        raise FailedError("BMv2 takes what p4c compiles, and p4c-bm2-ss is not on PATH")
    p4info = stem.with_suffix(".p4info.txtpb").read_text(encoding="utf-8")
    found = []
    for info, takes_json in zip(old, as_json, strict=True):
        if info.spec.arch != spec.arch:
            raise InputError(f"{info.name} runs a program for {info.spec.arch}; the new one is for {spec.arch}")
        config = (stem.with_suffix(".json") if takes_json else built.program).read_bytes()
        found.append(replace(info, spec=spec, p4info=p4info, device_config=config, cpu_port=spec.architecture.cpu_port))
    return found


def _load(manager: Manager, info: SwitchInfo, before: SwitchInfo, active: set[str], wait: float) -> None:
    """Load a program, and wait until all groups are active. Raises ``P4genError`` when they are not in time."""
    if info == before:
        click.echo(f"{info.name}: runs {info.spec.program} already")
        return
    manager.register_switch(info)
    until = time.monotonic() + wait
    since = time.monotonic()
    while time.monotonic() < since + _QUIET_S:
        groups = {group.spec.name: group for group in manager.groups()}
        waiting = [name for name in sorted(active & groups.keys()) if groups[name].state is not GroupState.ACTIVE]
        if waiting:
            since = time.monotonic()
            if since > until:
                first = groups[waiting[0]]
                why = f": {first.reason}" if first.reason else ""
                raise FailedError(f"group {waiting[0]} is {first.state} after {wait:g} s{why}")
        time.sleep(_LOOK_S)
    click.echo(f"{info.name}: {before.spec.program} → {info.spec.program}, {len(active)} groups are active")


def _back_out(manager: Manager, old: Sequence[SwitchInfo]) -> None:
    """Load the old programs again. What fails is told, and does not keep the next switch from its own."""
    for info in old:
        try:
            manager.register_switch(info)
            click.echo(f"{info.name}: {info.spec.program} is back")
        except P4genError as error:
            click.echo(f"{info.name}: its old program is not back: {error.reason}")
