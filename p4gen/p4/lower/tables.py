"""Tables (P4_16 specification 14.2)."""

from __future__ import annotations

from dataclasses import replace

from p4gen.p4 import ir
from p4gen.p4.check.scope import ActionEntity, Context, InstanceEntity, Signature, TableEntity, TypeVar
from p4gen.p4.lower import arguments, entries, evaluate, extern_instances, table_actions, type_refs
from p4gen.p4.parse import ast, ast_table
from p4gen.p4.parse.source import Reported
from p4gen.p4.types import BOOL, Annotation, Bits, Bool, Enum, Error, Fields, SerEnum, Varbits, strip

# Extern types that may be a table's implementation, and those attached as direct resources.
IMPLEMENTATIONS = frozenset({"action_profile", "action_selector", "ActionProfile", "ActionSelector", "Alpm", "Atcam"})
_DIRECT = {
    "counters": ("direct_counter", "DirectCounter"),
    "meters": ("direct_meter", "DirectMeter"),
}


def lower(cx: Context, decl: ast_table.TableDecl) -> TableEntity:
    """A table of a control instance, with everything its properties say."""
    name = cx.full_name(decl.name, decl.annotations)
    keys = _keys(cx, decl)
    if decl.actions is None:
        cx.unit.reporter.fail(decl.at, f"table '{decl.name}' has no 'actions' property")
    where = dict(decl.order)
    for later, earlier in (("default_action", "actions"), ("entries", "key"), ("entries", "actions")):
        if later in where and where[later] < where.get(earlier, 0):
            note = (where[earlier], f"'{earlier}' is here")
            cx.unit.reporter.fail(where[later], f"'{later}' must come after '{earlier}'", note)
    actions, entities = _actions(cx, decl.actions)
    properties = {p.name: p for p in decl.properties}
    const_default = "default_action" in properties and properties["default_action"].const
    default, actions = _default(cx, decl, properties.get("default_action"), actions, entities)
    size = _size(cx, properties.get("size"))
    written = entries.lower(cx, decl, keys, entities, properties)
    implementation = _implementation(cx, decl, properties.get("implementation"))
    direct = _direct(cx, decl, properties)
    others = _others(cx, decl)
    attached = (v for v in others.values() if isinstance(v, ir.ExternInstance) and v.extern.startswith("Direct"))
    direct = (*direct, *attached)
    table = ir.Table(
        name, keys, actions, default, const_default, size, written, decl.const_entries, direct, implementation,
        table_actions.flag(cx, properties.get("support_timeout")), decl.annotations, cx.pos(decl.at), others,
    )  # fmt: skip
    cx.unit.tables.append(table)
    return TableEntity(decl.at, table, Enum(f"{decl.name}.action_run", tuple(a.name for a in actions)))


# --- keys ----------------------------------------------------------------------------------------


def _keys(cx: Context, decl: ast_table.TableDecl) -> tuple[ir.Key, ...]:
    found: list[ir.Key] = []
    for key in decl.keys or ():
        # A key is evaluated where the table is applied, so what can be called there can be called here.
        expr = evaluate.value(replace(cx, place="apply"), key.expr)
        if key.match_kind not in cx.unit.match_kinds:
            cx.unit.reporter.fail(key.at, f"match kind '{key.match_kind}' is not declared")
        if not isinstance(strip(expr.type), Bits | Bool | Enum | SerEnum | Error | Varbits):
            cx.unit.reporter.fail(key.at, f"a key cannot have type {expr.type}")
        given = next((a for a in key.annotations if a.name == "name" and a.args), None)
        name = str(given.args[0]) if given is not None else key_name(cx, key.expr)
        if name is None:
            cx.unit.reporter.fail(key.at, "this key is an expression: it needs a @name annotation")
        found.append(ir.Key(expr, key.match_kind, name, key.annotations, cx.pos(key.at)))
    return tuple(found)


