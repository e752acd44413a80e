"""Settings that only this architecture has."""

from __future__ import annotations

from collections.abc import Iterable

from p4gen.chips.tna import PIPES
from p4gen.chips.tna.chip import Chip
from p4gen.chips.tna.filters import Detection, Filter
from p4gen.chips.tna.generator import TIMED, Application
from p4gen.chips.tna.memory import TofinoState
from p4gen.chips.tna.replication import Lag, Tree
from p4gen.model.errors import ControlError
from p4gen.model.names import find

LAGS = 255
"""LAGs of multicast groups."""


class Settings:
    """The control plane's functions for these settings, on either engine."""

    state: TofinoState
    chip: Chip

    def set_port_metadata(self, port: int, value: int) -> None:
        """Set the metadata that the parser finds between intrinsic metadata and packet."""
        if not 0 <= value < 1 << 8 * self.chip.port_metadata:
            raise ControlError(f"port {port}: its metadata has {8 * self.chip.port_metadata} bits")
        self.state.port_metadata[port] = value

    def set_exclusion(self, identifier: int, ports: Iterable[int]) -> None:
        """Set the ports of an exclusion id of level 2; without ports, the id excludes nothing."""
        self.state.exclusions[identifier] = frozenset(ports)

    def set_loopback(self, port: int, on: bool = True) -> None:
        """Set whether a port's output arrives at it again."""
        (self.state.loopback.add if on else self.state.loopback.discard)(port)

    def set_parameter(self, name: str, value: int) -> None:
        """Set a ``RegisterParam``, by name, in all pipes."""
        known = {each: each for each in self.state.params}
        self.state.params[find("register parameter", name, known)] = value

    def set_group(self, group: Tree) -> None:
        """Create or replace a multicast group with LAGs or ECMP; one without anything is removed."""
        self._interpreted(f"multicast group {group.group_id}: LAGs and ECMP")
        if not 1 <= group.group_id < 1 << 16:
            raise ControlError(f"multicast group {group.group_id}: the id must be 1 to 65535 (0 means no multicast)")
        if group.replicas or group.branches:
            self.state.groups[group.group_id] = group
        else:
            self.state.groups.pop(group.group_id, None)

    def set_lag(self, number: int, lag: Lag) -> None:
        """Set the members of a LAG of multicast groups."""
        if not 0 <= number < LAGS:
            raise ControlError(f"multicast LAG {number}: LAGs are numbered from 0 to {LAGS - 1}")
        self._interpreted(f"multicast LAG {number}")
        self.state.lags[number] = lag

    def set_global_rid(self, rid: int | None) -> None:
        """Let packets with this replication id exclude ports of all nodes; None: none does."""
        self._interpreted("the global replication id")
        self.state.global_rid = rid

    def set_cpu_port(self, port: int) -> None:
        """Set the port of the copy to the CPU."""
        self._interpreted("another port for the copy to the CPU")
        self.state.cpu_port = port

    def set_filter(self, name: str, index: int | None, config: Filter | Detection) -> None:
        """Configure a cell of a low-pass filter or of early detection; None: all that are not configured, and those of
        entries."""
        self._interpreted(f"{name}: filters")
        found = find("filter", name, self.state.filters)
        instance = next(e for e in self.state.program.externs if self.state.filters.get(e.name) is found)
        if isinstance(config, Filter) != instance.extern.endswith("Lpf"):
            raise ControlError(f"{instance.name} is a {instance.extern}, which has other parameters")
        size = instance.arguments.get("size", 0)
        assert isinstance(size, int)
        if index is not None and not 0 <= index < size:
            raise ControlError(f"{instance.name}: index {index}, it has {size} elements")
        found[index] = config

    def _interpreted(self, what: str) -> None:
        if self.state.engine != "interp":
            raise ControlError(f"{what}: the engine {self.state.engine} does not have it; interp does")

    def registers(self, name: str, pipe: int) -> list[int]:
        """All cells of a register in one pipe, as unsigned numbers, the first field in the highest bits."""
        if not 0 <= pipe < PIPES:
            raise ControlError(f"pipe {pipe}: pipes are numbered from 0 to {PIPES - 1}")
        array = find("register", name, self.state.pipes[pipe].arrays)
        return [array.word.number(cell)[0] for cell in array.cells]

    def start(self, application: Application) -> None:
        """Let the packet generator run an application from now on."""
        if application.trigger not in TIMED and application.trigger != "port down":
            self._interpreted(f"packet generator, applications that are started by {application.trigger}")
        self.state.generator.start(application)

    def stop(self, number: int, pipe: int = 0) -> None:
        """Stop an application of the packet generator."""
        self.state.generator.stop(number, pipe)

    def recirculates(self, port: int) -> bool:
        """Whether what leaves a port arrives at ingress again."""
        return port & 0x7F in self.chip.recirculation or port in self.state.loopback
