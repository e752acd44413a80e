"""The configuration of a run on a virtual network: groups, their collectives, faults, policies."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from p4gen.errors import InputError
from p4gen.families import load_collective
from p4gen.groups.group import Memory
from p4gen.groups.ranks import recovery_of
from p4gen.host.collectives.arrays import check_root
from p4gen.host.collectives.plan import Flow, PsnSync
from p4gen.host.transport.clock import US
from p4gen.host.transport.dcqcn import DcqcnConfig
from p4gen.host.transport.memory import ProtectionDomain
from p4gen.host.transport.verbs import Recovery
from p4gen.model import EngineName
from p4gen.net.world.faults import Faults
from p4gen.plan.placement.network import contexts_needed
from p4gen.plan.placement.placed import GroupRequest
from p4gen.plan.placement.tree import IncTree
from p4gen.vocabulary import CollectiveSpec, DType, Op
from p4gen.vocabulary.message import Collective
from p4gen.vocabulary.topology import TopologySpec

MAX_DATA: Final = 1 << 30
"""Upper limit for the data of all ranks in one call, in bytes, where each rank has memory of its own for it. The data
is held in memory, and so are NumPy's results."""
MAX_RESULTS: Final = 8 * MAX_DATA
"""The same for calls of ``values.draw``, whose ranks share the memory of data that is more than ``MAX_DATA``."""


@dataclass(frozen=True)
class Call:
    """One call of a collective. ``size`` is the number of bytes that each rank contributes; for AllGather, the size of
    the result."""

    collective: Collective = Collective.ALLREDUCE
    size: int = 1 << 20
    root: int = 0
    """Rank; of Reduce and Broadcast."""
    op: Op | None = None
    """The operation if the program's op is ``dynamic``; sum by default."""
    dtype: DType | None = None
    """The number format if the program's op is ``dynamic``; the spec's default otherwise."""

    def kind(self, spec: CollectiveSpec) -> tuple[Op, DType]:
        """Operation and number format. Raises ``InputError`` when the program does not support them."""
        if spec.op is Op.DYNAMIC:
            dtype = self.dtype or spec.dtype
            if dtype not in {numbers.dtype for numbers in spec.choices}:
                raise InputError(f"the program with op dynamic works on integers and its own dtype, not on {dtype}")
            return self.op or Op.SUM, dtype
        if self.op not in (None, spec.op) or self.dtype not in (None, spec.dtype):
            raise InputError(f"the program does {spec.op} of {spec.dtype}; others need --op dynamic")
        return spec.op, spec.dtype

    def check(self, spec: CollectiveSpec, ranks: int) -> None:
        """Raises ``InputError`` unless a group of ``ranks`` can make the call."""
        barrier = self.collective is Collective.BARRIER
        divided = self.collective.every_root
        element = self.kind(spec)[1].number_format.bytes
        unit = element * ranks if divided else element
        if self.size % unit or (self.size == 0) != barrier:
            what = "0 for a barrier" if barrier else f"a positive multiple of {unit}"
            raise InputError(f"{self.collective} of {self.size} bytes: it has to be {what}")
        if self.size * ranks > MAX_RESULTS:
            raise InputError(
                f"{self.collective} of {self.size} bytes by {ranks} ranks: all ranks' data together have "
                f"{MAX_RESULTS >> 20:,} MiB at most, so {MAX_RESULTS // ranks // unit * unit} bytes are the limit"
            )
        check_root(self.root, ranks, spec.roots)


@dataclass(frozen=True)
class Work:
    """A group, and the collectives that its ranks call in this order."""

    calls: tuple[Call, ...]
    ranks: tuple[str, ...] | None = None
    """Hosts in order of rank; by default the topology's ranks."""
    tree_root: str | None = None
    """Switch at the IncTree's root; chosen by default."""
    tree: IncTree | None = None
    """The whole tree; by default one of shortest paths to the root."""
    pace: int | None = None
    """The most bit/s, with the overhead on the wire, that each rank sends over the tree."""


