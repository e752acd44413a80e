"""EPIC's Table 17: the resources of its program on a Tofino."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from p4gen.errors import InputError
from p4gen.families.hardware import Hardware
from p4gen.families.load import parse_spec
from p4gen.papers.epic.spec import EpicSpec
from p4gen.papers.epic.tofino.limits import problems

LEAST_LANES = 8


def _with(spec: EpicSpec, **fields: object) -> EpicSpec:
    found = parse_spec(spec.model_dump(mode="json", exclude_unset=True) | fields)
    assert isinstance(found, EpicSpec)
    return found


def _halved(spec: EpicSpec, name: str, value: int, least: int) -> Iterator[tuple[str, EpicSpec]]:
    """Half of it, a quarter, and so on, as long as the spec may have that."""
    while (value := value // 2) >= least:
        try:
            yield f"--{name} {value}", _with(spec, **{name: value})
        except InputError:
            return


def _folded(spec: EpicSpec) -> Iterator[tuple[str, EpicSpec]]:
    """The payload shared among more pipes, as far as the program can have that."""
    for pipes in (2, 4):
        if pipes > spec.payload_pipes:
            with suppress(InputError):
                wider = _with(spec, payload_pipes=pipes)
                if not any(problems(wider)):
                    yield f"--payload-pipes {pipes}", wider


def _smaller(spec: EpicSpec) -> Iterator[Iterator[tuple[str, EpicSpec]]]:
    """Fewer lanes, a payload of more pipes, fewer slots or groups, or the other Tofino."""
    yield _halved(spec, "lanes", spec.lanes, LEAST_LANES)
    if not spec.mode.augmented:
        yield _folded(spec)
    yield _halved(spec, "slots", spec.slots_per_group, 1)
    yield _halved(spec, "groups", spec.groups, 1)
    if spec.arch == "tna":
        yield iter([("--arch t2na", _with(spec, arch="t2na"))])


def _sized(spec: EpicSpec, slots: int) -> EpicSpec:
    """One group with all slots."""
    return _with(spec, groups=1, slots=slots)


FACET: Hardware[EpicSpec] = Hardware(
    paper="EPIC",
    table=17,
    target="Tofino",
    rows={
        "hash bits": (5.65, 6.05, 6.45, 6.85),
        "gateways": (22.92, 22.92, 22.92, 22.92),
        "SRAM": (7.92, 7.92, 11.25, 31.67),
        "TCAM": (1.39, 1.39, 1.39, 1.39),
        "VLIW": (8.59, 8.59, 8.59, 8.59),
        "map RAM": (12.33, 12.33, 17.88, 51.91),
        "meter ALU": (72.92, 72.92, 72.92, 72.92),
        "PHV": (34.80, 34.80, 34.80, 34.80),
    },
    # Of 32 lanes of 32 bits: 8 MB are 4 MB in each of two pipes, 32,768 slots.
    sizes={"128 KB": 512, "512 KB": 2048, "2 MB": 8192, "8 MB": 32768},
    sized=_sized,
    smaller=_smaller,
)
