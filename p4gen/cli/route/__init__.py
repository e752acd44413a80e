"""``p4gen route``: aggregator-aware routing, of the paper's tasks and of groups' trees."""

import click

from p4gen.cli.commands import Commands


class _Routing(Commands):
    """A topology as the first argument is for ``tree``: ``run`` takes none."""

    def _named(self, ctx: click.Context, args: list[str]) -> list[str]:
        found = super()._named(ctx, args)
        return ["tree", *args] if args and not args[0].startswith("-") else found


@click.command(
    cls=_Routing,
    package=__name__,
    about={
        "run": "Route workers to parameter servers on random fabrics, beside the paper's baselines.",
        "tree": "Find the fastest IncTree of a group on a topology, with a bound.",
        "jobs": "Plan the trees of several jobs together, by weights and the bandwidth that is left.",
        "confirm": "Run the trees of random fabrics with packets, and compare goodput with what was predicted.",
    },
    default="run",
)
def command() -> None:
    """Find the fastest aggregation, with a bound (ARO).

    'p4gen route TOPOLOGY ...' is 'p4gen route tree TOPOLOGY ...'.
    """