@dataclass(frozen=True)
class SimConfig:
    """The configuration of a run. Times are in ps.

    The plain fields describe one group of all ranks that makes the same call ``repeat`` times. If several groups run at
    the same time, or a group makes different calls, ``work`` takes their place.
    """

    topology: TopologySpec
    program: CollectiveSpec
    """Its ``groups`` is increased to the number of contexts that the run needs."""
    collective: Collective = Collective.ALLREDUCE
    size: int = 1 << 20
    """Bytes, as in ``Call``."""
    repeat: int = 1
    """Number of calls, one after the other."""
    faults: Faults = field(default_factory=Faults)
    seed: int = 0
    recovery: Recovery | None = None
    """The NICs' loss recovery; by default the one that suits the program."""
    timeout: int = 50 * US
    """The NICs' retransmission timer; 0 disables it."""
    retry_count: int | None = None
    ack_every: int = 32
    rank_window: int | None = None
    """Messages that ranks keep outstanding, if not the program's W."""
    dcqcn: DcqcnConfig | None = None
    initial_psn: int | None = None
    """Drawn from the seed by default."""
    skew: int = 0
    """Ranks start at random times between 0 and ``skew``."""
    engine: EngineName = "interp"
    overflowing: bool = False
    """Draw values so large that sums overflow. All values of a column have the same sign, so their order does not
    matter."""
    root: int = 0
    """Rank; of Reduce and Broadcast."""
    sync: PsnSync = PsnSync.SUBGROUPS
    """How PSNs are kept synchronised across asymmetric collectives (EPIC 4.3)."""
    flow: Flow = Flow.RESULTS
    work: tuple[Work, ...] = ()
    epoch: int = 1
    """The epoch of all groups' contexts."""
    ticks: bool = True
    """Whether switches that want ticks (Mode III) get them."""
    start: int = 0
    """When ranks start, ps; ``skew`` comes on top of it."""
    priority: int = 0
    """Of all packets of ranks (``QpConfig``)."""

    @property
    def jobs(self) -> tuple[Work, ...]:
        """The groups, each with its calls."""
        call = Call(self.collective, self.size, self.root)
        return self.work or (Work((call,) * self.repeat),)

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of all groups, group by group."""
        return tuple(call for job in self.jobs for call in job.calls)

    @property
    def nic_recovery(self) -> Recovery:
        """``recovery``, or its default: the one that switches implement, so that both ends of a connection agree."""
        return self.recovery or recovery_of(self.program)

    @property
    def hosts(self) -> tuple[tuple[str, ...], ...]:
        """The hosts of each group, by rank."""
        return tuple(job.ranks or self.topology.rank_hosts for job in self.jobs)

    @property
    def trees(self) -> dict[int, IncTree]:
        """The trees of groups that name one, by the group's number."""
        return {number: job.tree for number, job in enumerate(self.jobs) if job.tree is not None}

    def requests(
        self, initial_psns: tuple[int, ...], domains: dict[str, ProtectionDomain] | None = None
    ) -> list[GroupRequest]:
        """The requests to the placer, one for each group. Raises ``InputError`` when a group cannot make its calls.

        ``domains`` have what ranks of earlier runs on the same network offer, by host: the memory of those of these
        groups is added."""
        found = []
        domains = {} if domains is None else domains
        for job, hosts, psn in zip(self.jobs, self.hosts, initial_psns, strict=True):
            if not job.calls:
                raise InputError("repeat must be at least 1")
            for call in job.calls:
                call.check(self.program, len(hosts))
            rooted = {call.root for call in job.calls if call.collective in (Collective.REDUCE, Collective.BROADCAST)}
            collectives = frozenset(call.collective for call in job.calls)
            request = GroupRequest(
                hosts,
                job.tree_root,
                self.sync,
                collectives,
                None if any(each.every_root for each in collectives) else frozenset(rooted),
                epoch=self.epoch,
                first_psn=psn,
                possible_roots=self.program.roots,
                barriers=True,
            )
            found.append(_offering(request, self.program, domains))
        return found

    def fit_program(self, requests: list[GroupRequest]) -> CollectiveSpec:
        """The program with as many contexts as the groups need. Raises ``InputError`` when it cannot have so many."""
        spec = self.program
        needed = contexts_needed(self.topology, requests, pipelines=spec.pipelines, ports=spec.ports, trees=self.trees)
        if needed <= spec.groups:
            return spec
        return load_collective(None, spec.model_dump(mode="json", exclude_unset=True) | {"groups": needed})


def _offering(request: GroupRequest, spec: CollectiveSpec, domains: dict[str, ProtectionDomain]) -> GroupRequest:
    """The request with the memory that its ranks offer. NICs assign addresses and keys in order, so ranks' CommLib will
    get these when it registers the same memory in the same order."""
    if not spec.uses_memory:
        return request
    size = len(request.channels()) * spec.channel_memory
    regions = [domains.setdefault(host, ProtectionDomain()).register(bytearray(size)) for host in request.ranks]
    return replace(request, memories=tuple(Memory(each.address, each.rkey, size) for each in regions))
