"""EPIC's conformance: scenarios, the programs that they run on, and the faults that they must detect."""

from pathlib import Path

from p4gen.papers.epic.capabilities import capabilities
from p4gen.papers.epic.conformance.matrix import AXES, every_program
from p4gen.papers.epic.conformance.mutated import mutated
from p4gen.papers.epic.conformance.runs_i import mode_i_runs
from p4gen.papers.epic.conformance.runs_ii import mode_ii_runs
from p4gen.papers.epic.conformance.runs_iii import mode_iii_runs
from p4gen.papers.epic.spec import EpicSpec, Mode, Served
from p4gen.papers.epic.tofino import folding, static
from p4gen.papers.epic.tofino import iii as static_iii
from p4gen.ptf.family import IPV6_SCENARIOS, Conformance
from p4gen.ptf.faults import SHARED_FAULTS, seeding
from p4gen.ptf.mutations import Seeding
from p4gen.resources import resource

MODE_III_PREFIX = "test_iii_"
"""Prefix of the names of modules with scenarios for Mode III, and for Mode I as far as they say so."""
MODE_I_PREFIX = "test_i_"
"""Prefix of those for Mode I alone; all others are for Mode II."""
STATIC_PREFIX = "test_static_"
"""Prefix of those for Mode II in programs of static groups."""
LOCKS = "test_locks"
"""The module for groups that share slots, in Modes II and III."""
KINDS = "kinds"
"""End of the names of those for programs that take RoCEv2 over IPv6."""


def _serves(spec: EpicSpec, module: str) -> bool:
    if module.endswith(KINDS) and not spec.roce_ipv6:
        return False
    if module.startswith(STATIC_PREFIX):
        return spec.mode is Mode.II and static(spec)
    if module.startswith(MODE_I_PREFIX):
        return spec.mode is Mode.I
    if module == LOCKS:
        return spec.locks > 0
    return module.startswith(MODE_III_PREFIX) == spec.mode.augmented


def _seeding(spec: EpicSpec) -> Seeding:
    suite = resource("ptf_tests")
    files = (*sorted((suite / "epic").glob("faults*.toml")), *SHARED_FAULTS)
    if not static(spec):
        return seeding(files, str(spec.mode), suite=[suite, IPV6_SCENARIOS])
    kind = f"{spec.mode} {'tna' if spec.architecture.egress_bytes else 't2na'}"
    plain = spec.model_copy(update={"serves": Served.REDUCTIONS})  # as most of the kind's programs
    return seeding(files, kind, suite=[suite], lacks={each.name: each.reason for each in capabilities(plain)})


def _passes(spec: EpicSpec) -> int:
    """A cursor passes once for each packet that it sends, and once beyond the last one. Each packet may go on to the
    other pipelines, and be answered there."""
    if static(spec):
        return max((static_iii.passes() if spec.mode.augmented else folding.passes(spec)).values())
    others = spec.pipelines - 1
    if not spec.mode.augmented:
        return 1 + others + (others > 0)
    most = spec.slots_per_group if spec.mode is Mode.I else min(spec.slots_per_group, static_iii.BURST)
    return (2 + most) * (1 + 2 * others)


RUNS = {Mode.I: mode_i_runs, Mode.II: mode_ii_runs, Mode.III: mode_iii_runs}
"""The programs that each mode is tested with."""
FACET: Conformance[EpicSpec] = Conformance(
    serves=_serves,
    runs=lambda spec: RUNS[spec.mode](spec),
    seeding=_seeding,
    axes=AXES,
    kept=("mode", "arch"),
    every_program=lambda spec: every_program(spec.mode, type(spec), spec.arch),
    mutated=mutated,
    passes=_passes,
    equivalents=Path(__file__).with_name("equivalents.yaml"),
)
