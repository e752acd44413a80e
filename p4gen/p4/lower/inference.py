"""Type variables: what they are bound to, and the unification that infers it (P4_16 specification 8.15)."""

from __future__ import annotations

from p4gen.p4.check.scope import (
    BlockTypeOf,
    DontCareType,
    ExternType,
    HeaderOf,
    PackageType,
    RecordType,
    SequenceType,
    StructOf,
    TypeVar,
    UnionOf,
)
from p4gen.p4.lower import type_refs
from p4gen.p4.types import Fields, Int, Stack, Tuple, Type

Bindings = dict[TypeVar, Type]


def substitute(type_: Type, bindings: Bindings) -> Type:
    """``type_`` with its type variables replaced."""
    if not bindings:
        return type_
    match type_:
        case TypeVar():
            return bindings.get(type_, type_)
        case Stack(element=element, size=size):
            inner = substitute(element, bindings)
            return type_ if inner is element else Stack(inner, size)
        case Tuple(elements=elements):
            return Tuple(tuple(substitute(e, bindings) for e in elements))
        case SequenceType(element=element):
            return SequenceType(substitute(element, bindings))
        case ExternType(entity=entity, args=args) | PackageType(entity=entity, args=args):
            return type_refs.instantiate(entity, tuple(substitute(a, bindings) for a in args))
        case BlockTypeOf(entity=entity, args=args):
            if not args:
                return type_
            return type_refs.instantiate(entity, tuple(substitute(a, bindings) for a in args))
        case (
            StructOf(entity=entity, args=args) | HeaderOf(entity=entity, args=args) | UnionOf(entity=entity, args=args)
        ):
            if entity is None or not args:
                return type_
            return type_refs.instantiate(entity, tuple(substitute(a, bindings) for a in args))
    return type_


def unify(pattern: Type, have: Type, bindings: Bindings) -> bool:
    """Bind the variables of ``pattern`` so that it becomes ``have``; false where the shapes differ.

    What implicit casts can mend (a list for a struct, an ``int`` for a bit string) is not a
    difference: the caller converts afterwards.
    """
    if isinstance(pattern, TypeVar):
        bound = bindings.get(pattern)
        if (
            bound is None
            or isinstance(bound, Int | DontCareType)
            or (isinstance(bound, Tuple | RecordType) and isinstance(have, Fields))
        ):
            bindings[pattern] = have
        return True
    if isinstance(have, DontCareType):
        return True
    match pattern, have:
        case Stack(element=p), Stack(element=h):
            return unify(p, h, bindings)
        case Tuple(elements=ps), Tuple(elements=hs):
            return len(ps) == len(hs) and all(unify(p, h, bindings) for p, h in zip(ps, hs, strict=True))
        case SequenceType(element=p), SequenceType(element=h):
            return unify(p, h, bindings)
        case SequenceType(element=p), Tuple(elements=hs):
            return all(unify(p, h, bindings) for h in hs)
        case ExternType() | PackageType(), ExternType() | PackageType():
            same = pattern.entity is have.entity and len(pattern.args) == len(have.args)
            return same and all(unify(p, h, bindings) for p, h in zip(pattern.args, have.args, strict=True))
        case BlockTypeOf(), BlockTypeOf():
            return unify_blocks(pattern, have, bindings) is None
        case StructOf() | HeaderOf() | UnionOf(), StructOf() | HeaderOf() | UnionOf():
            same = pattern.entity is have.entity and len(pattern.args) == len(have.args)
            return same and all(unify(p, h, bindings) for p, h in zip(pattern.args, have.args, strict=True))
    return True


def mentions(type_: Type, variable: TypeVar) -> bool:
    """Whether ``variable`` is part of ``type_``."""
    return substitute(type_, {variable: _NOTHING}) != type_


_NOTHING = Tuple(())


def fits(wanted: Type, have: Type) -> bool:
    """Whether an instance of extern or package ``have`` can be given where one of type ``wanted`` is needed; ``_`` is
    any type."""
    if not isinstance(wanted, ExternType | PackageType) or not isinstance(have, ExternType | PackageType):
        return False
    return wanted.entity is have.entity and all(map(_alike, wanted.args, have.args))


def _alike(wanted: Type, have: Type) -> bool:
    return wanted == have or isinstance(wanted, DontCareType) or isinstance(have, DontCareType) or fits(wanted, have)


def unify_blocks(pattern: BlockTypeOf, have: BlockTypeOf, bindings: Bindings) -> str | None:
    """Unify two parser or control types; what is wrong where they differ."""
    if pattern.kind != have.kind:
        return f"a {have.kind} cannot be used as a {pattern.kind}"
    shared = min(len(pattern.params), len(have.params))
    if not all(p.optional for p in (*pattern.params[shared:], *have.params[shared:])):
        return f"{have} has {len(have.params)} parameters, {pattern} has {len(pattern.params)}"
    for p, h in zip(pattern.params, have.params, strict=False):
        if p.direction != h.direction:
            return f"parameter '{h.name}' of {have} should be '{p.direction}', not '{h.direction}'"
        if not unify(p.type, h.type, bindings):
            return f"parameter '{h.name}' of {have} has type {h.type}"
        wanted = substitute(p.type, bindings)
        if wanted != h.type and not isinstance(wanted, TypeVar | DontCareType | BlockTypeOf):
            return f"parameter '{h.name}' of {have} has type {h.type}, not {wanted}"
    return None
