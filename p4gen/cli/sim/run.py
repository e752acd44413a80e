"""``p4gen sim run``: a collective through the generated program over a virtual network, checked against NumPy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from p4gen.cli.nccltests import table_options
from p4gen.cli.sim.options import simulation_options
from p4gen.cli.sim.own import collective_names, own_options
from p4gen.cli.verb import verb


@verb(
    examples=[
        ("star-8 --mode III --size 4M", "AllReduce of 4 MiB by eight ranks"),
        ("tree-3-2 --mode II --loss 1% --seed 7", "with losses, repeatable"),
        ("star-4 --script 'drop the 3rd UP_DATA of rank 2' --ladder run.svg", "one loss, drawn as a diagram"),
        ("leaf-spine --mode multiwrite --collective dispatch --loss 1%", "tokens to their experts, by MultiWrite"),
        ("star-8 --mode scin --collective allgather --loss 1%", "started by the switch, which reads operands: SCIN"),
        ("leaf-spine --plan plan.json --size 4M", "over a tree of `p4gen route tree`"),
        ("star-8 --mode III --nccl-tests -b 1K -e 16M -f 4", "time and bandwidth by size, as nccl-tests prints them"),
        ("--schedule build/counterexample/schedule.yaml", "the events that `p4gen verify --out` has written"),
    ]
)
@simulation_options(always=False, more=collective_names())
@own_options
@table_options
@click.option(
    "--schedule",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Play the events that `p4gen verify --out` has written; the file says what runs.",
)
@click.option(
    "--plan",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Ranks and IncTree of a plan that `p4gen route tree --out` has written.",
)
@click.option("--capture", type=click.Path(path_type=Path, dir_okay=False), help="Write a pcapng file of all links.")
@click.option("--ladder", type=click.Path(path_type=Path, dir_okay=False), help="Draw the first packets as SVG.")
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Run a collective over a virtual network.

    TOPOLOGY is a YAML file, a built-in topology's name (`p4gen topo` lists them), or clos:LxSxH (leaves, spines, hosts
    on each leaf). Every switch runs the generated program; ranks are NICs with reliable-connection queue pairs. Exit
    status 1 when a result is wrong, the run does not end, or a script drops nothing; the reason is printed. With
    --schedule, in place of TOPOLOGY and all that describes a run, events happen in the order of a file, and also
    what else was wrong with one, such as a packet that is sent for nothing, makes the exit status 1.
    """
    from p4gen.cli.sim.do_run import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
