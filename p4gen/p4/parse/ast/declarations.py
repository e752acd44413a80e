"""Declarations, statements, and a whole program."""

from __future__ import annotations

from p4gen.p4.node import node
from p4gen.p4.parse.ast.expressions import Argument, CallOf, Expr, Node, TypeRef
from p4gen.p4.types import Annotation

# --- declarations --------------------------------------------------------------------------------


@node
class Decl(Node):
    name: str
    annotations: tuple[Annotation, ...]


@node
class Parameter(Node):
    name: str
    annotations: tuple[Annotation, ...]
    direction: str
    type: TypeRef
    default: Expr | None


@node
class Constant(Decl):
    type: TypeRef
    value: Expr


@node
class Variable(Decl):
    type: TypeRef
    init: Expr | None


@node
class Instance(Decl):
    type: TypeRef
    args: tuple[Argument, ...]
    body: tuple[Decl, ...] | None
    """Abstract methods' implementations, where given."""


@node
class Field(Node):
    name: str
    annotations: tuple[Annotation, ...]
    type: TypeRef


@node
class Composite(Decl):
    """A struct, header or header union (``kind`` is the keyword)."""

    kind: str
    type_params: tuple[str, ...]
    fields: tuple[Field, ...]


@node
class EnumDecl(Decl):
    base: TypeRef | None
    members: tuple[tuple[int, str, Expr | None], ...]


@node
class Typedef(Decl):
    """``typedef`` or, where ``fresh``, ``type``."""

    type: TypeRef | Composite | EnumDecl
    fresh: bool


@node
class ErrorDecl(Decl):
    members: tuple[tuple[int, str], ...]


@node
class MatchKindDecl(Decl):
    members: tuple[tuple[int, str], ...]


@node
class FunctionDecl(Decl):
    """A function, an extern function or an extern's method (``body`` None), or a constructor
    (``returns`` None)."""

    type_params: tuple[str, ...]
    params: tuple[Parameter, ...]
    returns: TypeRef | None
    body: Block | None
    abstract: bool = False


@node
class ActionDecl(Decl):
    params: tuple[Parameter, ...]
    body: Block


@node
class ExternDecl(Decl):
    type_params: tuple[str, ...]
    methods: tuple[FunctionDecl, ...]


@node
class BlockType(Decl):
    """A ``parser`` or ``control`` type, ``kind`` says which; also the head of its declaration."""

    kind: str
    type_params: tuple[str, ...]
    params: tuple[Parameter, ...]


@node
class PackageDecl(Decl):
    type_params: tuple[str, ...]
    params: tuple[Parameter, ...]


@node
class ControlDecl(Decl):
    head: BlockType
    ctor: tuple[Parameter, ...]
    locals: tuple[Decl, ...]
    body: Block


@node
class StateDecl(Decl):
    body: tuple[Stmt | Decl, ...]
    transition: Transition | None


@node
class ParserDecl(Decl):
    head: BlockType
    ctor: tuple[Parameter, ...]
    locals: tuple[Decl, ...]
    states: tuple[StateDecl, ...]


@node
class ValueSetDecl(Decl):
    type: TypeRef
    size: Expr


# --- statements ----------------------------------------------------------------------------------


@node
class Stmt(Node):
    pass


@node
class Block(Stmt):
    body: tuple[Stmt | Decl, ...]
    annotations: tuple[Annotation, ...] = ()


@node
class Empty(Stmt):
    pass


@node
class Assignment(Stmt):
    """``target op= value``; ``op`` is empty for plain assignment."""

    target: Expr
    op: str
    value: Expr


@node
class CallStmt(Stmt):
    call: CallOf


@node
class IfStmt(Stmt):
    condition: Expr
    then: Stmt
    otherwise: Stmt | None


@node
class SwitchCase(Node):
    """``label`` None is ``default``; ``body`` None falls through."""

    label: Expr | None
    body: Block | None


@node
class SwitchStmt(Stmt):
    subject: Expr
    cases: tuple[SwitchCase, ...]


@node
class ForStmt(Stmt):
    init: tuple[Stmt | Decl, ...]
    condition: Expr
    update: tuple[Stmt | Decl, ...]
    body: Stmt


@node
class ForInStmt(Stmt):
    type: TypeRef
    name: str
    values: Expr
    body: Stmt


@node
class ReturnStmt(Stmt):
    value: Expr | None


@node
class Jump(Stmt):
    """``break``, ``continue`` or ``exit``."""

    kind: str


@node
class Case(Node):
    keyset: Expr
    state: str


@node
class Transition(Node):
    """``subjects`` None: to ``state``; otherwise a ``select``."""

    subjects: tuple[Expr, ...] | None
    cases: tuple[Case, ...]
    state: str


@node
class Program(Node):
    decls: tuple[Decl, ...]
