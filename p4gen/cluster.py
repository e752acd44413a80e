"""Workers of a Dask cluster, on this machine or on others (``pip install p4gen[cluster]``)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from p4gen.errors import Diagnostic, InputError, MissingToolError, Option

LOCAL: Final = "local:"
_SECONDS: Final = 30
"""How long a scheduler may take to answer."""


@contextmanager
def connected(address: str, option: str) -> Iterator[Any]:
    """A client of a Dask scheduler at ``address``, or with local:N of N processes on this machine, which end with it.

    ``option`` is the option that gave the address. Raises ``MissingToolError`` without Dask, and ``InputError`` for an
    address without a scheduler that has workers.
    """
    try:
        from distributed import Client, LocalCluster  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingToolError(f"--{option} needs Dask: pip install 'p4gen[cluster]'") from error
    logging.getLogger("distributed").setLevel(logging.ERROR)
    with ExitStack() as opened:
        cluster: Any = None
        if address.startswith(LOCAL):
            count = address.removeprefix(LOCAL)
            if not count.isdecimal() or not 1 <= int(count) <= 64:
                raise InputError(Diagnostic(Option(option), f"{LOCAL}N takes 1 to 64 processes"))
            cluster = LocalCluster(n_workers=int(count), threads_per_worker=1, host="127.0.0.1", dashboard_address=None)
            opened.callback(cluster.close)
        try:
            client: Any = Client(cluster or address, timeout=_SECONDS)
        except (OSError, ValueError) as error:
            raise InputError(Diagnostic(Option(option), f"no Dask scheduler answers at {address}")) from error
        opened.callback(client.close)
        if not client.scheduler_info(n_workers=-1)["workers"]:
            raise InputError(Diagnostic(Option(option), f"the scheduler at {address} has no workers"))
        yield client
