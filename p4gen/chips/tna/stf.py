"""STF commands that only Tofino has. They have the names of BF-Runtime or simple_switch_CLI, where there are any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from p4gen.chips.tna.filters import Detection, Filter
from p4gen.chips.tna.generator import Application, Trigger
from p4gen.chips.tna.replication import Branch, Direction, Ecmp, Lag, MirrorSession, Node, NodeReplica, Tree
from p4gen.chips.tna.settings import Settings
from p4gen.errors import Diagnostic
from p4gen.model import ControlError
from p4gen.model.entries import MulticastGroup
from p4gen.stf.commands import Commander
from p4gen.stf.extension import Extra, StfCommands
from p4gen.stf.lexer import StfError
from p4gen.stf.statements import BoundAction, Value


def _settings(bench: Commander) -> Settings:
    machine = bench.model.machine
    assert isinstance(machine, Settings)
    return machine


def _word(name: str, of: object, what: str) -> str:
    """The value of a word that has to be one of some. Raises ``ControlError``."""
    allowed = get_args(of)
    if name not in allowed:
        raise ControlError(f"{what} {name}: it is {', '.join(allowed)}")
    return name


# --- multicast ---


@dataclass
class _Trees:
    """Properties of nodes and groups besides replication ids and ports."""

    bench: Commander
    lags: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """By node."""
    exclusions: dict[tuple[int, int], int] = field(default_factory=dict)
    """By group and node."""
    ecmps: list[list[int]] = field(default_factory=list)
    """Nodes of each ECMP."""
    branches: dict[int, list[tuple[int, int | None]]] = field(default_factory=dict)
    """ECMPs of each group, and their exclusion ids."""

    def node(self, number: int) -> Node:
        """A node by its number, with ports and LAGs."""
        rid, ports = self.bench.node(number)
        return Node(rid, tuple(ports), self.lags.get(number, ()))

    def regroup(self, group: int) -> None:
        """Give the switch a group again."""
        plain: list[NodeReplica] = []
        branches: list[Branch] = []
        for number in self.bench.groups.get(group, []):
            node, exclusion = self.node(number), self.exclusions.get((group, number))
            if node.lags:
                branches.append(Branch(node, exclusion))
            else:
                plain += [NodeReplica(port, node.rid, exclusion=exclusion) for port in node.ports]
        for number, exclusion in self.branches.get(group, []):
            branches.append(Branch(Ecmp(tuple(map(self.node, self.ecmps[number]))), exclusion))
        replicas = tuple(dict.fromkeys(plain))
        if branches:
            _settings(self.bench).set_group(Tree(group, replicas, branches=tuple(branches)))
        else:
            self.bench.model.set_multicast_group(MulticastGroup(group, replicas))


def _trees(bench: Commander) -> _Trees:
    """The trees of a bench, which makes its groups with them from now on."""
    found = bench.regroup
    if found is None:
        trees = _Trees(bench)
        bench.regroup = trees.regroup
        return trees
    owner = getattr(found, "__self__", None)
    assert isinstance(owner, _Trees)
    return owner


def _exclude(bench: Commander, group: int, node: int, exclusion: int) -> None:
    if node not in bench.group(group):
        raise ControlError(f"multicast group {group}: node {node} is not in it")
    _trees(bench).exclusions[group, node] = exclusion
    bench.refresh()


def _node_lags(bench: Commander, node: int, *lags: int) -> None:
    bench.node(node)
    _trees(bench).lags[node] = lags
    bench.refresh()


def _ecmp(bench: Commander) -> int:
    ecmps = _trees(bench).ecmps
    ecmps.append([])
    return len(ecmps) - 1


def _members(bench: Commander, ecmp: int) -> list[int]:
    ecmps = _trees(bench).ecmps
    if ecmp >= len(ecmps):
        raise ControlError(f"multicast ECMP {ecmp}: it has not been created")
    return ecmps[ecmp]


def _ecmp_add(bench: Commander, ecmp: int, node: int) -> None:
    bench.node(node)
    _members(bench, ecmp).append(node)
    bench.refresh()


def _ecmp_associate(bench: Commander, group: int, ecmp: int, exclusion: int | None = None) -> None:
    bench.group(group)
    _members(bench, ecmp)
    _trees(bench).branches.setdefault(group, []).append((ecmp, exclusion))
    bench.refresh()


# --- mirrors, ports, parameters ---


def _direction(bench: Commander, session: int, name: str) -> None:
    settings = _settings(bench)
    old = settings.state.sessions.get(session)
    if old is None:
        raise ControlError(f"mirror session {session}: it is not configured")
    direction = cast("Direction", _word(name, Direction, f"mirror session {session}: direction"))
    bench.model.set_clone_session(MirrorSession(session, old.replicas, old.packet_length, direction=direction))


Switch = Literal["on", "off"]


def _loopback(bench: Commander, port: int, name: str) -> None:
    _settings(bench).set_loopback(port, _word(name, Switch, f"loopback of port {port}") == "on")


def _lpf(
    bench: Commander, name: str, kind: str, rising: int, falling: int, scale: int, index: int | None = None
) -> None:
    of = cast('Literal["rate", "sample"]', _word(kind, Literal["rate", "sample"], "a filter's type"))
    _settings(bench).set_filter(name, index, Filter(of, rising, falling, scale))


def _wred(
    bench: Commander, name: str, time: int, first: int, second: int, percent: int, index: int | None = None
) -> None:
    _settings(bench).set_filter(name, index, Detection(time, first, second, percent / 100))


# --- the packet generator ---

TRIGGERS: dict[str, Trigger] = {
    "trigger_timer_one_shot": "one shot",
    "trigger_timer_periodic": "periodic",
    "trigger_port_down": "port down",
    "trigger_recirc_pattern": "recirculation",
    "trigger_dprsr": "deparser",
}
"""BF-Runtime's actions of ``pktgen.app_cfg``."""
FIELDS = (
    "pipe", "timer_nanosec", "batch_count_cfg", "packets_per_batch_cfg", "ipg", "ibg", "pattern_value", "pattern_mask",
    "buffer",
)  # fmt: skip
"""The data of a generator's applications, and the pipe and the packet, which BF-Runtime has elsewhere. Counts are one
less than the number of packets made."""


