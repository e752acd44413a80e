"""Types of verbs' parameters: checked when the command line is read, and completed by shells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from p4gen.errors import InputError
from p4gen.resources import resource

T = TypeVar("T")
DEVICE_ID = click.IntRange(0, (1 << 64) - 1)
"""P4Runtime's ``device_id``."""


class LateChoice(click.Choice):  # type: ignore[type-arg]  # generic in newer versions of click only
    """One of the values that a function finds, which is called only when they are needed: it may load a lot."""

    def __init__(self, find: Callable[[], Iterable[str]]) -> None:
        super().__init__(())
        self._find = find

    def __getattribute__(self, name: str) -> Any:
        """``choices`` are the values."""
        return tuple(self._find()) if name == "choices" else super().__getattribute__(name)


class _Topology(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A built-in topology's name, or a YAML file; the verb loads it."""

    name = "file|name"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names of built-in topologies, and a request for the shell's own file names."""
        names = sorted(file.stem for file in resource("topologies").glob("*.yaml"))
        found = [CompletionItem(name) for name in names if name.startswith(incomplete)]
        return [*found, CompletionItem(incomplete, type="file")]


class _Policy(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A placement policy's name; the verb looks it up."""

    name = "name|module:class"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The built-in ones, and those of entry points."""
        from p4gen.plan.placement.policy import known_policies  # noqa: PLC0415 - only here is a manager's part needed

        return [CompletionItem(name) for name in known_policies() if name.startswith(incomplete)]


class _Address(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A gRPC address, ``HOST:PORT`` or ``unix:PATH``, checked when the command line is read."""

    name = "address"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The address as it was given. Fails with the reason if it is not valid."""
        from p4gen.switch.address import checked  # noqa: PLC0415 - only verbs that talk to a switch need it

        try:
            return checked(value)
        except InputError as error:
            self.fail(error.reason, param, ctx)


class SpecValue(click.ParamType):  # type: ignore[type-arg]  # generic in newer versions of click only
    """A field of the spec as text; ``load_spec`` checks it, whether it comes from a flag or a file."""

    name = "text"

    def __init__(self, values: Callable[[], Sequence[str]]) -> None:
        self.values = values

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The values of the field that begin with ``incomplete``."""
        return [CompletionItem(value) for value in self.values() if value.startswith(incomplete)]


TOPOLOGY, POLICY, ADDRESS = _Topology(), _Policy(), _Address()
