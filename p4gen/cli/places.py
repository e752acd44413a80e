"""The options that say how a host reaches its manager and its switch, for verbs that make this machine a host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from p4gen.cli.defaults import MANAGER_VARIABLE
from p4gen.cli.values import ADDRESS

F = TypeVar("F", bound=Callable[..., Any])
_TLS = "Folder of the certificate, if the manager asks for one.  [$P4GEN_TLS]"
_VERBS = "The verbs device that is the NIC: mlx5_0, rxe0.  [$P4GEN_VERBS]"
_INTERFACE = "The interface with p4gen's own NIC.  [$P4GEN_INTERFACE, else by the host's address]"


def manager_options(function: F) -> F:
    """``--manager`` and ``--tls``."""
    function = click.option("--tls", metavar="DIR", help=_TLS)(function)
    return click.option("--manager", type=ADDRESS, help=f"Address of the manager.  [${MANAGER_VARIABLE}]")(function)


def place_options(function: F) -> F:
    """``--manager``, ``--tls``, ``--verbs`` and ``--interface``, as ``p4gen.join`` has them."""
    function = click.option("--interface", help=_INTERFACE)(function)
    return manager_options(click.option("--verbs", metavar="DEVICE", help=_VERBS)(function))
