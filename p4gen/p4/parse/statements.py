"""Statements and the declarations that stand among them (P4_16 specification 11, 12)."""

from __future__ import annotations

from abc import abstractmethod

from p4gen.p4.parse import ast
from p4gen.p4.parse.keysets import KeysetParser
from p4gen.p4.types import Annotation

_ASSIGN_OPS = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "|+|=", "|-|=", ">>="})


class StmtParser(KeysetParser):
    """Adds statements, and declarations of constants, variables and instances."""

    def block(self) -> ast.Block:
        """``{ … }``, in a scope of its own."""
        annotations = self.annotations()
        at = self.expect("{")
        self.scopes.append({})
        body: list[ast.Stmt | ast.Decl] = []
        while self.kind != "}":
            if self.kind == "end":
                self.fail("expected '}', found the end of the program")
            body.append(self.statement_or_declaration())
        self.i += 1
        self.scopes.pop()
        return ast.Block(at, tuple(body), annotations)

    def statement_or_declaration(self) -> ast.Stmt | ast.Decl:
        """Parse an element of a block: a statement, or a declaration of a constant, a variable or an instance."""
        start = self.i
        annotations = self.annotations()
        if self.kind == "const":
            return self.constant(annotations)
        if self.starts_declaration():
            return self.variable_or_instance(annotations)
        if self.kind == "for":
            return self.statement()
        self.i = start
        return self.statement()

    def starts_declaration(self) -> bool:
        """Whether a type, and not an expression that begins with a type's name, is next."""
        kind = self.kind
        if kind in {"error", "list"}:
            return self.kinds[self.i + 1] in ("id", "<") or self.kinds[self.i + 1] in ("key", "type", "state")
        if not self.at_type():
            return False
        i = self.i + (2 if kind == "." else 1)
        if self.kinds[i] == "<" and self.kinds[self.i] in (".", "id"):
            i = self.past_angles(i)
        return self.kinds[i] != "."

    def past_angles(self, i: int) -> int:
        """The index of the token after the ``>`` that matches the ``<`` at ``i``."""
        depth = 0
        while self.kinds[i] not in ("end", ";", "{"):
            depth += (self.kinds[i] == "<") - (self.kinds[i] == ">")
            i += 1
            if depth == 0:
                return i
        return i

    def constant(self, annotations: tuple[Annotation, ...]) -> ast.Constant:
        """``const type name = value;``."""
        self.expect("const")
        type_ = self.type_ref()
        at = self.at
        name = self.name()
        while self.kind == "[":
            type_ = self.stack_suffix(type_)
        self.expect("=")
        value = self.expression()
        self.expect(";")
        self.declare(name, False)
        return ast.Constant(at, name, annotations, type_, value)

    def variable_or_instance(self, annotations: tuple[Annotation, ...]) -> ast.Variable | ast.Instance:
        """A declaration that begins with a type."""
        type_ = self.type_ref()
        if self.kind == "(":
            return self.instance_rest(annotations, type_)
        found = self.variable_rest(annotations, type_)
        self.expect(";")
        return found

    def variable_rest(self, annotations: tuple[Annotation, ...], type_: ast.TypeRef) -> ast.Variable:
        """The rest of a variable's declaration, without the semicolon."""
        at = self.at
        name = self.name("the name of a variable")
        while self.kind == "[":
            type_ = self.stack_suffix(type_)
        init = self.expression() if self.accept("=") else None
        self.declare(name, False)
        return ast.Variable(at, name, annotations, type_, init)

    def instance_rest(self, annotations: tuple[Annotation, ...], type_: ast.TypeRef) -> ast.Instance:
        """The rest of an instance's declaration after its type."""
        args = self.arguments()
        at = self.at
        name = self.name("the name of the instance")
        while self.kind == "[":
            type_ = self.stack_suffix(type_)
        self.declare(name, False)
        body: tuple[ast.Decl, ...] | None = None
        if self.accept("="):
            body = self.object_body()
        self.expect(";")
        return ast.Instance(at, name, annotations, type_, args, body)

    def object_body(self) -> tuple[ast.Decl, ...]:
        """The implementations of an instance's abstract methods."""
        self.expect("{")
        self.scopes.append({})
        found: list[ast.Decl] = []
        while not self.accept("}"):
            annotations = self.annotations()
            type_ = self.type_or_void()
            if self.kind == "(":
                found.append(self.instance_rest(annotations, type_))
            else:
                found.append(self.function_rest(annotations, type_))
        self.scopes.pop()
        return tuple(found)

    @abstractmethod
    def function_rest(self, annotations: tuple[Annotation, ...], returns: ast.TypeRef) -> ast.FunctionDecl:
        """The rest of a function after its result: parameters and body."""

    # --- statements ---

    def statement(self) -> ast.Stmt:
        """Parse a statement, up to and including its semicolon or closing brace."""
        kind, at = self.kind, self.at
        match kind:
            case "{" | "@" | "pragma":
                start = self.i
                self.annotations()
                if self.kind == "for":
                    return self.statement()
                self.i = start
                return self.block()
            case ";":
                self.i += 1
                return ast.Empty(at)
            case "if":
                return self.if_statement()
            case "switch":
                return self.switch_statement()
            case "for":
                return self.for_statement()
            case "return":
                self.i += 1
                value = None if self.kind == ";" else self.expression()
                self.expect(";")
                return ast.ReturnStmt(at, value)
            case "break" | "continue" | "exit":
                self.i += 1
                self.expect(";")
                return ast.Jump(at, kind)
        found = self.simple_statement()
        self.expect(";")
        return found

    def simple_statement(self) -> ast.Stmt:
        """An assignment or a call, without the semicolon."""
        start_at = self.at
        target = self.lvalue()
        if isinstance(target, ast.CallOf):
            return ast.CallStmt(start_at, target)
        kind, at = self.kind, self.at
        if kind == ">" and self.kinds[self.i + 1] == ">=" and self.offsets[self.i + 1] == at + 1:
            self.i += 1
            kind = ">>="
        if kind not in _ASSIGN_OPS:
            self.fail(f"expected an assignment or a call, found {self.found()}")
        self.i += 1
        return ast.Assignment(at, target, kind[:-1], self.expression())

    def lvalue(self) -> ast.Expr:
        """What an assignment or a call statement starts with."""
        if self.kind not in ("id", ".", "this", "(", "error") and not self.at_name():
            self.fail(f"expected a statement, found {self.found()}")
        return self.postfix(self.primary())

    def if_statement(self) -> ast.Stmt:
        """``if``, with or without ``else``."""
        at = self.expect("if")
        self.expect("(")
        condition = self.expression()
        self.expect(")")
        then = self.statement()
        otherwise = self.statement() if self.accept("else") else None
        return ast.IfStmt(at, condition, then, otherwise)

    def switch_statement(self) -> ast.Stmt:
        """``switch`` with its cases."""
        at = self.expect("switch")
        self.expect("(")
        subject = self.expression()
        self.expect(")")
        self.expect("{")
        cases: list[ast.SwitchCase] = []
        while not self.accept("}"):
            where = self.at
            label = None if self.accept("default") else self.expression()
            self.expect(":")
            body = self.block() if self.kind in ("{", "@") else None
            cases.append(ast.SwitchCase(where, label, body))
        return ast.SwitchStmt(at, subject, tuple(cases))

    def for_statement(self) -> ast.Stmt:
        """Parse ``for``, either over a range or collection, or with initialisation, condition and update."""
        at = self.expect("for")
        self.expect("(")
        self.scopes.append({})
        start = self.i
        self.annotations()
        if self.starts_declaration():
            type_ = self.type_ref()
            if self.at_name() and self.kinds[self.i + 1] == "in":
                name = self.name()
                self.i += 1
                values = self.expression()
                if self.accept(".."):
                    values = ast.RangeOf(values.at, values, self.expression())
                self.expect(")")
                self.declare(name, False)
                body = self.statement()
                self.scopes.pop()
                return ast.ForInStmt(at, type_, name, values, body)
        self.i = start
        init = self.for_part(";", declarations=True)
        self.expect(";")
        condition = self.expression()
        self.expect(";")
        update = self.for_part(")", declarations=False)
        self.expect(")")
        body = self.statement()
        self.scopes.pop()
        return ast.ForStmt(at, init, condition, update, body)

    def for_part(self, end: str, declarations: bool) -> tuple[ast.Stmt | ast.Decl, ...]:
        """The comma-separated initialisations or updates of ``for``."""
        found: list[ast.Stmt | ast.Decl] = []
        if self.kind == end:
            return ()
        while True:
            annotations = self.annotations()
            if declarations and self.starts_declaration():
                found.append(self.variable_rest(annotations, self.type_ref()))
            else:
                found.append(self.simple_statement())
            if not self.accept(","):
                return tuple(found)
