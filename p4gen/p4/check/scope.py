"""Names and what they mean: scopes, the entities declared in them, and the checker's own types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from p4gen.arch import Architecture, architectures
from p4gen.errors import Pos
from p4gen.p4 import ir
from p4gen.p4.node import node
from p4gen.p4.parse import ast
from p4gen.p4.parse.source import Reporter
from p4gen.p4.types import Annotation, Header, HeaderUnion, Struct, Type

# --- types that exist only while checking --------------------------------------------------------


@node
class TypeVar(Type):
    """A type parameter: to be inferred at a call, opaque within its own declaration."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class DontCareType(Type):
    """``_`` as a type argument, or of an argument left out."""

    def __str__(self) -> str:
        return "_"


@dataclass(frozen=True)
class SequenceType(Type):
    """``list<element>``: a sequence of any length, for constructor arguments and loops."""

    element: Type

    def __str__(self) -> str:
        return f"list<{self.element}>"


@dataclass(frozen=True)
class RecordType(Type):
    """The type of ``{a = …, b = …}`` before it is converted to a struct; ``dots`` if the remaining fields take
    defaults."""

    names: tuple[str, ...]
    elements: tuple[Type, ...]
    dots: bool = False

    def __str__(self) -> str:
        return "{" + ", ".join(f"{n} = {t}" for n, t in zip(self.names, self.elements, strict=True)) + "}"


@dataclass(frozen=True)
class DefaultType(Type):
    """The type of ``...``, the default value of the type that is required."""

    def __str__(self) -> str:
        return "..."


@dataclass(frozen=True)
class InvalidType(Type):
    """The type of ``{#}`` before it is converted to a header."""

    def __str__(self) -> str:
        return "{#}"


@node
class ExternType(Type):
    """An extern with its type arguments."""

    name: str
    entity: TypeEntity
    args: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.args))}>" if self.args else self.name


@node
class StructOf(Struct):
    """An instantiation of a generic struct."""

    entity: TypeEntity | None = None
    args: tuple[Type, ...] = ()


@node
class HeaderOf(Header):
    """An instantiation of a generic header."""

    entity: TypeEntity | None = None
    args: tuple[Type, ...] = ()


@node
class UnionOf(HeaderUnion):
    """An instantiation of a generic header union."""

    entity: TypeEntity | None = None
    args: tuple[Type, ...] = ()


@node
class ParamSig:
    """A parameter as callers see it."""

    name: str
    direction: ir.Direction
    type: Type
    default: ast.Expr | None
    optional: bool
    at: int
    annotations: tuple[Annotation, ...] = ()


@node
class Signature:
    """The signature of a function, action, method or block."""

    name: str
    type_vars: tuple[TypeVar, ...]
    params: tuple[ParamSig, ...]
    returns: Type
    context: Context
    """The context in which its default arguments are evaluated."""
    at: int


@node
class BlockTypeOf(Type):
    """The type of parsers or controls with these run-time parameters."""

    kind: str
    name: str
    params: tuple[ParamSig, ...]
    entity: TypeEntity
    args: tuple[Type, ...] = ()

    def __str__(self) -> str:
        args = f"<{', '.join(map(str, self.args))}>" if self.args else ""
        return f"{self.kind} {self.name}{args}"


@node
class PackageType(Type):
    """A package with its type arguments."""

    name: str
    entity: TypeEntity
    args: tuple[Type, ...]

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(map(str, self.args))}>" if self.args else self.name


# --- entities ------------------------------------------------------------------------------------


@dataclass(eq=False)
class Entity:
    """The meaning of a name. ``at`` is the offset of its declaration."""

    at: int


@dataclass(eq=False)
class Poison(Entity):
    """An entity whose declaration has an error; uses of it report no further errors."""


@dataclass(eq=False)
class VariableEntity(Entity):
    """A variable or a parameter."""

    variable: ir.Variable
    parameter: bool = False


@dataclass(eq=False)
class ConstantEntity(Entity):
    """A named constant; its value is known when the program is compiled."""

    expr: ir.Expr


@dataclass(eq=False)
class TypeEntity(Entity):
    """A declared type, generic or not; ``made`` holds its instantiations by type arguments."""

    decl: ast.Decl
    context: Context
    made: dict[tuple[Type, ...], Type] = field(default_factory=dict)


@dataclass(eq=False)
class BoundType(Entity):
    """A type parameter bound to a type (or to its own ``TypeVar``)."""

    type: Type


@dataclass(eq=False)
class FunctionEntity(Entity):
    """A function or extern function with all its overloads."""

    overloads: list[ast.FunctionDecl]
    context: Context
    made: dict[tuple[ast.FunctionDecl, tuple[Type, ...]], ir.Function] = field(default_factory=dict)


@dataclass(eq=False)
class ActionEntity(Entity):
    """An action with its lowered body and the signature that its callers see."""

    function: ir.Function
    signature: Signature


@dataclass(eq=False)
class TableEntity(Entity):
    """A table, lowered, and the type of its ``action_run``."""

    table: ir.Table
    result: Type


@dataclass(eq=False)
class InstanceEntity(Entity):
    """An instance of an extern, parser, control or package."""

    type: Type
    value: ir.ExternInstance | ir.Parser | ir.Control | PackageInstance | PendingBlock


@node
class PackageInstance:
    """An instance of a package with its arguments."""

    name: str
    type: PackageType
    blocks: dict[str, InstanceEntity | ir.Expr | None]


