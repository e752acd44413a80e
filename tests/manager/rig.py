"""Switches whose control planes are real (models of the generated program, tables of true size), agents for them that
can be made to fail at every step, and managers that can be killed."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from patience import PATIENCE_S, until

from p4gen.groups.connections import Tally
from p4gen.groups.group import PlacedEdge, SwitchConfig
from p4gen.manager.api import Agent, AgentError, Changes, GroupSpec, HostInfo, LinkPort, SwitchInfo
from p4gen.manager.manager import IncManager
from p4gen.manager.store.schema import ADDED
from p4gen.manager.switches.wanted import wanted_config
from p4gen.model import ControlError, EngineName, Model
from p4gen.model.entries import CloneSession, Entry, Exact, Lpm, MulticastGroup
from p4gen.papers.epic.spec import EpicSpec
from p4gen.plan.placement.planner import View
from p4gen.program.compilation import compile_spec
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.topology import TopologySpec, load_topology

Key = tuple[object, ...]


def key_of(item: Entry | MulticastGroup | CloneSession) -> Key:
    """What makes it the same thing, whatever it does."""
    if isinstance(item, MulticastGroup):
        return ("multicast group", item.group_id)
    if isinstance(item, CloneSession):
        return ("clone session", item.session_id)
    match = (
        (name, (m.value, m.prefix_len) if isinstance(m, Lpm) else m.value if isinstance(m, Exact) else m)
        for name, m in item.match.items()
    )
    return (_short(item.table), *sorted(match, key=str))


def _short(name: str) -> str:
    """A table's own name; with that of its control where there are several, which are numbered."""
    above, _, own = name.rpartition(".")
    return f"{above.rpartition('.')[2]}.{own}" if above[-1:].isdigit() else own


def content(item: Entry | MulticastGroup | CloneSession) -> object:
    """What it does."""
    if isinstance(item, Entry):
        return item.action.name.rpartition(".")[2], dict(item.action.args)
    return item.replicas


def added_since(schema: int) -> list[str]:
    """The tables that a store has since a later schema than this one."""
    texts = "".join(tables for each, tables in ADDED.items() if each > schema)
    return re.findall(r"CREATE TABLE (\w+)", texts)


def by_key(config: SwitchConfig) -> dict[Key, Entry | MulticastGroup | CloneSession]:
    items: list[Entry | MulticastGroup | CloneSession] = [*config.entries]
    items += [*config.multicast_groups, *config.clone_sessions]
    return {key_of(item): item for item in items}


class Switch:
    """A switch in memory: it outlives managers, and can be restarted."""

    def __init__(self, name: str, spec: ProgramSpec, engine: EngineName = "interp") -> None:
        self.name = name
        self.spec = spec
        self.lock = threading.Lock()
        self.model = Model(compile_spec(spec).program, engine=engine)
        self.loads = 1

    def restart(self) -> None:
        """Its power goes, and comes back."""
        with self.lock:
            self.load()

    def load(self) -> None:
        """The program, anew."""
        self.model.reset()
        self.loads += 1

    def tally(self, tally: Tally) -> int:
        """What the program has counted; for who holds ``lock``."""
        if tally.entry is None:
            return sum(self.model.counter(tally.counter, index).packets for index in tally.cells)
        try:
            return self.model.entry_counter(tally.entry).packets
        except ControlError:  # it is not there
            return 0

    def given_up(self) -> Mapping[int, int]:
        """Ticks of edges given up, by index."""
        with self.lock:
            cells = self.model.counters("IncIngress.resend_timer.given_up")
        return {index: cell.packets for index, cell in enumerate(cells) if cell.packets}

    def holds(self) -> SwitchConfig:
        """Everything but what the program itself says."""
        model, state = self.model, self.model._state
        entries = [e for table in state.tables for e in model.entries(table) if not model.is_const(e)]
        return SwitchConfig(tuple(entries), tuple(state.groups.values()), tuple(state.sessions.values()))

    def write(self, item: Entry | MulticastGroup | CloneSession, how: str) -> None:
        """``how``: insert, modify, delete."""
        if isinstance(item, Entry):
            getattr(self.model, how)(item)
        elif isinstance(item, MulticastGroup):
            self.model.set_multicast_group(item if how != "delete" else MulticastGroup(item.group_id, ()))
        else:
            self.model.set_clone_session(item if how != "delete" else CloneSession(item.session_id, ()))


Fault = Callable[[str, str], None]
"""Called with a switch's name and the step: may raise ``AgentError``, or take its time."""


