"""Conversion of the dataclasses of ``p4gen.manager.api`` to and from the messages of ``incmanager.proto``.

Messages and their fields have the same names as the dataclasses; ``_outward`` and ``_inward`` handle the differences.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from functools import lru_cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ValidationError

from p4gen.errors import InputError
from p4gen.families import parse_spec
from p4gen.host.collectives.plan import PsnSync
from p4gen.host.transport.verbs import Recovery
from p4gen.manager.api import (
    Code,
    ConnectionState,
    GroupSpec,
    GroupState,
    GroupStatus,
    GroupTree,
    ManagerError,
    NicInfo,
    RankChannel,
    RingEnd,
    Schedule,
)
from p4gen.protos import incmanager as pb
from p4gen.records import from_plain, problem
from p4gen.rocev2.headers import is_ipv6
from p4gen.rocev2.layouts import IPV4_BITS, IPV6_BITS
from p4gen.vocabulary import ProgramSpec
from p4gen.vocabulary.message import Collective

T = TypeVar("T")
Message = Any
"""A message of ``incmanager.proto``. Protobuf's own types are of no use to type checkers."""

_ENUMS: Final[Mapping[str, type[Enum]]] = {
    kind.__name__: kind for kind in (Collective, PsnSync, GroupState, ConnectionState, Recovery)
}


def to_message(value: Any) -> Message:
    """The message for an object of the API. Raises ``ManagerError`` when it cannot be expressed as one."""
    return getattr(pb, type(value).__name__)(**_outward(value))


def from_message(kind: type[T], message: Message) -> T:
    """The object of the API that a message describes.

    Raises ``ManagerError`` with ``Code.INVALID`` for invalid messages, for instance of another client.
    """
    try:
        return from_plain(kind, _inward(message))
    except ValueError as error:
        raise ManagerError(Code.INVALID, f"{kind.__name__}: {error}") from None


_ADDRESSES: Final = frozenset({"ip", "second_ip", "peer_ip"})
"""Fields with IP addresses, which messages have as bytes."""


# --- objects to messages ---


def _outward(value: Any) -> dict[str, Any]:
    """The fields of the message for an object of the API."""
    found = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    match value:
        case GroupSpec() if not value.collectives:
            # A message without collectives means all of them.
            raise ManagerError(Code.INVALID, f"group {value.name} has no collectives")
        case GroupStatus() | GroupTree():
            found["tree"] = [{"name": name, "parent": parent} for name, parent in value.tree.items()]
        case NicInfo():
            found["queue_pairs"] = [{"first": first, "end": end} for first, end in value.queue_pairs]
        case Schedule():
            found["windows"] = [{"begin": begin, "end": end} for begin, end in value.windows]
        case RankChannel():
            (collective, root), peer = found.pop("key"), found.pop("peer")
            found |= {"collective": collective, "root": root} | _peer_fields(peer)
        case RingEnd():
            found |= _peer_fields(found.pop("peer"))
    for name in _ADDRESSES & found.keys():
        if not isinstance(found[name], bytes):  # that of a peer is one already
            found[name] = _ip_bytes(found[name])
    if isinstance(found.get("spec"), str):
        found["spec_json"] = found.pop("spec")
    return found


def _plain(value: Any) -> Any:
    match value:
        case Enum():
            return value.name
        case None | str() | bytes() | int() | float():
            return value
        case BaseModel():
            return _spec_json(value)
        case Mapping():
            return dict(value)
        case frozenset():
            return sorted((_plain(item) for item in value), key=pb.Collective.Value)
        case tuple():
            return [_plain(item) for item in value]
    return _outward(value)


def _ip_bytes(ip: int) -> bytes:
    """An IP address in network order; nothing for 0, which is none."""
    return ip.to_bytes((IPV6_BITS if is_ipv6(ip) else IPV4_BITS) // 8) if ip else b""


@lru_cache(maxsize=256)
def _spec_json(spec: BaseModel) -> str:
    return spec.model_dump_json()


def _peer_fields(peer: dict[str, Any]) -> dict[str, Any]:
    return {name if name == "udp_src_port" else f"peer_{name}": number for name, number in peer.items()}


# --- messages to objects ---


def _inward(message: Message) -> dict[str, Any]:
    """An object's fields, without those that the message does not set."""
    found = {field.name: value for field in message.DESCRIPTOR.fields if (value := _value(message, field)) is not None}
    match message.DESCRIPTOR.name:
        case "GroupSpec" if not found["collectives"]:
            del found["collectives"]  # all of them
        case "GroupStatus" | "GroupTree":
            found["tree"] = {node["name"]: node.get("parent") for node in found["tree"]}
        case "NicInfo":
            found["queue_pairs"] = [(span["first"], span["end"]) for span in found["queue_pairs"]]
        case "Schedule":
            found["windows"] = [(window["begin"], window["end"]) for window in found["windows"]]
        case "RankChannel":
            found["key"] = found.get("collective"), found["root"]
            found["peer"] = _peer_of(found)
        case "RingEnd":
            found["peer"] = _peer_of(found)
    if "spec_json" in found:
        found["spec"] = _spec(found["spec_json"])
    return found


def _peer_of(found: dict[str, Any]) -> dict[str, int]:
    return {name: found[f"peer_{name}"] for name in ("mac", "ip", "qp")} | {"udp_src_port": found["udp_src_port"]}


def _value(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [_item(field, item) for item in value]
    if field.containing_oneof is not None or field.message_type is not None:  # optional fields
        return _item(field, value) if message.HasField(field.name) else None
    if field.enum_type is not None and value == 0:
        return None
    return _item(field, value)


def _item(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return _inward(value)
    if field.name in _ADDRESSES:
        if len(value) not in (0, IPV4_BITS // 8, IPV6_BITS // 8):
            raise ManagerError(Code.INVALID, f"{field.name}: {len(value)} bytes are no IP address")
        return int.from_bytes(value)
    if field.enum_type is None:
        return value
    kind = field.enum_type
    name = kind.values_by_number[value].name if value in kind.values_by_number else ""
    if name not in _ENUMS[kind.name].__members__:
        raise ManagerError(Code.INVALID, f"{kind.name}: {value} is not a known value")
    return _ENUMS[kind.name][name]


@lru_cache(maxsize=256)
def _spec(text: str) -> ProgramSpec:
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ManagerError(Code.INVALID, "the program's spec is wrong: it is no JSON object")
        return parse_spec(fields)
    except ValidationError as error:
        cause = problem(error)
    except json.JSONDecodeError as error:
        cause = f"Invalid JSON: {error}"
    except InputError as error:
        cause = error.reason
    raise ManagerError(Code.INVALID, f"the program's spec is wrong: {cause}")
