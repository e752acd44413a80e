"""What is used of pyverbs. It comes with rdma-core, and is in no package index: importing this module without it raises
``MissingToolError``."""

from __future__ import annotations

from p4gen.errors import MissingToolError

try:
    from pyverbs import enums
    from pyverbs.addr import GID, AHAttr, GlobalRoute
    from pyverbs.cq import CQ, CompChannel
    from pyverbs.device import Context
    from pyverbs.mr import MR
    from pyverbs.pd import PD
    from pyverbs.pyverbs_error import PyverbsError
    from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
    from pyverbs.wr import SGE, RecvWR, SendWR
except ImportError:
    raise MissingToolError("verbs devices need pyverbs: apt install python3-pyverbs") from None

__all__ = [
    "CQ",
    "GID",
    "MR",
    "PD",
    "QP",
    "SGE",
    "AHAttr",
    "CompChannel",
    "Context",
    "GlobalRoute",
    "PyverbsError",
    "QPAttr",
    "QPCap",
    "QPInitAttr",
    "RecvWR",
    "SendWR",
    "enums",
]