def _bytes(value: Value) -> bytes:
    """The bytes of a hexadecimal number, with its leading zeros."""
    if not value.text.lower().startswith("0x") or len(value.text) % 2:
        raise StfError(Diagnostic(value.pos, "bytes are written as 0x and an even number of digits"))
    return bytes.fromhex(value.text[2:])


def _start(bench: Commander, number: int, call: BoundAction) -> None:
    given = dict(call.args)
    unknown = [name for name in given if name not in FIELDS]
    if call.name not in TRIGGERS or unknown:
        known = f"a field is {', '.join(FIELDS)}" if unknown else f"an application is {', '.join(TRIGGERS)}"
        raise StfError(Diagnostic(call.pos, f"{(unknown or [call.name])[0]}: {known}"))

    def field(name: str) -> int:
        return given[name].value if name in given else 0

    packet = _bytes(given["buffer"]) if "buffer" in given else b""
    _settings(bench).start(
        Application(
            number, packet, TRIGGERS[call.name], field("pipe"), field("timer_nanosec"), field("batch_count_cfg") + 1,
            field("packets_per_batch_cfg") + 1, field("ibg"), field("ipg"), field("pattern_value"),
            field("pattern_mask"),
        )
    )  # fmt: skip


def _read(bench: Commander, number: int, pipe: int = 0) -> None:
    counts = _settings(bench).state.generator.counts(number, pipe)
    bench.notes.append(
        f"pktgen application {number} of pipe {pipe}: {counts.triggers} triggers, {counts.batches} batches,"
        f" {counts.packets} packets"
    )


def _do(what: Callable[..., object]) -> Callable[..., None]:
    """A command that is a method of the settings, or of the generator."""

    def run(bench: Commander, *args: int) -> None:
        what(_settings(bench), *args)

    return run


FACET = StfCommands(
    {
        "mc_node_l1_xid": Extra(("group", "node", "xid"), _exclude),
        "mc_prune": Extra(("xid", "port…"), _do(lambda own, xid, *ports: own.set_exclusion(xid, ports))),
        "mc_global_rid": Extra(("rid",), _do(Settings.set_global_rid)),
        "mc_set_lag_membership": Extra(("lag", "port…"), _do(lambda own, lag, *ports: own.set_lag(lag, Lag(ports)))),
        "mc_node_lags": Extra(("node", "lag…"), _node_lags),
        "mc_ecmp_create": Extra((), _ecmp),
        "mc_ecmp_add": Extra(("ecmp", "node"), _ecmp_add),
        "mc_ecmp_associate": Extra(("group", "ecmp", "xid?"), _ecmp_associate),
        "mirroring_direction": Extra(("session", "NAME"), _direction),
        "cpu_port": Extra(("port",), _do(Settings.set_cpu_port)),
        "port_metadata": Extra(("port", "value"), _do(Settings.set_port_metadata)),
        "port_loopback": Extra(("port", "NAME"), _loopback),
        "port_down": Extra(("port",), lambda bench, port: bench.model.set_link(port, False)),
        "port_up": Extra(("port",), lambda bench, port: bench.model.set_link(port, True)),
        "register_param": Extra(("NAME", "value"), _do(Settings.set_parameter)),
        "lpf_set": Extra(("NAME", "NAME", "rising", "falling", "scale", "index?"), _lpf),
        "wred_set": Extra(("NAME", "time", "first", "second", "percent", "index?"), _wred),
        "pktgen_app_cfg": Extra(("application", "CALL"), _start),
        "pktgen_app_disable": Extra(("application", "pipe?"), _do(Settings.stop)),
        "pktgen_app_read": Extra(("application", "pipe?"), _read),
        "pktgen_pkt_buffer": Extra(
            ("offset", "BYTES"), lambda bench, at, data: _settings(bench).state.generator.write(at, _bytes(data))
        ),
        "pktgen_clear_port_down": Extra(("port",), _do(lambda own, port: own.state.generator.arm(port))),
    }
)
