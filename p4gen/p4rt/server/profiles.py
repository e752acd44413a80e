"""Action profile members and groups (section 9.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from p4gen.model.entries import Action
from p4gen.model.profiles import GroupMember
from p4gen.p4rt import codec
from p4gen.p4rt.schema import ProfileInfo
from p4gen.p4rt.server.pipeline import Pipeline
from p4gen.p4rt.status import Code, StatusError, invalid, not_found
from p4gen.protos import p4runtime as pb

Undo = Callable[[], None]
INSERT, MODIFY, DELETE = pb.Update.INSERT, pb.Update.MODIFY, pb.Update.DELETE


def check_ports(pipeline: Pipeline, ports: Iterable[int | None]) -> None:
    """INVALID_ARGUMENT for a watch port that the device does not have (section 9.2.2)."""
    for port in ports:
        if port is not None and pipeline.ports is not None and port not in pipeline.ports:
            raise invalid(f"watch port {port}: the device has no such port")


# --- members ---


def write_member(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Carry out an update of an ActionProfileMember (section 9.2.1)."""
    profile = pipeline.schema.profiles.known(message.action_profile_id)
    members, number = pipeline.members[profile.id], message.member_id
    where = f"action profile {profile.name}: member {number}"
    if number == 0:
        raise invalid(f"action profile {profile.name}: member ids are not 0")
    before = members.get(number)
    if kind == DELETE:
        return _delete_member(pipeline, profile, number, where)
    if kind == INSERT and before is not None:
        raise StatusError(Code.ALREADY_EXISTS, f"{where} already exists")
    if kind == MODIFY and before is None:
        raise not_found(f"{where} does not exist")
    if not message.HasField("action"):
        raise invalid(f"{where}: an action is missing")
    if kind == INSERT and profile.size and len(members) >= profile.size:
        raise StatusError(Code.RESOURCE_EXHAUSTED, f"{where}: the profile has room for {profile.size} members")
    action = _member_action(pipeline, profile, message)
    pipeline.backend.set_member(profile.name, number, action)
    kept = pb.ActionProfileMember(action_profile_id=profile.id, member_id=number)
    kept.action.CopyFrom(codec.encode_table_action(pipeline.schema.profile_table(profile), action).action)
    members[number] = kept
    return lambda: _put_member(pipeline, profile, number, before)


def _member_action(pipeline: Pipeline, profile: ProfileInfo, message: Any) -> Action:
    table = pipeline.schema.profile_table(profile)
    return codec.decode_action(pipeline.schema, table, message.action)


def _put_member(pipeline: Pipeline, profile: ProfileInfo, number: int, message: Any) -> None:
    if message is None:
        pipeline.members[profile.id].pop(number, None)
        pipeline.backend.delete_member(profile.name, number)
    else:
        pipeline.members[profile.id][number] = message
        pipeline.backend.set_member(profile.name, number, _member_action(pipeline, profile, message))


def _delete_member(pipeline: Pipeline, profile: ProfileInfo, number: int, where: str) -> Undo:
    before = pipeline.members[profile.id].get(number)
    if before is None:
        raise not_found(f"{where} does not exist")
    for group in pipeline.groups[profile.id].values():
        if any(m.member_id == number for m in group.members):
            raise StatusError(Code.FAILED_PRECONDITION, f"{where} is part of group {group.group_id}")
    if any(action.action_profile_member_id == number for action in pipeline.references(profile.id)):
        raise StatusError(Code.FAILED_PRECONDITION, f"{where} is used by a table entry")
    _put_member(pipeline, profile, number, None)
    return lambda: _put_member(pipeline, profile, number, before)


# --- groups ---


