"""The text that a lab prints when it is up: where its files are, and what to type next."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from p4gen.labs.session import Lab


DEFAULT_ADDRESS_FILE = "build/lab/manager"
"""The file that ``p4gen top`` reads by default."""


def display_path(path: Path) -> str:
    """A path for display: relative to the current folder if it is below it."""
    short = os.path.relpath(path)
    return short if not short.startswith("..") else str(path)


def welcome(lab: Lab, console: Console) -> None:
    """Print how long the start took, where the lab's files are, and example commands."""
    job = lab.job
    programs = job.spec.program
    if job.core_spec is not None:
        programs += f" (those without hosts {job.core_spec.program})"
    parts = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in lab.stages.items() if name != "all")
    console.print(
        f"{lab.topology.name} is up after {lab.stages['all']:.1f} s ({parts}): {len(lab.switches)} switches "
        f"({job.target}) run {programs}, {len(lab.topology.hosts)} hosts"
    )
    console.print(f"  logs and captures      {display_path(job.folder)}", markup=False)
    top = "p4gen top"
    if display_path(job.address_file) != DEFAULT_ADDRESS_FILE:
        top += f" --manager {lab.manager_address}"
    console.print(f"  from another terminal  {top}", markup=False)
    console.print(f"                         nsenter -t {lab.outer} -n bash (switches' interfaces; hosts' are in net)")
