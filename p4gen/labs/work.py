"""The work of a lab from its start to its end."""

from __future__ import annotations

from typing import Any

from p4gen.host import raw
from p4gen.labs.job import LabJob
from p4gen.labs.prompt import prompt
from p4gen.labs.prompt.console import lab_console
from p4gen.labs.prompt.served import serve
from p4gen.labs.prompt.welcome import welcome
from p4gen.labs.runs import bandwidths, measure, programs, scenario, suite
from p4gen.labs.session import Lab
from p4gen.manager.api import Code, ManagerError

_ENDING_S = 5.0
_WORK = {
    "prompt": prompt.work, "scenario": scenario.work, "suite": suite.work, "measure": measure.work,
    "bandwidths": bandwidths.work, "programs": programs.work,
}  # fmt: skip


def work(job: LabJob, outer: int) -> tuple[int, dict[str, Any]]:
    """Start the lab, do the requested work, end it. Returns exit status and result. Raises ``P4genError``."""
    console = lab_console(quiet=job.wanted.as_json)
    lab = Lab(job, outer)
    try:
        console.print(f"starting {len(lab.topology.switches)} switches and {len(lab.topology.hosts)} hosts …")
        if lab.compiled and (why := raw.waits_for()):
            console.print(f"{why} …")
        lab.start()
        welcome(lab, console)
        served = job.wanted.what == "prompt" and job.wanted.as_json
        return serve(lab) if served else _WORK[job.wanted.what](lab, console)
    except ManagerError as error:
        # Wait briefly for the manager's process to end, because its connection ends first.
        lab.check_manager(_ENDING_S if error.code is Code.UNREACHABLE else 0.0)
        raise
    finally:
        lab.stop()
