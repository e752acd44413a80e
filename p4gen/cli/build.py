"""``p4gen build``: from a spec to a program, its P4Info and its manifest."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from p4gen.cli.common import p4c_timeout_option, p4info_option
from p4gen.cli.options import (
    flags_of,
    json_option,
    out_option,
    report_console,
    spec_from,
    spec_options,
    this_command,
)
from p4gen.cli.verb import verb
from p4gen.families import collective

if TYPE_CHECKING:
    from rich.console import Console

    from p4gen.builder import Built

LEAST_PATH_MTU = 256
"""Bytes (InfiniBand 9.4.3): the least that real NICs send in each packet of a message but the last."""


@verb(
    examples=[
        ("--mode II", "EPIC's Mode II, 64 lanes of int32"),
        ("--mode III --lanes 256 --pipelines 2 --out build", "Mode III, packets of 1 KiB, two pipelines"),
        ("spec.yaml --op max", "a spec from a file, with another reduction"),
    ]
)
@spec_options
@out_option
@p4info_option
@click.option("--no-line", is_flag=True, help="Omit the #line directives that point to the templates.")
@p4c_timeout_option
@json_option
def command(
    spec_file: Path | None,
    out: Path,
    p4info: Path | None,
    no_line: bool,
    p4c_timeout: float | None,
    as_json: bool,
    **flags: str | None,
) -> None:
    """Generate a program, compile it, and check it against p4gen's rules.

    The program's folder always contains its P4Info, <program>.p4info.txtpb; --p4info writes it elsewhere as well.
    """
    spec = spec_from(spec_file, flags)
    # The front end takes a while to load, and wrong fields are refused without it.
    from p4gen.builder import build  # noqa: PLC0415
    from p4gen.p4.info import files as p4info_files  # noqa: PLC0415

    if spec.takes_part and (reducing := collective(spec)).payload_bytes < LEAST_PATH_MTU:
        lanes = LEAST_PATH_MTU * 8 // reducing.lane_bits
        most, each, _ = spec.architecture.results
        click.echo(
            f"p4gen: warning: no NIC cuts messages into packets of {reducing.payload_bytes} bytes; the least path MTU"
            f" is {LEAST_PATH_MTU}: --lanes {lanes}{' --payload-pipes 2' if 0 < most * each < lanes else ''}",
            err=True,
        )
    if p4info is not None:
        p4info_files.check_path(p4info)
    built = build(spec, out, line_directives=not no_line, p4c_timeout=p4c_timeout)
    written = built.files
    if p4info is not None:
        p4info_files.write(p4info, built.compiled.program)
        written += (p4info,)
    if as_json:
        files = [str(file) for file in written]
        click.echo(
            json.dumps(
                {"folder": str(built.folder), "files": files, "p4c": built.p4c, "refusal": built.refusal}
                | built.manifest
            )
        )
    else:
        _report(built, written, report_console())


def _report(built: Built, written: Sequence[Path], console: Console) -> None:
    from rich.table import Table  # noqa: PLC0415 - see command

    from p4gen.p4.toolchain import Toolchain  # noqa: PLC0415

    spec = built.composition.spec
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("module", "in", "registers", "tables"):
        table.add_column(title)
    table.add_column("state", justify="right")
    for module in built.composition.modules:
        registers = [
            f"{r.name} {int(r.instances)} x {int(r.entries)} x {r.width} bit"
            if int(r.instances) > 1
            else f"{r.name} {int(r.entries)} x {r.width} bit"
            for r in module.keeps
        ]
        tables = [f"{t.name} {int(t.entries)}" for t in module.tables]
        bits = module.state_bits
        table.add_row(
            module.name, module.gress, ", ".join(registers), ", ".join(tables), f"{bits // 8:,} B" if bits else ""
        )
    table.add_row("", "", "", "", f"{built.composition.state_bits // 8:,} B", style="bold")
    console.print(table)
    console.print()
    if (line := built.composition.report) is not None:
        console.print(line)
        console.print()
    for file in written:
        console.print(str(file))
    console.print()
    tools = spec.architecture.facet(Toolchain)
    if built.refusal is not None:
        console.print(f"not accepted, which an experiment may be: {built.refusal}")
    else:
        console.print(tools.absent if built.p4c is None else f"p4c ({built.p4c}) {tools.accepted}")
    console.print()
    console.print("Next:")
    ptf, program = f"{this_command()} ptf", " ".join(flags_of(spec))
    console.print(f"  less {built.program}")
    console.print(f"  {ptf} run {program}       # run the conformance suite")
    console.print(f"  {ptf} mutate {program}    # and see that it catches faults")