def key_name(cx: Context, e: ast.Expr) -> str | None:
    """The control-plane name of a key (spec 18.3.2.1): its text, for simple expressions."""
    match e:
        case ast.Name(name=name, rooted=rooted):
            return f".{name}" if rooted else name
        case ast.Member(base=base, name=name):
            return _member_name(cx, base, name)
        case ast.IndexOf(base=base, index=index):
            inner, at = key_name(cx, base), key_name(cx, index)
            return f"{inner}[{at}]" if inner and at else None
        case ast.SliceOf(base=base, hi=hi, lo=lo):
            inner = key_name(cx, base)
            top, bottom = (evaluate.constant_int(cx, i, "a bit number") for i in (hi, lo))
            return f"{inner}[{top}:{bottom}]" if inner else None
        case ast.IntLit(value=value, base=base_number):
            return _number(value, base_number)
        case ast.BinaryOp(op="&", left=left, right=right):
            one, two = key_name(cx, left), key_name(cx, right)
            return f"{one} & {two}" if one and two else None
        case ast.CallOf(callee=ast.Member(base=base, name="isValid"), args=()):
            inner = key_name(cx, base)
            return f"{inner}.$valid$" if inner else None
    return None


def _member_name(cx: Context, base: ast.Expr, name: str) -> str | None:
    type_ = evaluate.lower(cx, base).type
    field = type_.get(name) if isinstance(type_, Fields) else None
    for annotation in field.annotations if field is not None else ():
        if annotation.name == "name" and annotation.args:
            name = str(annotation.args[0])
    if name.startswith("."):
        return name[1:]
    inner = key_name(cx, base)
    return f"{inner}.{name}" if inner else None


def _number(value: int, base: int) -> str:
    prefix = {16: "0x", 8: "0o", 2: "0b"}.get(base, "")
    return prefix + format(value, {16: "x", 8: "o", 2: "b"}.get(base, "d"))


# --- actions -------------------------------------------------------------------------------------


def _actions(
    cx: Context, found: tuple[ast_table.TableAction, ...]
) -> tuple[tuple[ir.ActionRef, ...], table_actions.Entities]:
    refs: list[ir.ActionRef] = []
    entities: table_actions.Entities = {}
    for item in found:
        try:
            entity = table_actions.find_action(cx, item.name, item.at, item.rooted)
            if item.name in entities:
                cx.unit.reporter.fail(item.at, f"action '{item.name}' is listed twice")
            ref = _ref(cx, item, entity)
        except Reported:
            continue
        refs.append(ref)
        entities[item.name] = (ref, entity, item)
    return tuple(refs), entities


def _ref(cx: Context, item: ast_table.TableAction, entity: ActionEntity) -> ir.ActionRef:
    for p in entity.signature.params if cx.unit.has_target else ():
        if p.direction == "none" and not isinstance(strip(p.type), Bits | Bool | SerEnum | Enum | Error | TypeVar):
            note = (item.at, "it is listed here")
            cx.unit.reporter.fail(
                p.at, f"a control plane cannot give parameter '{p.name}' of type {p.type} a value", note
            )
    directed = [p for p in entity.signature.params if p.direction != "none"]
    given = item.args or ()
    if len(given) > len(directed):
        at = given[len(directed)].at
        cx.unit.reporter.fail(
            at, f"parameters of '{item.name}' without a direction get their values from entries, not here"
        )
    signature = Signature(item.name, (), tuple(directed), entity.signature.returns, cx, entity.at)
    _, bound = arguments.lower(cx, item.at, signature, (), given, constants=False)
    names = {a.name for a in item.annotations}
    return ir.ActionRef(
        item.name, entity.function, bound, "defaultonly" in names, "tableonly" in names, item.annotations,
        arguments.order(signature, given),
    )  # fmt: skip


def _default(
    cx: Context,
    decl: ast_table.TableDecl,
    prop: ast_table.Property | None,
    actions: tuple[ir.ActionRef, ...],
    entities: table_actions.Entities,
) -> tuple[ir.ActionCall, tuple[ir.ActionRef, ...]]:
    """The default action; ``NoAction`` where none is given, then listed for that alone."""
    if prop is not None:
        return table_actions.action_call(cx, prop.value, entities, "the default action"), actions
    if "NoAction" in entities:
        return ir.ActionCall(entities["NoAction"][0], ()), actions
    entity = cx.unit.globals.find("NoAction", decl.at)
    if not isinstance(entity, ActionEntity) or entity.signature.params:
        note = [(entity.at, "this is not an action without parameters")] if entity is not None else []
        message = f"table '{decl.name}' has no default action, and no NoAction() is declared"
        cx.unit.reporter.fail(decl.at, message, *note)
    ref = ir.ActionRef("NoAction", entity.function, (), True, False, (Annotation("defaultonly"),))
    return ir.ActionCall(ref, ()), (*actions, ref)


