"""Random data of every kind that the manager's API carries."""

from __future__ import annotations

from hypothesis import strategies as st

from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.verbs import Peer, Recovery
from p4gen.manager.api import (
    ConnectionSpec,
    ConnectionState,
    ConnectionStatus,
    Durations,
    GroupSpec,
    GroupState,
    GroupStatus,
    GroupTree,
    HostAddresses,
    HostInfo,
    JobGroup,
    JobSpec,
    JobStatus,
    LinkPort,
    Membership,
    NicInfo,
    RankChannel,
    RankConfig,
    RankReport,
    RankTree,
    RingEnd,
    Schedule,
    Status,
    SwitchInfo,
    SwitchStatus,
)
from p4gen.papers.epic.spec import EpicSpec, Mode
from p4gen.vocabulary.message import Collective

names = st.text(st.characters(codec="utf-8"), max_size=12)
small = st.integers(0, (1 << 32) - 1)
large = st.integers(0, (1 << 64) - 1)
macs = st.integers(0, (1 << 48) - 1)
ips = small | st.integers(1 << 32, (1 << 128) - 1)
qps = st.integers(0, (1 << 24) - 1)
seconds = st.floats(0, 1e9)
states = st.sampled_from(GroupState)
collectives = st.sampled_from(Collective)
syncs = st.sampled_from(PsnSync)
counts = st.dictionaries(names, small, max_size=3)

program_specs = st.builds(
    EpicSpec,
    mode=st.sampled_from(Mode),
    lanes=st.sampled_from([8, 64]),
    groups=st.sampled_from([2, 8]),
)
link_ports = st.builds(LinkPort, small, names, names)
switches = st.builds(
    SwitchInfo, names, names, program_specs, names, st.binary(max_size=20), large, small,
    st.lists(link_ports, max_size=3).map(tuple),
)  # fmt: skip
nics = st.builds(
    NicInfo, st.sampled_from(Recovery), st.lists(small, max_size=3).map(tuple), small, small,
    st.lists(st.tuples(small, small), max_size=3).map(tuple),
)  # fmt: skip
hosts = st.builds(HostInfo, names, st.booleans(), nics)
addresses = st.builds(HostAddresses, macs, ips, macs, ips)
schedules = st.builds(Schedule, names, st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=2).map(tuple))
group_specs = st.builds(
    GroupSpec, names, st.lists(names, max_size=4).map(tuple), st.none() | names, syncs,
    st.frozensets(collectives, min_size=1), st.none() | small, fallback=st.booleans(), duty=st.floats(0.01, 1.0),
    elastic=st.booleans(), term=large, gone=st.lists(names, max_size=2).map(tuple), schedule=st.none() | schedules,
)  # fmt: skip
trees = st.builds(GroupTree, st.dictionaries(names, st.none() | names, max_size=3), seconds)
group_statuses = st.builds(
    GroupStatus,
    group_specs,
    states,
    large,
    names,
    st.dictionaries(names, st.none() | names, max_size=3),
    counts,
    counts,
    st.booleans(),
    st.lists(trees, max_size=2).map(tuple),
    small,
)
job_groups = st.builds(JobGroup, group_specs, st.lists(small, max_size=3).map(tuple))
job_specs = st.builds(JobSpec, names, small, st.lists(job_groups, max_size=2).map(tuple), names)
job_statuses = st.builds(
    JobStatus, job_specs, st.lists(names, max_size=3).map(tuple), st.lists(group_statuses, max_size=2).map(tuple)
)
channels = st.builds(
    RankChannel, st.tuples(collectives, small), qps, st.builds(Peer, macs, ips, qps, st.integers(0, 65535))
)
ring_ends = st.builds(RingEnd, qps, st.builds(Peer, macs, ips, qps, st.integers(0, 65535)))
rank_trees = st.builds(RankTree, st.lists(channels, max_size=2).map(tuple), seconds)
rank_configs = st.builds(
    RankConfig, names, large, small, small, addresses, st.lists(channels, max_size=3).map(tuple), qps, small, syncs,
    program_specs, st.lists(ring_ends, max_size=4).map(tuple), st.booleans(),
    st.lists(rank_trees, max_size=2).map(tuple), large,
)  # fmt: skip
memberships = st.builds(Membership, names, states, large, st.none() | rank_configs, names, st.booleans())
connection_specs = st.builds(ConnectionSpec, names, names, qps, qps, small, small, small, st.booleans())
connection_statuses = st.builds(
    ConnectionStatus, large, connection_specs, st.sampled_from(ConnectionState), large, names, names, names,
    st.lists(names, max_size=3).map(tuple), small, small, small,
)  # fmt: skip
reports = st.builds(
    RankReport, names, small, large, large, large, large, large, large, large, st.dictionaries(names, large, max_size=3)
)
switch_statuses = st.builds(
    SwitchStatus, names, st.booleans(), names, small, small, small, small, small,
    st.dictionaries(names, large, max_size=3), st.lists(names, max_size=3).map(tuple), seconds,
    st.builds(Durations, st.just(()) | st.lists(large, min_size=13, max_size=13).map(tuple), seconds),
)  # fmt: skip
statuses = st.builds(
    Status, seconds, st.lists(group_statuses, max_size=2).map(tuple), st.lists(switch_statuses, max_size=2).map(tuple),
    st.lists(reports, max_size=2).map(tuple), leases=counts,
)  # fmt: skip
