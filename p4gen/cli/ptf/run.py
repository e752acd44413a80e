"""``p4gen ptf run``: the conformance suite on a program and its variants."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.choices import TARGETS, TOFINO_MODEL
from p4gen.cli.options import (
    engine_option,
    json_option,
    out_option,
    spec_options,
)
from p4gen.cli.ptf.options import tests_option
from p4gen.cli.seeds import seed_option
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("--mode II", "the whole suite, on the embedded switch"),
        ("--mode III --reliability sr --target bmv2", "on BMv2"),
        ("--mode II --test test_reliability --trace", "some scenarios, with the path of each packet"),
        ("--mode III --matrix 8", "on eight small programs of different settings"),
        ("--mode II --arch t2na --sample 30", "thirty scenarios, on a program for Tofino 2"),
        ("--mode II --arch t2na --target tofino-model --report run.json", "on Intel's model, with a file to send"),
    ]
)
@spec_options
@out_option
@json_option
@click.option(
    "--target",
    type=click.Choice((*TARGETS, TOFINO_MODEL)),
    default=TARGETS[0],
    show_default=True,
    help="What runs the program: the embedded switch, BMv2's simple_switch_grpc (needs BMv2 and p4c), or for TNA and "
    "T2NA Intel's tofino-model (needs open-p4studio; never run so far, see docs/tofino-model.md).",
)
@engine_option
@seed_option("all random choices.")
@tests_option
@click.option(
    "--matrix",
    metavar="N|all",
    help="Run on N small programs, or all: of every op, dtype, overflow, reliability, ICRC setting, congestion "
    "notification and number of pipelines that are not given. N are drawn by seed.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write one file about the run that can be sent: versions, commands, results, manifests, ends of logs. Names "
    "of user and host, the home folder and secrets of the environment are replaced.",
)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="N of the scenarios that apply, drawn by seed.")
@click.option(
    "--share",
    type=click.IntRange(1, 100),
    metavar="PERCENT",
    help="This share of the suite's modules, of the program and of its variants, drawn by seed.",
)
@click.option("--trace", is_flag=True, help="Print the whole path of every packet through the program (with --test).")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run the conformance suite on a program.

    The program runs on the embedded switch, on BMv2 or on Intel's model of Tofino, in its own process, configured
    through P4Runtime (the model: BF-Runtime) and driven with RoCEv2 packets. Scenarios that need another op, dtype,
    ICRC setting, reliability or number of pipelines run on small variants of it.

    Exit status 1 when a scenario fails, or when none applies; those that do not apply are listed with the reason.
    """
    from p4gen.cli.ptf.do_run import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
