"""``p4gen softroce build``: images of Soft-RoCE hosts."""

from __future__ import annotations

import json

import click

from p4gen.cli.options import json_option
from p4gen.cli.verb import verb
from p4gen.labs.softroce import images, kernel


@verb(
    examples=[
        ("", "images with Linux 6.12, which takes about a minute"),
        ("--kernel 6.1", "another kernel beside it, on the same root"),
        ("--again", "images of the newest packages in place of those that there are"),
    ]
)
@click.option("--kernel", "version", type=click.Choice(list(kernel.KERNELS)), default=kernel.DEFAULT, show_default=True,
              help="The version of Linux.")  # fmt: skip
@click.option("--again", is_flag=True, help="Make images that there are, too.")
@json_option
def command(version: str, again: bool, as_json: bool) -> None:
    """Make what Soft-RoCE hosts of labs boot from, of Debian 12's packages.

    A kernel, its first file system, and a root with pyverbs, perftest and rdma_cm's programs go into p4gen's cache, in
    folders named by what they are made of; what is there is not made again. Needs root, and Debian 12's apt.
    """
    found = images.build(version, again=again, tell=lambda line: click.echo(line, err=as_json))
    if as_json:
        click.echo(json.dumps({name: str(getattr(found, name)) for name in ("kernel", "initramfs", "root")}))
