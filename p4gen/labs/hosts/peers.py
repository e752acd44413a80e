"""A host's ends of connections to other hosts, and the collectives over them. The lab asks for all of it."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Final

import numpy as np

from p4gen.errors import FailedError
from p4gen.host.collectives.alltoall import AllToAll, AllToAllConfig, Exchange
from p4gen.host.collectives.arrays import Array
from p4gen.host.collectives.invocation import Invocation
from p4gen.host.collectives.ring import Ring, RingConfig
from p4gen.host.transport.raw import RawNic
from p4gen.labs.hosts.requests import Request, Verb
from p4gen.labs.runs.peercalls import PeerCall
from p4gen.net.collectives.check import difference
from p4gen.net.collectives.config import Call
from p4gen.net.collectives.values import invoke
from p4gen.records import from_plain
from p4gen.vocabulary.message import Collective

COUNTERS: Final = ("sent", "resent", "timeouts", "naks", "cnps")
Ended = Exchange | Invocation


class Peers:
    """Members of rings and AlltoAlls, by name. A member keeps its queue pairs until it is closed."""

    def __init__(self, name: str, nic: RawNic) -> None:
        self._name, self._nic = name, nic
        self._members: dict[str, Ring | AllToAll] = {}
        self._waiting: dict[str, Future[Ended]] = {}
        self._prepared: dict[str, tuple[PeerCall, Array, Array | None]] = {}

    @property
    def verbs(self) -> dict[str, Verb]:
        """The requests that the lab may send."""
        return {"open": self.open, "prepare": self.prepare, "begin": self.begin, "close": self.close}

    def open(self, request: Request) -> dict[str, Any]:
        """Create a member's queue pairs, with the configuration of a ring or of an AlltoAll."""
        name = request["name"]

        def create() -> None:
            nic = self._nic.nic
            if "ring" in request:
                self._members[name] = Ring(
                    nic, from_plain(RingConfig, request["ring"]), lambda run: self._ended(name, run)
                )
            else:
                config = from_plain(AllToAllConfig, request["alltoall"])
                self._members[name] = AllToAll(nic, config, lambda run: self._ended(name, run))

        self._nic.loop.run_there(create)
        return {}

    def prepare(self, request: Request) -> dict[str, Any]:
        """Draw the data of a call, all ranks' from the same seed, and compute what this rank's result is to be."""
        call, name = from_plain(PeerCall, request["call"]), request["name"]
        config = self._members[name].config
        values = call.data(config.size, np.random.default_rng([request["seed"], request["number"]]))
        self._prepared[name] = call, values[config.rank], call.results(values)[config.rank]
        return {}

    def begin(self, request: Request) -> dict[str, Any]:
        """Make the prepared call, and compare its result with the one that NumPy gives. Times are in ps."""
        name, deadline = request["name"], float(request["deadline"])
        call, values, wanted = self._prepared.pop(name)
        future: Future[Ended] = Future()
        self._waiting[name] = future
        self._nic.loop.run_there(lambda: self._make(name, call, values))
        try:
            run = future.result(deadline)
        except FutureTimeoutError:
            raise FailedError(
                f"{call.collective} of {self._name} has not ended in {deadline:g} s: others have not called it, or "
                "packets are lost"
            ) from None
        if run.error is not None:
            raise FailedError(f"{call.collective} of {self._name}: {run.error}")
        return {"started": run.started, "finished": run.finished, "problem": difference(run.result(), wanted)}

    def close(self, request: Request) -> dict[str, Any]:
        """Destroy a member's queue pairs."""
        member = self._members.pop(request["name"], None)
        if member is not None:
            self._nic.loop.run_there(member.destroy)
        return {}

    def progress(self) -> float:
        """The part of the current call that is done."""
        parts = [_progress(self._members[name]) for name, call in list(self._waiting.items()) if not call.done()]
        return min(parts, default=0.0)

    def counters(self) -> dict[str, dict[str, Any]]:
        """The counters of each member's queue pairs."""
        found = {}
        for name, member in list(self._members.items()):
            counts: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))
            for pair in member.pairs.values() if isinstance(member, AllToAll) else member.pairs:
                counts.update({each: getattr(pair.requester.stats, each) for each in COUNTERS})
            found[name] = {"rank": member.config.rank, **counts}
        return found

    def _make(self, name: str, call: PeerCall, values: Array) -> None:
        member = self._members[name]
        if isinstance(member, AllToAll):
            member.exchange(values)
        else:
            invoke(member, Call(Collective(call.collective), call.size, call.root), values)

    def _ended(self, name: str, run: Ended) -> None:
        future = self._waiting.get(name)
        if future is not None and not future.done():
            future.set_result(run)


def _progress(member: Ring | AllToAll) -> float:
    if isinstance(member, AllToAll):
        return member.progress()
    run = member.current
    return (run.messages_sent + run.messages_received) / run.messages if run is not None and run.messages else 0.0
