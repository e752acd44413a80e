"""The options of runs in a virtual network, for ``p4gen.simulate`` and ``p4gen sim``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p4gen.choices import EngineName
from p4gen.host.collectives.plan import PsnSync
from p4gen.inputs import MAX_BURST, SEEDS
from p4gen.library.options import NicRecovery, Options, Text, Texts, option

DEFAULT_TIMEOUT, DEFAULT_SIZE = "50us", "1M"
"""Those of collectives on IncTrees, for help."""


class RunOptions(Options):
    """The options of a run, as ``p4gen sim run`` has them: texts have units, such as ``256K``, ``1%`` or ``50us``."""

    collective: str | None = None
    """What ranks call: by default allreduce, or the first of a family with calls of its own."""
    size: Annotated[Text | None, option(metavar="BYTES", said=DEFAULT_SIZE)] = None
    """Each rank's data, such as 256K or 4M."""
    root: Annotated[int, Field(ge=0, le=1023)] = 0
    """Root rank of reduce and broadcast."""
    sync: PsnSync = PsnSync.SUBGROUPS
    """How PSNs stay synchronised over asymmetric collectives: QPs per pattern, or PSNs that hosts set."""
    concurrent: Annotated[int, Field(ge=1, le=256)] = 1
    """Groups of all ranks at once."""
    repeat: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Collectives, one after another."""
    calls: Texts = ()
    """Groups at the same time, each with calls of its own, in place of collective, size and root: ``h0,h1: allreduce
    64K, barrier`` and ``h2,h3: broadcast 4K root 1``."""
    jobs: Annotated[Text | None, option(metavar="JOBS.yaml")] = None
    """A file of jobs that run at the same time: collectives of groups, and traffic between hosts; in place of what
    says what ranks call."""
    engine: EngineName = "jit"
    """What runs the switches."""
    seed: Annotated[int, Field(ge=0, lt=SEEDS)] | None = None
    """Of all randomness; drawn if None."""
    loss: Annotated[Texts, option(metavar="SHARE[@WHERE]")] = ()
    """Lose packets: 5%, 5%@h0, 1%@h0-s0, 1%@h0>s0."""
    burst: Annotated[Annotated[float, Field(ge=1, le=MAX_BURST, allow_inf_nan=False)] | None, option(said="1")] = None
    """With --loss: mean number of packets lost in a row."""
    reorder: Annotated[Texts, option(metavar="SHARE[@WHERE]")] = ()
    """Delay packets, so that others overtake them."""
    duplicate: Annotated[Texts, option(metavar="SHARE[@WHERE]")] = ()
    """Deliver packets twice."""
    corrupt: Annotated[Texts, option(metavar="SHARE[@WHERE]")] = ()
    """Flip one to three bits."""
    down: Annotated[Texts, option(metavar="LINK@FROM-TO")] = ()
    """Take a link down: h0-s0@10us-60us."""
    scripts: Annotated[Texts, option(flag="script", metavar="TEXT")] = ()
    """As in 'drop the 3rd UP_DATA of rank 2'."""
    pfc: Annotated[Text | None, option(metavar="XOFF[,XON[,HEADROOM]]", said="none")] = None
    """Priority flow control: bytes of a port above which its sender pauses, at which it goes on, and more that there is
    room for; as 100K, which has half of it as XON, and what the link needs as headroom."""
    recovery: Annotated[NicRecovery | None, option(said="as the program's")] = None
    """NICs' loss recovery."""
    timeout: Annotated[Text | None, option(metavar="TIME", said=DEFAULT_TIMEOUT)] = None
    """Retransmission timer, 1us at least; 0: none."""
    retries: Annotated[Annotated[int, Field(ge=0, le=1000)] | None, option(said="never")] = None
    """Timeouts before a NIC gives up."""
    dcqcn: bool = False
    """NICs slow down when they receive congestion notifications."""
