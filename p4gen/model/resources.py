"""More of the control plane: action profiles, direct resources of entries, link states."""

from __future__ import annotations

from collections.abc import Iterable

from typing_extensions import override

from p4gen.model.control import Control, resolve_action
from p4gen.model.entries import Action, CounterValue, Entry, Indirect
from p4gen.model.errors import ControlError
from p4gen.model.externs import MeterConfig
from p4gen.model.names import find
from p4gen.model.profiles import Bound, Choice, GroupMember, Profile
from p4gen.model.state import profile_of
from p4gen.model.tables import Installed, KeyField, TableState


class Resources(Control):
    """``Control`` with action profiles, direct resources, idle times and link states."""

    # --- action profiles ---

    def set_member(self, profile: str, member: int, action: Action) -> None:
        """Add a member to a profile, or give it another action. Raises ``ControlError``."""
        found = self._profile(profile)
        found.put_member(member, self._choice(found, action))

    def delete_member(self, profile: str, member: int) -> None:
        """Remove a member. The caller ensures that nothing refers to it."""
        self._profile(profile).members.pop(member, None)

    def set_group(self, profile: str, group: int, members: Iterable[GroupMember]) -> None:
        """Add a group to a selector, or give it other members. Raises ``ControlError``."""
        self._profile(profile).put_group(group, members)

    def delete_group(self, profile: str, group: int) -> None:
        """Remove a group. The caller ensures that nothing refers to it."""
        self._profile(profile).groups.pop(group, None)

    def set_link(self, port: int, up: bool) -> None:
        """Record, for action selectors, whether a port has a link."""
        (self._state.ports_down.discard if up else self._state.ports_down.add)(port)

    def _profile(self, name: str) -> Profile:
        return find("action profile", name, self._state.profiles)

    def _choice(self, profile: Profile, action: Action) -> Choice:
        for state in self._state.tables.values():
            own = profile_of(self._state, state.table)
            if own is not None and own.members is profile.members:
                return resolve_action(state, action, default=False)
        raise ControlError(f"action profile {profile.name}: no table uses it, so it has no actions")

    @override
    def _installed(self, state: TableState, fields: tuple[KeyField, ...], entry: Entry) -> Installed:
        profile, indirect = profile_of(self._state, state.table), entry.action
        if profile is None:
            if isinstance(indirect, Indirect):
                raise ControlError(f"table {state.table.name}: it has no action profile, so entries need an action")
            return super()._installed(state, fields, entry)
        if not isinstance(indirect, Indirect):
            raise ControlError(f"table {state.table.name}: entries name a member or group of {profile.name}")
        profile.check(indirect)
        shares = tuple((self._choice(profile, a), weight, watch) for a, weight, watch in indirect.actions)
        if not profile.selector and indirect.member is None:
            raise ControlError(f"table {state.table.name}: {profile.name} is not a selector, so entries name a member")
        nothing = state.table.default_action
        bound = Bound(profile, indirect, shares)
        return Installed(fields, nothing.ref, nothing.args, entry.priority, bound=bound)

    # --- direct resources ---

    def set_entry_counter(self, entry: Entry, value: CounterValue) -> None:
        """Set the direct counter of an entry (whose action is ignored)."""
        self.entry_counter(entry)
        found = self._find_entry(entry)
        found.packets, found.bytes = value.packets, value.bytes

    def entry_meter(self, entry: Entry) -> MeterConfig | None:
        """The configuration of an entry's direct meter; None is the default, always green."""
        found = self._find_entry(entry)
        return found.meter.config if found.meter else None

    def idle_time(self, entry: Entry) -> int:
        """Microseconds since the entry was inserted, or last hit."""
        return max(self._state.clock() - self._find_entry(entry).last_hit, 0)

    def is_const(self, entry: Entry) -> bool:
        """Whether the program declares the entry as constant."""
        return self._table(entry.table).table.const_entries or self._find_entry(entry).const

    def _find_entry(self, entry: Entry) -> Installed:
        return self._existing(self._table(entry.table), entry)