class ModelAgent:
    """An agent as ``api.Agent`` wants it; ``alive`` says whether its manager is."""

    def __init__(self, switch: Switch, fault: Fault, alive: Callable[[], bool]) -> None:
        self.name = switch.name
        self.switch = switch
        self.ticking: Sequence[PlacedEdge] = ()
        self.closed = False
        self._fault = fault
        self._alive = alive
        self._known: dict[Key, Entry | MulticastGroup | CloneSession] | None = None
        self._loads = switch.loads

    def _step(self, what: str, run: Callable[[], object] | None = None) -> None:
        """One exchange with the switch, with everything that can happen to it."""
        assert not self.closed
        assert threading.current_thread().name == f"inc-switch {self.name}", "one thread at a time"
        self._check()
        self._fault(self.name, f"before {what}")
        with self.switch.lock:
            self._check()
            if run is not None:
                run()
        self._fault(self.name, f"after {what}")

    def _check(self) -> None:
        if not self._alive():
            raise AgentError("the manager was killed", unreachable=True)

    def apply(self, wanted: SwitchConfig, *, resync: bool = False) -> Changes:
        target = by_key(wanted)
        if resync or self._known is None or self._loads != self.switch.loads:  # the connection broke meanwhile
            self.read()
        assert self._known is not None
        known, self._known = self._known, None
        inserted = modified = deleted = 0
        # In the order of ``IncAgent``: what leads to an entry goes before it, and comes after it.
        for key, item in sorted(known.items(), key=lambda each: self._rank(each[1])):
            if key not in target:
                self._write(item, "delete")
                deleted += 1
        for key, item in sorted(target.items(), key=lambda each: -self._rank(each[1])):
            if key not in known:
                self._write(item, "insert")
                inserted += 1
            elif content(known[key]) != content(item):
                self._write(item, "modify")
                modified += 1
        if inserted or modified or deleted:
            self._step("read back")
        self._known = target
        return Changes(inserted, modified, deleted)

    def _rank(self, item: Entry | MulticastGroup | CloneSession) -> int:
        """The place of an entry's table among those of the program; behind them groups and sessions."""
        tables = list(self.switch.model._state.tables)
        found = (at for at, name in enumerate(tables) if isinstance(item, Entry) and _short(name) == _short(item.table))
        return next(found, len(tables))

    def _write(self, item: Entry | MulticastGroup | CloneSession, how: str) -> None:
        try:
            self._step(f"{how} {key_of(item)[0]}", lambda: self.switch.write(item, how))
        except ControlError as error:
            raise AgentError(error.reason) from error

    def read(self) -> SwitchConfig:
        found: list[SwitchConfig] = []
        self._step("read", lambda: found.append(self.switch.holds()))
        self._known, self._loads = by_key(found[0]), self.switch.loads
        return found[0]

    def drops(self) -> Mapping[str, int]:
        self._step("drops")
        return {}

    def tallies(self, tallies: Sequence[Tally]) -> Sequence[int]:
        found: list[int] = []
        self._step("tallies", lambda: found.extend(map(self.switch.tally, tallies)))
        return found

    def given_up(self) -> Mapping[int, int]:
        self._step("given up")
        return self.switch.given_up()

    def set_ticks(self, edges: Sequence[PlacedEdge]) -> None:
        self.ticking = edges

    def restart(self) -> None:
        self._known = None
        self._step("restart", self.switch.load)

    def close(self) -> None:
        self.closed = True