# --- other properties ----------------------------------------------------------------------------

_KNOWN = _DIRECT.keys() | {
    "default_action", "size", "implementation", "support_timeout", "largest_priority_wins", "priority_delta",
}  # fmt: skip


def _others(cx: Context, decl: ast_table.TableDecl) -> dict[str, ir.ConstValue | ir.ExternInstance]:
    """The properties that only the program's architecture knows: no other field of ``ir.Table`` holds them."""
    found: dict[str, ir.ConstValue | ir.ExternInstance] = {}
    for prop in decl.properties:
        if prop.name in _KNOWN:
            continue
        takes = next((a.PROPERTIES[prop.name] for a in cx.unit.targets if prop.name in a.PROPERTIES), None)
        if takes is None:
            cx.unit.reporter.warn(prop.at, f"table property '{prop.name}' is not known here and has no effect")
        else:
            found[prop.name] = _other(cx, decl, prop, takes)
    return found


def _other(
    cx: Context, decl: ast_table.TableDecl, prop: ast_table.Property, takes: tuple[str, ...]
) -> ir.ConstValue | ir.ExternInstance:
    what = " or a ".join(takes)
    if "bool" in takes and isinstance(prop.value, ast.BoolLit):
        return prop.value.value
    if takes == ("bool",):
        return bool(evaluate.constant(cx, prop.value, BOOL, f"'{prop.name}'").value)
    instance = _extern(cx, decl, prop, prop.value)
    if instance.extern not in takes:
        cx.unit.reporter.fail(prop.value.at, f"'{prop.name}' takes a {what}, not a {instance.extern}")
    return instance


def _size(cx: Context, prop: ast_table.Property | None) -> int | None:
    if prop is None:
        return None
    size = evaluate.constant_int(cx, prop.value, "the size of a table")
    if size < 0:
        cx.unit.reporter.fail(prop.value.at, "the size of a table must not be negative")
    return size


def _implementation(
    cx: Context, decl: ast_table.TableDecl, prop: ast_table.Property | None
) -> ir.ExternInstance | None:
    if prop is None:
        return None
    found = _extern(cx, decl, prop, prop.value)
    if found.extern not in IMPLEMENTATIONS:
        cx.unit.reporter.fail(prop.value.at, f"a {found.extern} cannot be the implementation of a table")
    return found


def _direct(
    cx: Context, decl: ast_table.TableDecl, properties: dict[str, ast_table.Property]
) -> tuple[ir.ExternInstance, ...]:
    found: list[ir.ExternInstance] = []
    for name, wanted in _DIRECT.items():
        prop = properties.get(name)
        if prop is None:
            continue
        instance = _extern(cx, decl, prop, prop.value)
        if instance.extern not in wanted:
            cx.unit.reporter.fail(prop.value.at, f"'{name}' takes a {wanted[0]}, not a {instance.extern}")
        found.append(instance)
    return tuple(found)


def _extern(cx: Context, decl: ast_table.TableDecl, prop: ast_table.Property, e: ast.Expr) -> ir.ExternInstance:
    """The extern instance that a property names or makes on the spot."""
    if isinstance(e, ast.Name):
        entity = evaluate.find(cx, e.name, e.at, e.rooted)
        if isinstance(entity, InstanceEntity) and isinstance(entity.value, ir.ExternInstance):
            return entity.value
        cx.unit.reporter.fail(e.at, f"'{e.name}' is not an instance of an extern")
    if isinstance(e, ast.CallOf) and isinstance(e.callee, ast.TypeName):
        type_ = type_refs.resolve(cx, e.callee.type)
        # p4c gives what a property makes the property's own @name, without the control's prefix.
        given = next((str(a.args[0]) for a in prop.annotations if a.name == "name" and a.args), None)
        name = given.removeprefix(".") if given is not None else cx.full_name(f"{decl.name}.{prop.name}", ())
        owner = cx.full_name(decl.name, decl.annotations)
        made = extern_instances.extern_instance(cx, type_, name, e.args, prop.annotations, e.at, owner)
        assert isinstance(made.value, ir.ExternInstance)
        return made.value
    cx.unit.reporter.fail(e.at, f"'{prop.name}' takes an instance of an extern")
