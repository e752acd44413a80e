"""The options of searches, for ``p4gen.verify`` and ``p4gen verify``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.library.options import Few, NicRecovery, Options, Text, option


class SearchOptions(Options):
    """The options of a search, as ``p4gen verify`` has them."""

    collectives: Annotated[str, option(flag="collective", metavar="NAME,...")] = "allreduce"
    """What every rank calls, one after the other."""
    packets: Annotated[int, Field(ge=1, le=250)] = 3
    """Packets that a rank sends in a call, with the control message."""
    concurrent: Annotated[int, Field(ge=1, le=8)] = 1
    """Groups of all ranks at once."""
    loss: Annotated[Few | None, option(said="1, with no other fault")] = None
    """Losses in a run."""
    duplicate: Few = 0
    """Packets that arrive a second time, any time later."""
    reorder: Few = 0
    """Packets that are delayed, so that any others arrive before them."""
    corrupt: Few = 0
    """Packets that arrive with a wrong bit."""
    timeouts: Few = 0
    """Timers that expire while packets are on their way. The others expire when nothing else can happen."""
    forge: Few = 0
    """Packets that the last host sends in another's name, of every kind, at any time."""
    first_psn: Annotated[Text, option(metavar="PSN")] = "5"
    """The first PSN of every connection."""
    stale: bool = False
    """Registers hold what an earlier group, of another epoch, has left."""
    idle_since: Annotated[Text | None, option(metavar="PSN")] = None
    """Slots hold what calls from this first PSN on have left; where no slot idles, what has come since then."""
    rank_window: Annotated[Annotated[int, Field(ge=1, le=1024)] | None, option(metavar="W")] = None
    """Messages that ranks keep outstanding: of ranks that ignore the program's window."""
    flow: Flow = Flow.RESULTS
    """When a rank may send message j: once it has the result of message j - window, or its acknowledgement."""
    sync: PsnSync = PsnSync.SUBGROUPS
    """How PSNs stay synchronised over asymmetric collectives."""
    recovery: Annotated[NicRecovery | None, option(said="as the program's")] = None
    """The NICs' loss recovery."""
    fault: Annotated[str | None, option(metavar="NAME")] = None
    """A fault of `p4gen ptf mutate`, to be seeded into the program."""