class Rig:
    """A fabric, and the managers that it has one after the other."""

    def __init__(
        self,
        topology: TopologySpec | str,
        spec: ProgramSpec | Mapping[str, ProgramSpec],
        store: Path | str = ":memory:",
        *,
        given: bool = True,
        out_of_order: Iterable[str] = (),
        engine: EngineName = "interp",
        **options: object,
    ) -> None:
        self.topology = load_topology(topology) if isinstance(topology, str) else topology
        specs = spec if isinstance(spec, Mapping) else dict.fromkeys(self.topology.switches, spec)
        self.switches = {name: Switch(name, specs[name], engine) for name in self.topology.switches}
        self.fault: Fault = lambda switch, step: None
        self.agents: dict[str, ModelAgent] = {}
        # Tests watch a host for a moment only, which on a busy machine would have gone before they watch it again.
        waits = dict.fromkeys(("patience", "away"), PATIENCE_S)
        self.options: dict[str, object] = {"seed": 1, "store": store, **waits, **options}
        if given:
            self.options["topology"] = self.topology
        self.out_of_order = out_of_order
        """Hosts that register, with NICs that take packets out of order."""
        self.life = object()
        self.manager = self._manager()

    def _manager(self) -> IncManager:
        life = self.life

        def agent(info: SwitchInfo) -> Agent:
            made = ModelAgent(self.switches[info.name], self._fault, lambda: self.life is life)
            self.agents[info.name] = made
            made._step("connect")
            return made

        return IncManager(agent, **self.options)  # type: ignore[arg-type]

    def _fault(self, switch: str, step: str) -> None:
        self.fault(switch, step)

    def info(self, name: str) -> SwitchInfo:
        switch = self.switches[name]
        links = () if "topology" in self.options else self._links(name)
        return SwitchInfo(name, f"unix:/{name}", switch.spec, "", repr(switch.spec).encode(), links=links)

    def _links(self, name: str) -> tuple[LinkPort, ...]:
        links = self.topology.ports[name]
        return tuple(LinkPort(port, link.other(name)) for port, link in enumerate(links))

    def register(self, names: Iterable[str] | None = None) -> IncManager:
        for name in names or self.topology.switches:
            self.manager.register_switch(self.info(name))
        for host in self.out_of_order:
            self.manager.register_host(HostInfo(host, out_of_order=True))
        return self.manager

    def die(self) -> None:
        """kill -9, at this instant: nothing that the manager was doing reaches a switch or its file any more."""
        self.life = object()
        with self.manager._changed:
            self.manager._store.close()

    def kill(self) -> None:
        """kill -9: the manager dies, if it has not, and its threads end."""
        self.die()
        self.manager.close()

    def again(self) -> IncManager:
        """A new manager takes over."""
        self.manager = self._manager()
        return self.manager

    # --- what must hold ---

    def wait(self, what: Callable[[], object]) -> None:
        """Until it holds."""
        until(what, lambda: str(self.manager.status()))

    def settled(self) -> bool:
        """Every switch is reachable, and nothing is under way."""
        manager = self.manager
        with manager._changed:
            busy = any(record.busy for record in manager._ledger.records.values())
            busy |= any(record.busy for record in manager._connections._records.all.values())
            if busy or manager._connections._wake.is_set():
                return False
        threads = manager._threads.values()
        if any(t.busy_since is not None or t._jobs for t in threads):
            return False
        return all(s.reachable for s in manager.status().switches)

    def check(self) -> None:
        """Every switch holds exactly what the groups in the books need, and the store says the same."""
        self.wait(self.settled)
        manager = self.manager
        with manager._changed:
            view: View = manager._ledger.fabric.view
            placed = {r.key: p for r, p in manager._ledger.live()}
            counts = manager._store.counts()
            connections = {name: manager._connections.held_by(name) for name in self.switches}
        for name, switch in self.switches.items():
            mine = {key: p for key, p in placed.items() if name in p.switches}
            wanted = by_key(wanted_config(self.info(name), view, mine, connections[name]))
            held = by_key(switch.holds())
            assert held.keys() == wanted.keys(), f"{name}: {held.keys() ^ wanted.keys()}"
            assert all(content(held[key]) == content(item) for key, item in wanted.items())
        contexts = [context for p in placed.values() for _, context in p.contexts]
        assert counts["placements"] == len(placed)
        assert counts["contexts"] == len(contexts)
        assert counts["groups"] == len(manager.groups())
        assert counts["connections"] == len(manager.connections())

    def check_empty(self) -> None:
        """Nothing but routes and the gateway's address is left, and no row."""
        self.check()
        assert not self.manager.groups()
        for switch in self.switches.values():
            held = switch.holds()
            left = Counter(entry.table.rpartition(".")[2] for entry in held.entries)
            assert left.keys() <= {"routes", "next_hops", "neighbours"}
            assert left["neighbours"] <= 1  # the gateway's address
            assert not held.multicast_groups
            assert not held.clone_sessions
        counts = self.manager._store.counts()
        assert not any(counts[table] for table in ("groups", "placements", "contexts", "slots")), counts


def small(mode: str = "II", **fields: object) -> EpicSpec:
    """A program whose switches are quick to fill."""
    values = {"mode": mode, "lanes": 8, "groups": 8, "window": 1, "message": 1, "ports": 8, "fan_in": 8}
    return EpicSpec.model_validate(values | fields)


def group(name: str, *ranks: str, **fields: object) -> GroupSpec:
    return GroupSpec(name, ranks, **fields)  # type: ignore[arg-type]
