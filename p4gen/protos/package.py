"""Classes of Protobuf's messages, made at run time from descriptors.

Code that protoc generates fits a few releases of protobuf, and registers its files for the whole process, where another
package may have P4Runtime in another release. Descriptors fit every release of protobuf, and these are registered for
p4gen only. Bytes on the wire and the names of types in ``google.protobuf.Any`` are the same as with generated code.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.internal import enum_type_wrapper

DEFINITIONS = Path(__file__).parent
"""The folder from which the .proto files are named, but the manager's."""


class Package:
    """What one package of Protobuf defines, as attributes: classes of messages, and enumerations."""

    def __init__(self, pool: Any, name: str) -> None:
        self._pool, self._name = pool, name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        full = f"{self._name}.{name}"
        try:
            found = _class(self._pool, self._pool.FindMessageTypeByName(full))
        except KeyError:
            try:
                found = enum_type_wrapper.EnumTypeWrapper(self._pool.FindEnumTypeByName(full))
            except KeyError:
                raise AttributeError(f"{self._name} has no message and no enumeration {name}") from None
        setattr(self, name, found)
        return found


def package(name: str) -> Package:
    """A package of p4gen's own descriptors."""
    return Package(_our_pool(), name)


def pool_of(descriptors: bytes) -> Any:
    """A pool of the files of a serialised ``FileDescriptorSet``, which has everything that they import."""
    pool: Any = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    return pool


@functools.cache
def _our_pool() -> Any:
    return pool_of((DEFINITIONS / "descriptors.binpb").read_bytes())


def _class(pool: Any, descriptor: Any) -> Any:
    factory: Any = message_factory
    if hasattr(factory, "GetMessageClass"):
        return factory.GetMessageClass(descriptor)
    return factory.MessageFactory(pool).GetPrototype(descriptor)  # protobuf below 4.22
