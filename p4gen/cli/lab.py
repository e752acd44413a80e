"""``p4gen lab``: switches, hosts and a manager under Mininet, in their own namespaces; a prompt, or a scenario."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click

from p4gen.choices import ENGINES
from p4gen.cli.nccltests import table_options
from p4gen.cli.options import (
    json_option,
    out_option,
    spec_options,
    target_option,
)
from p4gen.cli.seeds import seed_option
from p4gen.cli.values import ADDRESS, POLICY, TOPOLOGY, LateChoice
from p4gen.cli.verb import FiniteRange, verb


def _collectives() -> Iterable[str]:
    from p4gen.cli.labrequest import collectives  # noqa: PLC0415 - wrong options are refused without it

    return collectives()


@verb(
    examples=[
        ("star-4 --mode III", "a prompt"),
        ("tree-3-2 --mode II --collective allreduce --size 1M", "a scenario: run it, compare with NumPy, end"),
        ("leaf-spine --mode III --suite", "all collectives, under faults, over a link that is cut"),
        ("star-4 --collective reduce --size 64K --root 2 --loss 1%@h0", "with losses at one host"),
        (
            "tree-3-2 --groups 1 --policy time-shared --collective allreduce --ranks h0,h2 --ranks h1,h3",
            "groups that have the switches in turns",
        ),
        ("leaf-spine --policy aro --plan trees.json --collective allreduce", "over the trees of a plan"),
        ("star-4 --mode III --nccl-tests -b 1K -e 1M -f 4", "time and bandwidth by size, as nccl-tests prints them"),
        ("star-4 --mode III --exec 'python train.py'", "a program of one's own on every host"),
        ("star-4 --mode III --hosts softroce --suite", "between Linux's own RoCE stacks, in virtual machines"),
        ("star-4 --mode multiwrite", "a prompt: run allgather 64K; run dispatch tokens 32"),
        ("star-4 --mode scin --suite", "collectives that the switch starts"),
        ("leaf-spine --mode themis --collective alltoall --delay 1ms@spine0", "over connections that leaves spray"),
    ]
)
@click.argument("topology", type=TOPOLOGY)
@spec_options
@target_option
@click.option(
    "--hosts",
    metavar="KIND|h0=KIND,...",
    help="Hosts that are virtual machines with Linux's own RoCE stack: softroce, or softroce:6.1 for that kernel.",
)
@click.option(
    "--engine", type=click.Choice(ENGINES), default="jit", show_default=True, help="What runs embedded switches."
)
@click.option(
    "--collective",
    type=LateChoice(_collectives),
    help="Run it, and end; alltoall over connections only, dispatch only where ranks write to each other.",
)
@click.option(
    "--set", multiple=True, metavar="NAME=VALUE", help="An option of a collective, as at the prompt: --set tokens=32."
)
@click.option("--size", metavar="BYTES", help="Each rank's data, such as 64K or 1M.  [1M]")
@click.option("--root", type=click.IntRange(0, 1023), help="Root rank of reduce and broadcast.  [0]")
@click.option(
    "--ranks",
    multiple=True,
    metavar="all|h0,h2,...",
    help="Hosts, in order of rank; several times for groups that call at the same time.  [the topology's ranks]",
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 99_999),
    help="Collectives, one after another.  [1; --measure, --nccl-tests: 10, BMv2: 3]",
)
@click.option(
    "--loss",
    multiple=True,
    metavar="SHARE[@PLACE]",
    help="Lose packets at links, in both directions: 1% at all hosts' links, 5%@h1, 1%@leaf0-spine1; at a switch's "
    "links to other switches: 1%@spine0.",
)
@click.option("--delay", multiple=True, metavar="TIME[@PLACE]", help="Delay packets: 1ms@spine0.")
@click.option("--reorder", multiple=True, metavar="SHARE[@PLACE]", help="Delay some, so that packets are reordered.")
@click.option("--duplicate", multiple=True, metavar="SHARE[@PLACE]", help="Deliver packets twice.")
@click.option("--corrupt", multiple=True, metavar="SHARE[@PLACE]", help="Flip one to three bits.")
@click.option(
    "--bandwidth", multiple=True, metavar="RATE[@PLACE]", help="Limit links, in each direction: 20M (bit/s), 5M@s0-s1."
)
@click.option(
    "--fail",
    multiple=True,
    metavar="LINK[@FROM[-TO]]",
    help="Take a link down after a time: s0-s1@0.2s, s0-s1@0.2s-1s.",
)
@click.option("--suite", is_flag=True, help="All collectives, under loss, and over a link that fails and comes back.")
@click.option("--exec", metavar="COMMAND", help="Run a program on every host, as a rank, and end when all have ended.")
@click.option(
    "--measure", is_flag=True, help="All collectives, or --collective, of 4K to --size, beside EPIC's Tables 19 to 24."
)
@table_options
@seed_option("data and faults.")
@click.option("--timeout", metavar="TIME", help="Retransmission timer of queue pairs, 1ms to 60s.  [50ms; BMv2: 300ms]")
@click.option(
    "--deadline", type=FiniteRange(0.1, 86_400), default=120.0, show_default=True, help="Seconds for a scenario."
)
@click.option("--spray", type=click.Choice(("on", "off")), help="Whether leaves spray connections at first.  [on]")
@click.option("--policy", type=POLICY, help="Where the manager puts groups.  [lowest-common-switch]")
@click.option("--replan", type=click.Choice(("on", "off")), help="Whether groups move to faster trees.  [on]")
@click.option(
    "--plan", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="A plan of `p4gen route tree`, for the policy aro.  [P4GEN_PLAN]",
)  # fmt: skip
@click.option("--fallback", is_flag=True, help="Groups without a place call on a ring of their hosts.")
@click.option(
    "--duty",
    multiple=True,
    metavar="SHARE",
    help="Of time in which groups communicate, for policies that share it: of all, or once for each --ranks.",
)
@click.option(
    "--turn",
    multiple=True,
    metavar="NAME=FROM-TO",
    help="A window in which a group of --ranks (g0, g1, ...) begins a call, in shares of --period: g0=0%-50%.",
)
@click.option("--period", metavar="TIME", help="Of --turn; a group begins a call in each of its windows.  [1s]")
@click.option("--metrics", metavar="ADDRESS", type=ADDRESS, help="Where Prometheus finds the lab's manager: HOST:PORT.")
@click.option(
    "--tenants",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="With --exec: the manager's tenants; the hosts of each are a job of its own.",
)
@click.option(
    "--tls", metavar="DIR", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="With --tenants: folders of certificates, of `manager` at 100.64.0.1 and of each tenant.",
)  # fmt: skip
@click.option("--pcap", is_flag=True, help="Capture every node from the start.")
@click.option("--verbose", is_flag=True, help="BMv2 logs every step of every packet.")
@out_option
@json_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Bring up a network of switches and hosts with a manager, under Mininet.

    TOPOLOGY is a YAML file, a built-in topology's name (`p4gen topo` lists them), or clos:LxSxH (leaves, spines, hosts
    on each leaf). Without a scenario (--collective, --suite, --measure, --nccl-tests) there is a prompt, which takes
    commands from a pipe, too. Needs root and Mininet; it leaves nothing behind, however it ends. Exit status 1 when a
    result is wrong.

    If switches do not take part in collectives (--mode themis), hosts run them over connections with each other: on a
    ring, or as an AlltoAll. Leaves run the program; other switches only route. In labs of --mode multiwrite they write
    to each other, each packet to several hosts: AllGather and dispatch. In labs of --mode scin the switch reads their
    operands, and writes results and flags.

    Hosts of --hosts softroce run p4gen on Linux's Soft-RoCE, each in a virtual machine (`p4gen softroce build` makes
    the images).
    """
    from p4gen.cli.do_lab import do  # noqa: PLC0415 - wrong options are refused without it

    do(ctx, **options)
