"""A test of a lab: all its collectives, loss, a link that fails and recovers, ordinary traffic.

The steps are the family's (``p4gen.labs.calls.LabMembers``); here is what they have in common, and what runs them.
"""

from __future__ import annotations

import itertools
import subprocess
import time
from typing import Any, Final

from rich.console import Console

from p4gen.errors import FailedError, P4genError
from p4gen.labs.calls import CallOrder, members_of
from p4gen.labs.hosts.ping import PING
from p4gen.labs.parties import Party
from p4gen.labs.runs.run import Run, RunOutcome
from p4gen.labs.session import Lab
from p4gen.rocev2.headers import ip_text
from p4gen.switch import targets

STEP_S: Final = 600.0
"""The longest that a step takes before it fails."""
_SIZE: Final = {targets.EMBEDDED: 32 << 10, targets.BMV2: 8 << 10}
"""Bytes of each rank's data; BMv2 handles some thousand packets per second."""
_SHARES: Final = {"loss": "1%", "duplicate": "0.5%", "reorder": "0.5%", "corrupt": "0.5%"}
"""Of packets that have each kind of fault."""
_WORDS: Final = {"duplicate": "duplication", "reorder": "reordering", "corrupt": "corruption"}


class Suite:
    """A lab under test, and what steps do with it."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab, self._seed = lab, seed
        self.ranks = lab.topology.rank_hosts
        self.entries = {switch.name: switch.entries for switch in lab.manager.status().switches}
        """Entries that switches have without groups and connections."""

    @property
    def faults(self) -> list[str]:
        """The faults that the program withstands. Without the ICRC nobody notices corrupt data."""
        spec = self.lab.job.spec
        intact = spec.needs_intact or not spec.icrc.checked
        lacking = {kind for kind, lacks in (("reorder", spec.needs_order), ("corrupt", intact)) if lacks}
        return [kind for kind in _SHARES if kind not in lacking]

    def samples(self, size: int) -> list[CallOrder]:
        """Calls of all kinds, of about so many bytes; the first one is of that size."""
        spec, ranks = self.lab.job.spec, len(self.ranks)
        return [CallOrder.of(spec, ranks, *asked) for asked in members_of(spec).samples(spec, ranks, size)]

    def run(self, party: Party, calls: list[CallOrder]) -> Run:
        """Begin calls, which have ``STEP_S`` seconds for all of them together."""
        return Run(self.lab, party, calls, seed=self._seed, deadline=STEP_S)

    def run_all(self) -> list[RunOutcome]:
        """Make all kinds of calls. Raises ``FailedError`` if a result is wrong."""
        found = []
        calls = [(self.lab.parties.of(self.ranks, call), call) for call in self.samples(_SIZE[self.lab.job.target])]
        for _, group in itertools.groupby(calls, lambda each: each[0].name):
            (party, *_), some = zip(*group, strict=True)
            found.append(self.run(party, list(some)).result())
            if found[-1].problems:
                raise FailedError(*found[-1].problems)
        return found

    def under_faults(self) -> str:
        """Make all kinds of calls while every host's link has all faults that the program withstands."""
        try:
            for kind in self.faults:
                self.lab.impairments.suffer("all", kind, _SHARES[kind])
            ranks = [rank for outcome in self.run_all() for rank in outcome.ranks]
        finally:
            self.lab.impairments.heal()
        taken, resent = sum(sum(rank["faults"].values()) for rank in ranks), sum(rank["resent"] for rank in ranks)
        if not taken:
            raise FailedError("no packet was lost: the faults had no effect")
        return f"{taken} packets lost, {resent} sent again"

    def ping(self) -> str:
        """Check that ordinary traffic passes: ping between all hosts."""
        names = list(self.lab.hosts)
        pings = []
        for host, target in zip(names, [*names[1:], names[0]], strict=True):
            address = ip_text(self.lab.hosts[target].hello.result()["ip"])
            command = [*self.lab.inside(host), *PING, "-c", "6", "-i", "0.05", address]
            popen = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            pings.append((f"ping from {host} to {target}", popen))
        failed = []
        for what, popen in pings:
            said = popen.communicate(timeout=STEP_S)[0]
            if popen.returncode:
                failed.append(f"{what}: {said.strip().splitlines()[-1] if said.strip() else 'no answer'}")
        if failed:
            raise FailedError(*failed)
        return f"{len(pings)} pairs"


def work(lab: Lab, console: Console) -> tuple[int, dict[str, Any]]:
    """Run the suite. It ends at the first step that fails."""
    told: list[dict[str, Any]] = []
    problem = ""
    seed = lab.job.wanted.seed
    console.print(f"seed {seed}")
    suite = Suite(lab, seed)
    words = [_WORDS.get(kind, kind) for kind in suite.faults]
    faults = f"{', '.join(words[:-1])} and {words[-1]}"
    for title, step in members_of(lab.job.spec).steps():
        name, began = title.format(faults=faults), time.monotonic()
        problem = note = ""
        try:
            note = step(suite)
        except P4genError as error:
            problem = "; ".join(diagnostic.message for diagnostic in error.diagnostics)
        seconds = time.monotonic() - began
        told.append({"name": name, "seconds": seconds, "problem": problem, "note": note})
        style, word = ("red", "FAILED") if problem else ("green", "ok")
        console.print(f"[{style}]{word:6}[/{style}] {seconds:5.2f} s  {name}: ", end="")
        console.print(problem or note, markup=False)
        if problem:
            break
    return int(bool(problem)), {"passed": not problem, "seed": seed, "steps": told}


def rate_text(outcome: RunOutcome) -> str:
    """What the first call has come to, of calls that were all right."""
    return f"{outcome.calls[0].throughput / 1e6:.1f} Mb/s"
