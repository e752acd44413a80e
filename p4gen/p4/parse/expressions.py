"""Types and expressions of the grammar (P4_16 specification 7.2, 8)."""

from __future__ import annotations

from typing_extensions import override

from p4gen.p4 import fold
from p4gen.p4.parse import ast
from p4gen.p4.parse.annotations import AnnotationParser
from p4gen.p4.parse.base import number_value, string_value
from p4gen.p4.parse.literals import literal_value
from p4gen.p4.parse.source import Quiet, Reported
from p4gen.p4.types import Annotation

# Precedences as p4c's grammar has them; all binary operators associate to the left.
_PRECEDENCE = {
    "||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "++": 9, "+": 9, "-": 9, "|+|": 9, "|-|": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_TYPE_KEYWORDS = frozenset({"bit", "int", "varbit", "bool", "error", "match_kind", "string", "tuple", "list"})
_MEMBER_KINDS = frozenset({"id", "actions", "apply", "entries", "key", "priority", "state", "type", "list"})


class ExprParser(AnnotationParser):
    """Recursive descent with precedence climbing for binary operators."""

    no_angle = 0
    """Positive inside ``bit<…>``, where ``>`` ends the width."""

    # --- types ---

    def at_type(self) -> bool:
        """Whether the next token begins a type: a keyword of a type, or the name of one."""
        kind = self.kind
        if kind == "list":
            return self.kinds[self.i + 1] == "<"
        return kind in _TYPE_KEYWORDS or self.at_type_name()

    def type_ref(self) -> ast.TypeRef:
        """A type; ``void`` is allowed only where ``type_or_void`` is called."""
        found = self.simple_type()
        while self.kind == "[":
            found = self.stack_suffix(found)
        return found

    def stack_suffix(self, element: ast.TypeRef) -> ast.TypeRef:
        """``[size]`` after a type or a name."""
        at = self.expect("[")
        size = self.open_expr()
        self.expect("]")
        return ast.StackType(at, element, size)

    def simple_type(self) -> ast.TypeRef:
        """A type without ``[size]``."""
        at, kind = self.at, self.kind
        if kind in ("bit", "int", "varbit"):
            self.i += 1
            if self.accept("<"):
                width = self.width()
                self.expect(">")
                return ast.SizedType(at, kind, width)
            if kind == "varbit":
                self.fail("varbit needs a maximum width")
            return ast.BaseType(at, "int") if kind == "int" else ast.SizedType(at, "bit", None)
        if kind in ("bool", "error", "match_kind", "string"):
            self.i += 1
            return ast.BaseType(at, kind)
        if kind == "tuple":
            self.i += 1
            self.expect("<")
            return ast.TupleType(at, self.type_args_rest())
        if kind == "list" and self.kinds[self.i + 1] == "<":
            self.i += 2
            element = self.type_arg()
            self.expect(">")
            return ast.ListType(at, element)
        if not self.at_type_name():
            if kind == "id":
                self.fail(f"'{self.texts[self.i]}' is not the name of a type")
            self.fail(f"expected a type, found {self.found()}")
        named = self.named_type()
        if self.kind == "<":
            self.i += 1
            return ast.SpecializedType(at, named, self.type_args_rest())
        return named

    def named_type(self) -> ast.NamedType:
        """Parse the name of a type, without type arguments or sizes."""
        at, rooted = self.at, self.accept(".")
        return ast.NamedType(at, self.name("the name of a type"), rooted)

    def type_or_void(self) -> ast.TypeRef:
        """Parse the type of a function's result, which may be ``void``."""
        at = self.at
        if self.accept("void"):
            return ast.BaseType(at, "void")
        return self.type_ref()

    def width(self) -> ast.Expr:
        """The expression between ``<`` and ``>`` of a sized type."""
        self.no_angle += 1
        try:
            return self.expression()
        finally:
            self.no_angle -= 1

    def type_args_rest(self) -> tuple[ast.TypeRef, ...]:
        """Type arguments after ``<``, and the ``>``."""
        args: list[ast.TypeRef] = []
        if self.accept(">"):
            return ()
        while True:
            args.append(self.type_arg())
            if not self.accept(","):
                break
        self.expect(">", " after the type arguments")
        return tuple(args)

    def type_arg(self) -> ast.TypeRef:
        """A type argument: also ``_``, ``void``, or a name declared only later."""
        at = self.at
        if self.accept("_"):
            return ast.DontCareType(at)
        if self.accept("void"):
            return ast.BaseType(at, "void")
        if self.kind == "id" and not self.at_type_name():
            # A type parameter that the declaration itself introduces further on.
            return ast.NamedType(at, self.name())
        return self.type_ref()

    # --- expressions ---

    def open_expr(self) -> ast.Expr:
        """An expression inside brackets of its own, where ``>`` compares again."""
        saved, self.no_angle = self.no_angle, 0
        try:
            return self.expression()
        finally:
            self.no_angle = saved

    def expression(self, minimum: int = 1) -> ast.Expr:
        """An expression whose binary operators bind at least as tightly as ``minimum``."""
        left = self.unary()
        while True:
            op, tokens = self.binary_operator()
            precedence = _PRECEDENCE.get(op, 0)
            if precedence < minimum or precedence == 0:
                break
            at = self.at
            self.i += tokens
            left = ast.BinaryOp(at, op, left, self.expression(precedence + 1))
        if minimum == 1 and self.kind == "?":
            at = self.at
            self.i += 1
            then = self.open_expr() if not self.no_angle else self.expression()
            self.expect(":", " in a conditional expression")
            return ast.Conditional(at, left, then, self.expression())
        return left

    def binary_operator(self) -> tuple[str, int]:
        """The operator here and its number of tokens: ``>>`` is two adjacent ``>``."""
        kind = self.kinds[self.i]
        if kind != ">":
            return kind, 1
        if self.no_angle:
            return "", 0
        if self.kinds[self.i + 1] == ">" and self.offsets[self.i + 1] == self.offsets[self.i] + 1:
            return ">>", 2
        return ">", 1

    def unary(self) -> ast.Expr:
        """A prefix operator and its operand, a cast, or a postfix expression."""
        kind = self.kinds[self.i]
        if kind in ("!", "~", "-", "+"):
            at = self.at
            self.i += 1
            return ast.UnaryOp(at, kind, self.unary())
        if kind == "(":
            cast = self.cast()
            if cast is not None:
                return cast
        return self.postfix(self.primary())

    def cast(self) -> ast.Expr | None:
        """``(type) operand``; None where the parenthesis holds an expression."""
        at, start = self.at, self.i
        self.i += 1
        if not self.at_type():
            self.i = start
            return None
        type_ = self.type_ref()
        if self.kind != ")":
            # ``(E.member …)`` or ``(Type(…) …)``: an expression that starts with a type's name.
            self.i = start
            return None
        self.i += 1
        return ast.CastTo(at, type_, self.unary())

    def primary(self) -> ast.Expr:
        """An expression without operators."""
        kind, at = self.kinds[self.i], self.at
        match kind:
            case "num":
                self.i += 1
                try:
                    value, width, signed, base = number_value(self.texts[self.i - 1])
                except ValueError:
                    self.reporter.fail(at, f"'{self.texts[self.i - 1][:40]}' is not a number")
                if value.bit_length() > fold.MAX_BITS or (width or 0) > fold.MAX_BITS:
                    self.reporter.fail(at, f"a number of more than {fold.MAX_BITS} bits")
                return ast.IntLit(at, value, width, signed, base)
            case "str":
                self.i += 1
                return ast.StrLit(at, string_value(self.texts[self.i - 1]))
            case "true" | "false":
                self.i += 1
                return ast.BoolLit(at, kind == "true")
            case "(":
                self.i += 1
                inner = self.open_expr()
                self.expect(")")
                return inner
            case "{":
                return self.braces()
            case "{#}":
                self.i += 1
                return ast.InvalidOf(at)
            case "...":
                self.i += 1
                return ast.Dots(at)
            case "this":
                self.i += 1
                return ast.Name(at, "this")
            case "error":
                self.i += 1
                if self.kind != ".":
                    self.fail(f"expected '.' and the name of an error, found {self.found()}")
                return ast.TypeName(at, ast.BaseType(at, "error"))
        if self.at_type_name():
            return ast.TypeName(at, self.type_in_expression())
        if kind == "." or kind in _MEMBER_KINDS:
            rooted = self.accept(".")
            return ast.Name(at, self.name(), rooted)
        self.fail(f"expected an expression, found {self.found()}")

    def type_in_expression(self) -> ast.TypeRef:
        """A type where an expression starts."""
        at, named = self.at, self.named_type()
        if self.kind == "<":
            args = self.try_type_args("(", ".")
            if args is not None:
                return ast.SpecializedType(at, named, args)
        return named

    def try_type_args(self, *after: str) -> tuple[ast.TypeRef, ...] | None:
        """``<types>`` if one of ``after`` follows; None, and no step, where it does not."""
        start = self.i
        errors = self.reporter.failed
        self.i += 1
        first = self.kind
        if not (self.at_type() or first in ("_", "void", "id")):
            self.i = start
            return None
        quiet, self.reporter = self.reporter, Quiet(self.source)
        try:
            args = self.type_args_rest()
            followed = self.kind in after
        except Reported:
            args, followed = (), False
        finally:
            self.reporter = quiet
            self.reporter.failed = errors
        if not followed:
            self.i = start
            return None
        return args

    def braces(self) -> ast.Expr:
        """``{…}``: a list, or a structure-valued expression (spec 8.12, 8.13)."""
        at = self.expect("{")
        saved, self.no_angle = self.no_angle, 0
        try:
            if self.at_name() and self.kinds[self.i + 1] == "=":
                return self.named_fields(at)
            items: list[ast.Expr] = []
            while self.kind != "}":
                items.append(self.expression())
                if not self.accept(","):
                    break
            self.expect("}", " after the list")
            return ast.ListOf(at, tuple(items))
        finally:
            self.no_angle = saved

    def named_fields(self, at: int) -> ast.Expr:
        """The rest of ``{name = value, …}``."""
        items: list[ast.Argument] = []
        dots = False
        while self.kind != "}":
            if self.accept("..."):
                dots = True
                self.accept(",")
                break
            where, name = self.at, self.name("the name of a field")
            self.expect("=")
            items.append(ast.Argument(where, name, self.expression()))
            if not self.accept(","):
                break
        self.expect("}", " after the fields")
        return ast.StructOf(at, tuple(items), dots)

    def postfix(self, base: ast.Expr) -> ast.Expr:
        """``base`` with the members, indices and calls that follow it."""
        while True:
            kind, at = self.kinds[self.i], self.at
            if kind == ".":
                self.i += 1
                where = self.at
                base = ast.Member(where, base, self.name("a member's name"))
            elif kind == "[":
                base = self.brackets(base)
            elif kind == "(":
                base = ast.CallOf(base.at if isinstance(base, ast.TypeName) else at, base, (), self.arguments())
            elif kind == "<" and isinstance(base, ast.Name | ast.Member):
                args = self.try_type_args("(")
                if args is None:
                    return base
                base = ast.CallOf(at, base, args, self.arguments())
            else:
                return base

    def brackets(self, base: ast.Expr) -> ast.Expr:
        """An index, a slice or a slice by width."""
        at = self.expect("[")
        first = self.open_expr()
        if self.accept(":"):
            base = ast.SliceOf(at, base, first, self.open_expr())
        elif self.accept("+:"):
            base = ast.PlusSlice(at, base, first, self.open_expr())
        else:
            base = ast.IndexOf(at, base, first)
        self.expect("]")
        return base

    def arguments(self) -> tuple[ast.Argument, ...]:
        """A call's arguments with their parentheses."""
        self.expect("(")
        saved, self.no_angle = self.no_angle, 0
        args: list[ast.Argument] = []
        while self.kind != ")":
            at, name = self.at, None
            if self.at_name() and self.kinds[self.i + 1] == "=":
                name = self.name()
                self.i += 1
            if self.kind == "_":
                value: ast.Expr = ast.DontCare(self.at)
                self.i += 1
            else:
                value = self.expression()
            args.append(ast.Argument(at, name, value))
            if not self.accept(","):
                break
        self.expect(")", " after the arguments")
        self.no_angle = saved
        return tuple(args)

    @override
    def structured(self, name: str) -> Annotation:
        """Parse the body ``[…]`` of a structured annotation. Its expressions are evaluated at once."""
        self.expect("[")
        start = self.i
        pairs: list[tuple[str, int | str | bool]] = []
        values: list[int | str | bool] = []
        while self.kind != "]":
            key = None
            if self.at_name() and self.kinds[self.i + 1] == "=":
                key = self.name()
                self.i += 1
            value = literal_value(self.open_expr(), self.reporter)
            if key is None:
                values.append(value)
            elif any(key == k for k, _ in pairs):
                self.fail(f"a second value for '{key}' in @{name}")
            else:
                pairs.append((key, value))
            if not self.accept(","):
                break
        body = " ".join(self.texts[start : self.i])
        self.expect("]", f" after the body of @{name}")
        return Annotation(name, tuple(values), body, tuple(pairs), True)
