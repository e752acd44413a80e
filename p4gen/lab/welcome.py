"""What a lab says when it stands: where things are, and what to type next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from p4gen.lab.session import Lab


DEFAULT_ADDRESS_FILE = "build/lab/manager"
"""Where ``p4gen top`` looks by itself."""


def shown(path: Path) -> str:
    """A path as people want to read it: from where they are, if it is below."""
    short = os.path.relpath(path)
    return short if not short.startswith("..") else str(path)


def welcome(lab: Lab, console: Console) -> None:
    """Print how the lab came up, where its files are, and what can be typed."""
    job = lab.job
    parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in lab.stages.items() if name != "all")
    console.print(
        f"{lab.topology.name} is up after {lab.stages['all']:.1f} s ({parts}): {len(lab.switches)} switches "
        f"({job.target}) run {job.spec.program}, {len(lab.hosts)} hosts"
    )
    console.print(f"  logs and captures      {shown(job.folder)}", markup=False)
    top = "p4gen top"
    if shown(job.address_file) != DEFAULT_ADDRESS_FILE:
        top += f" --manager {lab.manager_address}"
    console.print(f"  from another terminal  {top}", markup=False)
    console.print(f"                         nsenter -t {lab.outer} -n bash (switches' interfaces; hosts' are in net)")
