"""SCIN's conformance: scenarios, the programs that they run on, and the faults that they must detect."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from p4gen.papers.scin.spec import ScinSpec
from p4gen.ptf.family import Conformance, Mutated, SuiteRun
from p4gen.ptf.faults import SHARED_FAULTS, seeding
from p4gen.resources import resource

OPS = ("sum", "min", "max")
DTYPES = ("int32", "uint32", "float32", "float16", "bfloat16", "mxint8", "int8_float16")
FLOATS = DTYPES[2:5]
WORDS = DTYPES[:5]
"""Types without scales."""
SCALED = "test_scin_scales"
"""The scenarios of elements with scales."""
ARITHMETIC = {"mxint8": "test_scin_mxint8", "int8_float16": "test_scin_int8_float16"}
"""Those of the arithmetic of each type with scales."""
EXACT = "test_scin_exact"
"""Those of calls that say whether elements have scales."""
FLOATING = "test_scin_floats"
"""Those of floating-point numbers."""
_SUITE = resource("ptf_tests") / "scin"
SMALL: dict[str, Any] = {
    "lanes": 8,
    "waves": 2,
    "wave": 4,
    "contexts": 4,
    "edges": 4,
    "ports": 8,
    "patience": 6,
}


def small(**fields: Any) -> ScinSpec:
    """A small program with everything that scenarios need."""
    return ScinSpec(**SMALL | fields)


def _runs(spec: ScinSpec) -> tuple[SuiteRun[ScinSpec], ...]:
    """All scenarios on ``spec``'s program, and on small ones that differ from it in one field."""
    own = {
        "op": spec.op,
        "dtype": spec.dtype,
        "overflow": spec.overflow,
        "icrc": spec.icrc,
        "completion": spec.completion,
        "ip": spec.ip,
        "exact": spec.exact,
    }
    if spec.scaled:
        return (
            SuiteRun(spec),
            SuiteRun(small(**own | {"block": 64 if spec.scale_block == 32 else 32, "lanes": 64})),
            SuiteRun(small(**own | {"wave": 1, "waves": 8, "lanes": 128, "block": 32})),
        )
    other = "uint32" if spec.dtype == "int32" else "int32"
    # Arithmetic has scenarios of its own: of a program of other numbers only these run.
    floats = [dtype for dtype in FLOATS if dtype != spec.dtype]
    return (
        SuiteRun(spec),
        SuiteRun(small(**own | {"dtype": other})),
        SuiteRun(small(**own | {"wave": 1, "waves": 8})),
        SuiteRun(small(**own | {"completion": "strict" if spec.ordered else "ordered"})),
        *(SuiteRun(small(**own | {"dtype": dtype, "overflow": "saturate"}), (FLOATING,)) for dtype in floats),
        *_with_scales(spec),
    )


def _with_scales(spec: ScinSpec) -> tuple[SuiteRun[ScinSpec], ...]:
    """The scenarios of elements with scales, which are added only."""
    if spec.op != "sum":
        return ()
    fields = {"lanes": 64, "waves": 4, "icrc": spec.icrc, "completion": spec.completion, "ip": spec.ip}
    return (
        SuiteRun(small(**fields | {"dtype": "mxint8", "lanes": 32}), (SCALED, ARITHMETIC["mxint8"])),
        SuiteRun(small(**fields | {"dtype": "int8_float16"}), (ARITHMETIC["int8_float16"],)),
        SuiteRun(small(**fields | {"dtype": "mxint8", "lanes": 32, "exact": "int32"}), (EXACT,)),
    )


def _serves(spec: ScinSpec, module: str) -> bool:
    own = {name: spec.dtype == dtype for dtype, name in ARITHMETIC.items()}
    return ({SCALED: spec.scaled, FLOATING: spec.floating, EXACT: spec.exact is not None} | own).get(module, True)


FACET: Conformance[ScinSpec] = Conformance(
    serves=_serves,
    runs=_runs,
    seeding=lambda _: seeding([_SUITE / "faults.toml", *SHARED_FAULTS], "scin", suite=[_SUITE]),
    axes={"op": OPS, "dtype": DTYPES, "overflow": ("saturate", "wrap"), "completion": ("strict", "ordered")},
    kept=(),
    every_program=lambda _: [
        *(small(op=op, dtype=dtype) for op in OPS for dtype in WORDS),
        *(small(dtype="mxint8", lanes=64, block=block) for block in (32, 64)),
        small(completion="ordered"),
        small(completion="ordered", dtype="mxint8", lanes=64),
        small(dtype="int8_float16", lanes=64),
        small(dtype="mxint8", lanes=32, exact="int32"),
        small(dtype="int8_float16", lanes=64, exact="int32", completion="ordered"),
    ],
    mutated=lambda spec, _reliabilities, _pipelines: [
        Mutated(how, small(op=spec.op, dtype=spec.dtype, completion=how, ip=spec.ip, lanes=64 if spec.scaled else 8))
        for how in ("strict", "ordered")
    ],
    # A cursor passes once before the first slot, once for each slot, and once beyond the last one.
    passes=lambda spec: spec.slots + 3,
    equivalents=Path(__file__).with_name("equivalents.yaml"),
    suite=_SUITE,
    takes_over=(resource("ptf_tests") / "ordinary",),
)