def write_group(pipeline: Pipeline, kind: int, message: Any) -> Undo:
    """Carry out an update of an ActionProfileGroup (section 9.2.2)."""
    profile = pipeline.schema.profiles.known(message.action_profile_id)
    groups, number = pipeline.groups[profile.id], message.group_id
    where = f"action selector {profile.name}: group {number}"
    if not profile.selector:
        raise invalid(f"action profile {profile.name}: it is not a selector, so it has no groups")
    if number == 0:
        raise invalid(f"action selector {profile.name}: group ids are not 0")
    before = groups.get(number)
    if kind == DELETE:
        return _delete_group(pipeline, profile, number, where)
    if kind == INSERT and before is not None:
        raise StatusError(Code.ALREADY_EXISTS, f"{where} already exists")
    if kind == MODIFY:
        if before is None:
            raise not_found(f"{where} does not exist")
        if before.max_size != message.max_size:
            raise invalid(f"{where}: its max_size is {before.max_size} and cannot be changed")
    _check_sizes(profile, message, where)
    members = _group_members(pipeline, profile, message, where)
    pipeline.backend.set_group(profile.name, number, members)
    kept = pb.ActionProfileGroup()
    kept.CopyFrom(message)
    groups[number] = kept
    return lambda: _put_group(pipeline, profile, number, before)


def _check_sizes(profile: ProfileInfo, message: Any, where: str) -> None:
    largest, wanted = profile.max_group_size, message.max_size
    if wanted < 0 or (largest and not 0 < wanted <= largest):
        raise invalid(f"{where}: max_size is {wanted}; it must be 1 to {largest or 'any number'}")
    limit = wanted or largest or profile.size
    total = sum(m.weight for m in message.members)
    if limit and total > limit:
        raise StatusError(Code.RESOURCE_EXHAUSTED, f"{where}: weights add up to {total}, it has room for {limit}")


def _group_members(pipeline: Pipeline, profile: ProfileInfo, message: Any, where: str) -> list[GroupMember]:
    seen: set[int] = set()
    members = []
    for member in message.members:
        if member.member_id in seen:
            raise invalid(f"{where}: member {member.member_id} is given twice (use its weight)")
        seen.add(member.member_id)
        if member.weight <= 0:
            raise invalid(f"{where}: member {member.member_id}: a weight must be above 0, not {member.weight}")
        if member.member_id not in pipeline.members[profile.id]:
            raise not_found(f"{where}: there is no member {member.member_id}")
        members.append(GroupMember(member.member_id, member.weight, codec.watch_port(member)))
    check_ports(pipeline, [m.watch_port for m in members])
    return members


def _put_group(pipeline: Pipeline, profile: ProfileInfo, number: int, message: Any) -> None:
    if message is None:
        pipeline.groups[profile.id].pop(number, None)
        pipeline.backend.delete_group(profile.name, number)
    else:
        pipeline.groups[profile.id][number] = message
        pipeline.backend.set_group(profile.name, number, _group_members(pipeline, profile, message, ""))


def _delete_group(pipeline: Pipeline, profile: ProfileInfo, number: int, where: str) -> Undo:
    before = pipeline.groups[profile.id].get(number)
    if before is None:
        raise not_found(f"{where} does not exist")
    if any(action.action_profile_group_id == number for action in pipeline.references(profile.id)):
        raise StatusError(Code.FAILED_PRECONDITION, f"{where} is used by a table entry")
    _put_group(pipeline, profile, number, None)
    return lambda: _put_group(pipeline, profile, number, before)


# --- reading ---


def read_members(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """One member, a profile's, or all."""
    for profile in pipeline.schema.profiles.select(message.action_profile_id):
        for found in _chosen(pipeline.members[profile.id], message.member_id):
            yield pb.Entity(action_profile_member=found)


def read_groups(pipeline: Pipeline, message: Any) -> Iterator[Any]:
    """One group, a selector's, or all."""
    for profile in pipeline.schema.profiles.select(message.action_profile_id):
        for found in _chosen(pipeline.groups[profile.id], message.group_id):
            yield pb.Entity(action_profile_group=found)


def _chosen(store: dict[int, Any], number: int) -> list[Any]:
    if number == 0:
        return list(store.values())
    return [store[number]] if number in store else []
