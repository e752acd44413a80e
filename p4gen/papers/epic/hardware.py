"""How EPIC's programs are made smaller."""

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


FACET: Hardware[EpicSpec] = Hardware(_smaller)