@dataclass(eq=False)
class PendingBlock:
    """A block with run-time parameters of extern types. It is lowered where it is first applied, because the externs
    are known there."""

    type: BlockTypeOf
    name: str
    bound: list[tuple[ParamSig, InstanceEntity | ir.Expr]]
    places: list[int]
    """Positions in the unit's lists at which to insert the objects it declares."""
    externs: list[object] = field(default_factory=list)
    made: InstanceEntity | None = None


@dataclass(eq=False)
class ValueSetEntity(Entity):
    """A value set of a parser, which the control plane fills."""

    value_set: ir.ValueSet


class Scope:
    """Names declared in one place, and the scope around it."""

    __slots__ = ("names", "parent")

    def __init__(self, parent: Scope | None = None) -> None:
        self.names: dict[str, Entity] = {}
        self.parent = parent

    def find(self, name: str, at: int) -> Entity | None:
        """The entity that ``name`` means at offset ``at``: declared before it, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            entity = scope.names.get(name)
            if entity is not None and entity.at <= at:
                return entity
            scope = scope.parent
        return None


# --- state of a compilation ----------------------------------------------------------------------


@dataclass(frozen=True)
class Handlers:
    """How each class of syntax node is lowered.

    Expressions hold types, types hold expressions, and a call may lower a whole body: the modules of ``lower`` reach
    each other through these tables, which its topmost module fills, and import only what is below them.
    """

    expressions: Mapping[type[ast.Expr], Callable[[Context, Any], ir.Expr]]
    statements: Mapping[type[ast.Node], Callable[[Context, Any], ir.Stmt | None]]
    locals: Mapping[type[ast.Decl], Callable[[Context, Any], None]]
    """Declarations in a parser or control."""


class Unit:
    """The state of one compilation."""

    def __init__(self, reporter: Reporter, handlers: Handlers) -> None:
        self.reporter = reporter
        self.handlers = handlers
        self.globals = Scope()
        self.errors: dict[str, int] = {}
        self.match_kinds: dict[str, int] = {}
        self.frozen: dict[ir.Variable, str] = {}
        self.tables: list[ir.Table] = []
        self.actions: list[ir.Function] = []
        self.externs: list[ir.ExternInstance] = []
        self.value_sets: list[ir.ValueSet] = []
        self.headers: list[Type] = []
        self.elaborated: set[int] = set()
        self.pending: list[PendingBlock] = []
        self.signatures: dict[tuple[ast.Decl, tuple[Type, ...]], Signature] = {}
        self.active: set[int] = set()
        self.pipes = 1
        """How many arguments ``main`` has: names of several pipes precede the names of what they hold."""

    @property
    def lists(self) -> tuple[list[Any], ...]:
        """The objects of the program, by kind, in the order of their declaration."""
        return self.tables, self.actions, self.externs, self.value_sets

    @property
    def targets(self) -> tuple[Architecture, ...]:
        """The architectures whose packages the program declares, with the blocks that they have there."""
        return tuple(
            arch
            for arch in architectures().values()
            for decl in map(self._package, (arch.main, *arch.mains))
            if decl is not None and arch.has_parameters([p.name for p in decl.params])
        )

    def _package(self, name: str) -> ast.PackageDecl | None:
        entity = self.globals.names.get(name)
        decl = entity.decl if isinstance(entity, TypeEntity) else None
        return decl if isinstance(decl, ast.PackageDecl) else None

    @property
    def has_target(self) -> bool:
        """Whether the program declares the package of an architecture, so that restrictions of targets apply."""
        return bool(self.targets)


class Builder:
    """The state of elaborating one parser or control instance."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.locals: list[ir.Stmt] = []
        self.tables: list[ir.Table] = []


Place = Literal["global", "parser", "state", "control", "apply", "action", "function", "table"]


@dataclass(frozen=True)
class Context:
    """The position in the program at which a construct is lowered."""

    unit: Unit
    scope: Scope
    place: Place
    prefix: str = ""
    returns: Type | None = None
    in_loop: bool = False
    builder: Builder | None = None

    @property
    def owner(self) -> str:
        """Name of the block instance whose declarations these are; empty at the top level."""
        return self.builder.name if self.builder is not None else ""

    def inner(self) -> Context:
        """This context with a new scope inside its scope."""
        return replace(self, scope=Scope(self.scope))

    def with_scope(self, scope: Scope) -> Context:
        """This context with another scope."""
        return replace(self, scope=scope)

    def pos(self, at: int) -> Pos:
        """The file, line and column of offset ``at`` in the preprocessed text."""
        return self.unit.reporter.source.pos(at)

    def declare(self, name: str, entity: Entity) -> None:
        """Bind ``name`` here; a second declaration in the same scope is an error (spec 6.9)."""
        previous = self.scope.names.get(name)
        if previous is not None and not isinstance(previous, Poison):
            self.unit.reporter.error(
                entity.at, f"'{name}' is already declared in this scope", (previous.at, f"'{name}' was declared here")
            )
            return
        self.scope.names[name] = entity

    def poison(self, name: str, at: int) -> None:
        """Declare ``name`` after an error in its declaration, so that uses of it report no further errors."""
        self.scope.names.setdefault(name, Poison(at))

    def full_name(self, name: str, annotations: tuple[Annotation, ...]) -> str:
        """The control-plane name of something declared here (spec 18.3.2): ``@name`` replaces the
        last part, and with a leading dot the whole."""
        for annotation in annotations:
            if annotation.name == "name" and annotation.args:
                given = str(annotation.args[0])
                if given.startswith("."):
                    return given[1:]
                name = given
        return f"{self.prefix}.{name}" if self.prefix else name
