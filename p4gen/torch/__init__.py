"""``torch.distributed`` on generated switches: ``import p4gen.torch`` registers the backend ``inc``, for CPU tensors.

>>> import torch.distributed as dist  # doctest: +SKIP
>>> import p4gen.torch
>>> dist.init_process_group("inc")

Each process is one host of a manager (``p4gen.join`` has the variables of the environment; `p4gen lab --exec` sets
them). Every process group is a group of the manager; the store is that of ``init_process_group``, and carries only the
names of hosts and groups.
"""

from __future__ import annotations

try:
    import torch.distributed as dist
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("p4gen.torch needs PyTorch: pip install 'p4gen[torch]'", name=error.name) from None

from p4gen.torch.group import IncGroup, Options, TransferCounts, create

__all__ = ["TESTED", "IncGroup", "Options", "TransferCounts"]

TESTED = ("2.13.0",)
"""The versions of PyTorch with which the tests have passed. Older ones have other names for some calls, which are here,
too."""

dist.Backend.register_backend("inc", create, extended_api=True, devices=["cpu"])
