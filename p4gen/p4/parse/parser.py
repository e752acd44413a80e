"""Recursive-descent parser of P4_16 (specification 1.2.5, appendix H).

The grammar is context-sensitive: whether a name is a type decides how what follows it is read.
So the parser keeps the kinds of declared names by scope as it goes.
"""

from __future__ import annotations

from typing_extensions import override

from p4gen.p4.parse import ast
from p4gen.p4.parse.lexer import lex
from p4gen.p4.parse.source import Reported, Reporter, Source
from p4gen.p4.parse.tables import TableParser
from p4gen.p4.types import Annotation


def parse(source: Source, reporter: Reporter) -> ast.Program:
    """Parse a whole program; syntax errors go to ``reporter``, one for each broken declaration."""
    return _Parser(lex(source), source, reporter).program()


class _Parser(TableParser):
    def program(self) -> ast.Program:
        decls: list[ast.Decl] = []
        while self.kind != "end":
            if self.accept(";"):
                continue
            start = self.i
            try:
                decls.append(self.declaration())
            except Reported:
                del self.scopes[1:]
                self.no_angle = 0
                self.recover(start)
        return ast.Program(0, tuple(decls))

    def declaration(self) -> ast.Decl:
        annotations = self.annotations()
        match self.kind:
            case "const":
                return self.constant(annotations)
            case "extern":
                return self.extern(annotations)
            case "action":
                return self.action(annotations)
            case "parser" | "control":
                return self.parser_or_control(annotations)
            case "package":
                return self.package(annotations)
            case "struct" | "header" | "header_union":
                return self.composite(annotations)
            case "enum":
                return self.enum(annotations)
            case "typedef":
                return self.typedef(annotations)
            case "type" if self.kinds[self.i + 1] not in ("(", "=", "[", "."):
                return self.typedef(annotations)
            case "match_kind" if self.kinds[self.i + 1] == "{":
                return self.match_kinds(annotations)
            case "error" if self.kinds[self.i + 1] == "{":
                return self.errors(annotations)
        return self.function_or_instance(annotations)

    def function_or_instance(self, annotations: tuple[Annotation, ...]) -> ast.Decl:
        if self.kind == "id" and not self.at_type_name():
            # A generic function's own parameter may be the type it returns: ``T f<T>(…)``.
            if self.kinds[self.i + 1] != "id" or self.kinds[self.i + 2] != "<":
                self.fail(f"expected a declaration, found {self.found()}")
            returns: ast.TypeRef = ast.NamedType(self.at, self.name())
            return self.function_rest(annotations, returns)
        if self.kind != "void" and not self.at_type():
            self.fail(f"expected a declaration, found {self.found()}")
        type_ = self.type_or_void()
        if self.kind == "(":
            return self.instance_rest(annotations, type_)
        if self.kinds[self.i + 1] in ("=", ";"):
            self.fail("variables cannot be declared outside parsers, controls, actions and functions")
        return self.function_rest(annotations, type_)

    @override
    def function_rest(self, annotations: tuple[Annotation, ...], returns: ast.TypeRef) -> ast.FunctionDecl:
        at = self.at
        name = self.name("the name of a function")
        self.declare(name, False)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.parameters()
        body = self.block()
        self.scopes.pop()
        return ast.FunctionDecl(at, name, annotations, type_params, params, returns, body)

    # --- parameters ---

    def type_params(self) -> tuple[str, ...]:
        found: list[str] = []
        if self.accept("<"):
            while True:
                found.append(self.name("a type parameter"))
                self.declare(found[-1], True)
                if not self.accept(","):
                    break
            self.expect(">")
        return tuple(found)

    def parameters(self) -> tuple[ast.Parameter, ...]:
        self.expect("(")
        found: list[ast.Parameter] = []
        while self.kind != ")":
            annotations = self.annotations()
            direction = "none"
            if self.kind in ("in", "out", "inout"):
                direction = self.kind
                self.i += 1
            type_ = self.type_ref()
            at = self.at
            name = self.name("the name of a parameter")
            while self.kind == "[":
                type_ = self.stack_suffix(type_)
            default = self.expression() if self.accept("=") else None
            found.append(ast.Parameter(at, name, annotations, direction, type_, default))
            if not self.accept(","):
                break
        self.expect(")", " after the parameters")
        for param in found:
            self.declare(param.name, False)
        return tuple(found)

    # --- types ---

    def composite(self, annotations: tuple[Annotation, ...]) -> ast.Composite:
        kind = self.kind
        self.i += 1
        at = self.at
        name = self.name(f"the name of the {kind}")
        self.declare(name, True)
        self.scopes.append({})
        type_params = self.type_params()
        self.expect("{")
        fields: list[ast.Field] = []
        while not self.accept("}"):
            own = self.annotations()
            type_ = self.type_ref()
            where = self.at
            field = self.name("the name of a field")
            while self.kind == "[":
                type_ = self.stack_suffix(type_)
            self.expect(";")
            fields.append(ast.Field(where, field, own, type_))
        self.scopes.pop()
        return ast.Composite(at, name, annotations, kind, type_params, tuple(fields))

    def enum(self, annotations: tuple[Annotation, ...]) -> ast.EnumDecl:
        self.expect("enum")
        base = None
        if self.kind in ("bit", "int") or (self.at_type_name() and self.kinds[self.i + 1] != "{"):
            base = self.type_ref()
        at = self.at
        name = self.name("the name of the enum")
        self.declare(name, True)
        self.expect("{")
        members: list[tuple[int, str, ast.Expr | None]] = []
        while self.kind != "}":
            where = self.at
            member = self.name("the name of a member")
            value = None
            if base is not None:
                self.expect("=", " and the value of the member")
                value = self.expression()
            members.append((where, member, value))
            if not self.accept(","):
                break
        self.expect("}", " after the members")
        if not members:
            self.reporter.error(at, f"enum '{name}' has no members")
        return ast.EnumDecl(at, name, annotations, base, tuple(members))

    def typedef(self, annotations: tuple[Annotation, ...]) -> ast.Typedef:
        fresh = self.kind == "type"
        self.i += 1
        type_: ast.TypeRef | ast.Composite | ast.EnumDecl
        if not fresh and self.kind in ("struct", "header", "header_union", "enum", "@"):
            own = self.annotations()
            type_ = self.enum(own) if self.kind == "enum" else self.composite(own)
        else:
            type_ = self.type_ref()
        at = self.at
        name = self.name("the name of the type")
        while self.kind == "[" and isinstance(type_, ast.TypeRef):
            type_ = self.stack_suffix(type_)
        self.expect(";")
        self.declare(name, True)
        return ast.Typedef(at, name, annotations, type_, fresh)

    def identifiers(self) -> tuple[tuple[int, str], ...]:
        self.expect("{")
        found: list[tuple[int, str]] = []
        while self.kind != "}":
            found.append((self.at, self.name()))
            if not self.accept(","):
                break
        self.expect("}")
        return tuple(found)

    def errors(self, annotations: tuple[Annotation, ...]) -> ast.ErrorDecl:
        at = self.expect("error")
        return ast.ErrorDecl(at, "error", annotations, self.identifiers())

    def match_kinds(self, annotations: tuple[Annotation, ...]) -> ast.MatchKindDecl:
        at = self.expect("match_kind")
        found = self.identifiers()
        for _, name in found:
            self.declare(name, False)
        return ast.MatchKindDecl(at, "match_kind", annotations, found)

    # --- externs and packages ---

    def extern(self, annotations: tuple[Annotation, ...]) -> ast.Decl:
        self.expect("extern")
        after = self.kinds[self.i + 1]
        if self.at_name() and after in ("{", "<", ";") and not (after == "<" and not self.extern_body_ahead()):
            return self.extern_type(annotations)
        return self.method(annotations, None)

    def extern_body_ahead(self) -> bool:
        """Whether ``name<A, …>`` is followed by a body: an extern type, not a function's result."""
        i = self.i + 1
        while self.kinds[i] not in (">", "end", ";", "("):
            i += 1
        return self.kinds[i] == ">" and self.kinds[i + 1] == "{"

    def extern_type(self, annotations: tuple[Annotation, ...]) -> ast.Decl:
        at = self.at
        name = self.name("the name of the extern")
        self.declare(name, True)
        if self.accept(";"):
            return ast.ExternDecl(at, name, annotations, (), ())
        self.scopes.append({})
        type_params = self.type_params()
        self.expect("{")
        methods: list[ast.FunctionDecl] = []
        while not self.accept("}"):
            methods.append(self.method(self.annotations(), name))
        self.scopes.pop()
        return ast.ExternDecl(at, name, annotations, type_params, tuple(methods))

    def method(self, annotations: tuple[Annotation, ...], owner: str | None) -> ast.FunctionDecl:
        """A prototype: an extern's method or constructor, or (without ``owner``) an extern function."""
        abstract = owner is not None and self.accept("abstract")
        returns: ast.TypeRef | None
        if owner is not None and self.at_name() and self.texts[self.i] == owner and self.kinds[self.i + 1] == "(":
            returns = None
        elif self.kind == "id" and not self.at_type_name():
            returns = ast.NamedType(self.at, self.name())
        else:
            returns = self.type_or_void()
        at = self.at
        name = self.name("the name of a function")
        if owner is None:
            self.declare(name, False)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.parameters()
        self.scopes.pop()
        self.expect(";")
        return ast.FunctionDecl(at, name, annotations, type_params, params, returns, None, abstract)

    def package(self, annotations: tuple[Annotation, ...]) -> ast.PackageDecl:
        self.expect("package")
        at = self.at
        name = self.name("the name of the package")
        self.declare(name, True)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.parameters()
        self.scopes.pop()
        self.expect(";")
        return ast.PackageDecl(at, name, annotations, type_params, params)

    # --- parsers and controls ---

    def action(self, annotations: tuple[Annotation, ...]) -> ast.ActionDecl:
        self.expect("action")
        at = self.at
        name = self.name("the name of the action")
        self.scopes.append({})
        params = self.parameters()
        body = self.block()
        self.scopes.pop()
        self.declare(name, False)
        return ast.ActionDecl(at, name, annotations, params, body)

    def parser_or_control(self, annotations: tuple[Annotation, ...]) -> ast.Decl:
        kind = self.kind
        self.i += 1
        at = self.at
        name = self.name(f"the name of the {kind}")
        self.declare(name, True)
        self.scopes.append({})
        type_params = self.type_params()
        params = self.parameters()
        head = ast.BlockType(at, name, annotations, kind, type_params, params)
        if self.accept(";"):
            self.scopes.pop()
            return head
        ctor = self.parameters() if self.kind == "(" else ()
        self.expect("{")
        found = self.parser_body(head, ctor) if kind == "parser" else self.control_body(head, ctor)
        self.scopes.pop()
        return found

    def control_body(self, head: ast.BlockType, ctor: tuple[ast.Parameter, ...]) -> ast.ControlDecl:
        local: list[ast.Decl] = []
        while self.kind != "apply":
            start = self.i
            annotations = self.annotations()
            match self.kind:
                case "const":
                    local.append(self.constant(annotations))
                case "action":
                    local.append(self.action(annotations))
                case "table":
                    local.append(self.table(annotations))
                case _:
                    if not self.at_type():
                        self.fail(f"expected a declaration or 'apply', found {self.found()}")
                    self.i = start
                    local.append(self.variable_or_instance(self.annotations()))
        self.expect("apply")
        body = self.block()
        self.expect("}", f" at the end of control '{head.name}'")
        return ast.ControlDecl(head.at, head.name, head.annotations, head, ctor, tuple(local), body)

    def parser_body(self, head: ast.BlockType, ctor: tuple[ast.Parameter, ...]) -> ast.ParserDecl:
        local: list[ast.Decl] = []
        states: list[ast.StateDecl] = []
        while self.kind != "}":
            annotations = self.annotations()
            if self.kind == "state":
                states.append(self.state(annotations))
                continue
            if states:
                self.fail(f"expected 'state' or '}}', found {self.found()}")
            if self.kind == "const":
                local.append(self.constant(annotations))
            elif self.kind == "value_set":
                local.append(self.value_set(annotations))
            elif self.at_type():
                local.append(self.variable_or_instance(annotations))
            else:
                self.fail(f"expected a declaration or 'state', found {self.found()}")
        if not states:
            self.fail(f"parser '{head.name}' has no states")
        self.expect("}")
        return ast.ParserDecl(head.at, head.name, head.annotations, head, ctor, tuple(local), tuple(states))

    def value_set(self, annotations: tuple[Annotation, ...]) -> ast.ValueSetDecl:
        self.expect("value_set")
        self.expect("<")
        type_ = self.type_ref()
        self.expect(">")
        self.expect("(")
        size = self.expression()
        self.expect(")")
        at = self.at
        name = self.name("the name of the value set")
        self.expect(";")
        self.declare(name, False)
        return ast.ValueSetDecl(at, name, annotations, type_, size)

    def state(self, annotations: tuple[Annotation, ...]) -> ast.StateDecl:
        self.expect("state")
        at = self.at
        name = self.name("the name of the state")
        self.expect("{")
        self.scopes.append({})
        body: list[ast.Stmt | ast.Decl] = []
        while self.kind not in ("transition", "}"):
            if self.kind == "end":
                self.fail("expected '}', found the end of the program")
            body.append(self.statement_or_declaration())
        transition = self.transition() if self.kind == "transition" else None
        self.scopes.pop()
        self.expect("}", f" at the end of state '{name}'")
        return ast.StateDecl(at, name, annotations, tuple(body), transition)

    def transition(self) -> ast.Transition:
        at = self.expect("transition")
        if not self.accept("select"):
            state_at, state = self.at, self.name("the name of a state")
            self.expect(";")
            return ast.Transition(state_at, None, (), state)
        self.expect("(")
        subjects = []
        while self.kind != ")":
            subjects.append(self.expression())
            if not self.accept(","):
                break
        self.expect(")")
        self.expect("{")
        cases: list[ast.Case] = []
        while not self.accept("}"):
            where = self.at
            keyset = self.keyset()
            self.expect(":")
            cases.append(ast.Case(where, keyset, self.name("the name of a state")))
            self.expect(";")
        return ast.Transition(at, tuple(subjects), tuple(cases), "")
