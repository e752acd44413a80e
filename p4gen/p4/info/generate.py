"""P4Info of a program, as p4c derives it, so that control planes cannot distinguish the two compilers.

It contains only what the program's blocks can use (``live``): p4c's front end removes the rest before it generates
P4Info.
"""

from __future__ import annotations

from typing import Any

from p4gen.p4 import ir
from p4gen.p4.info import ids
from p4gen.p4.info.needless import needed
from p4gen.p4.info.rules import OF_PROFILES, rules_of
from p4gen.p4.info.types import TypeInfo, annotate, control_width, document, external_name, flattened, to_bytes
from p4gen.p4.live import Live
from p4gen.p4.types import Annotation, Bits, Enum, Header, NewType, SerEnum, Struct, Type
from p4gen.protos import p4info

DEFAULT_TABLE_SIZE = 1024
_MATCH = {
    "exact": p4info.MatchField.EXACT,
    "lpm": p4info.MatchField.LPM,
    "ternary": p4info.MatchField.TERNARY,
    "range": p4info.MatchField.RANGE,
    "optional": p4info.MatchField.OPTIONAL,
}


def generate(program: ir.Program) -> p4info.P4Info:
    """The P4Info message of a program. The program's architecture says how externs appear in it (``InfoRules``)."""
    return _Writer(program).write()


def translated(program: ir.Program) -> dict[str, int]:
    """The bits of each type of the P4Info that has ``@p4runtime_translation``, by its name there."""
    writer = _Writer(program)
    writer.write()
    return writer.types.translated


class _Writer:
    def __init__(self, program: ir.Program) -> None:
        self.program = program
        self.info = p4info.P4Info()
        self.types = TypeInfo(self.info.type_info, program.errors)
        self.symbols = ids.Symbols()
        self.used = [Live.of(block) for block in program.blocks.values()]
        self.tables = [t for t in program.tables if any(t in u.tables for u in self.used)]
        # p4c inlines actions that only other actions call, and takes away the parameters of those
        # that only apply blocks call.
        self.listed = {ref.action for t in self.tables for ref in t.actions}
        self.actions = self._actions()
        owners = {"", *(b.name for u in self.used for b in u.blocks), *(t.name for t in self.tables)}
        self.externs = [e for e in program.externs if e.owner in owners]
        if any(e.aliased for e in self.externs):
            called = {c.instance for u in self.used for c in needed(u.bodies)}
            self.externs = [e for e in self.externs if not e.aliased or e in called]
        self.value_sets = [v for v in program.value_sets if any(v in u.value_sets for u in self.used)]
        self.rules = rules_of(program)
        self.kinds = self.rules.kinds
        self.externs = [e for e in self.externs if self.rules.listed(e)]
        self.digests = self.rules.digests(program, self.used, self.actions, self.externs)
        self.controller = [
            (h, a)
            for h in program.headers
            if isinstance(h, Header)
            for a in h.annotations
            if a.name == "controller_header" and a.args
        ]

    def write(self) -> p4info.P4Info:
        if self.program.blocks:
            self.info.pkg_info.arch = self.rules.architecture
            self._package()
        self._collect()
        for table in self.tables:
            if not _hidden(table.annotations):
                self._table(table)
        for action in self.actions:
            if not _hidden(action.annotations):
                self._action(action)
        for instance in self.externs:
            self._extern(instance)
        for header, annotation in self.controller:
            self._controller_header(header, str(annotation.args[0]))
        for value_set in self.value_sets:
            self._value_set(value_set)
        for name, type_ in self.digests:
            digest = self.info.digests.add()
            self._preamble(digest.preamble, ids.DIGEST, name, ())
            digest.type_spec.CopyFrom(self.types.spec(type_))
        calls = any(c.instance is None for u in self.used for c in u.calls)
        if self.info.tables or self.externs or self.controller or calls:
            # p4c makes the field wherever it looks for types, even if it finds none.
            self.info.type_info.SetInParent()
        return self.info

    def _actions(self) -> list[ir.Function]:
        """The live actions of each control, in p4c's order: first the actions declared outside, of which the control
        has copies, in the order of use; then the control's own."""
        found: dict[ir.Function, None] = {}
        for used in self.used:
            of_tables = [r.action for t in self.tables if t in used.tables for r in t.actions]
            left = dict.fromkeys((*of_tables, *(f for f in used.called if f.is_action)))
            found.update((a, None) for a in left if not a.owner)
            found.update((a, None) for a in self.program.actions if a in left and a.owner)
        return list(found)

    def _collect(self) -> None:
        for table in self.tables:
            self._add(ids.TABLE, table.name, table.annotations)
        for action in self.actions:
            self._add(ids.ACTION, action.name, action.annotations)
        for instance in self.externs:
            if instance.extern in self.kinds:
                self._add(self.kinds[instance.extern], instance.name, instance.annotations)
        for header, _ in self.controller:
            name = external_name(header.name, header.annotations)
            self._add(ids.CONTROLLER_HEADER, name, header.annotations)
        for value_set in self.value_sets:
            self._add(ids.VALUE_SET, value_set.name, value_set.annotations)
        for name, _ in self.digests:
            self._add(ids.DIGEST, name)
        self.symbols.assign()

    def _add(self, kind: int, name: str, annotations: tuple[Annotation, ...] = ()) -> None:
        self.symbols.add(kind, self.rules.symbol(self.program, kind, name), annotations)

    def _id(self, kind: int, name: str) -> int:
        return self.symbols.id(kind, self.rules.symbol(self.program, kind, name))

    def _preamble(
        self,
        preamble: Any,
        kind: int,
        name: str,
        annotations: tuple[Annotation, ...],
        skip: frozenset[str] = frozenset(),
    ) -> None:
        preamble.id = self._id(kind, name)
        preamble.name = name
        preamble.alias = self.symbols.alias(self.rules.symbol(self.program, kind, name))
        annotate(preamble, annotations, skip)
        document(preamble, annotations)

    def _package(self) -> None:
        for a in self.program.annotations:
            if a.name == "pkginfo":
                for key, value in a.pairs:
                    if key in ("name", "version", "organization", "contact", "url", "arch"):
                        setattr(self.info.pkg_info, key, str(value))
            elif a.name == "platform_property":
                for key, value in a.pairs:
                    if (
                        isinstance(value, int)
                        and key in self.info.pkg_info.platform_properties.DESCRIPTOR.fields_by_name
                    ):
                        setattr(self.info.pkg_info.platform_properties, key, value)
        annotate(self.info.pkg_info, self.program.annotations, frozenset({"pkginfo", "platform_property"}))
        document(self.info.pkg_info, self.program.annotations)

    # --- tables and actions ---

    def _table(self, table: ir.Table) -> None:
        out = self.info.tables.add()
        self._preamble(out.preamble, ids.TABLE, table.name, table.annotations)
        for key, number in zip(table.keys, ids.member_ids(k.annotations for k in table.keys), strict=True):
            if key.match_kind != "selector":
                self._match_field(out.match_fields.add(), key, number)
        for ref in table.actions:
            self._action_ref(out.action_refs.add(), ref)
        default = table.default_action
        number = self._id(ids.ACTION, default.ref.action.name)
        if table.const_default:
            out.const_default_action_id = number
        out.initial_default_action.action_id = number
        params = default.ref.action.data
        for value, param, param_id in zip(default.args, params, range(1, len(params) + 1), strict=True):
            argument = out.initial_default_action.arguments.add()
            argument.param_id = param_id
            argument.value = (
                to_bytes(int(value), control_width(param.variable.type)) if not isinstance(value, str) else b""
            )
        out.size = table.size or DEFAULT_TABLE_SIZE
        out.is_const_table = table.const_entries
        out.has_initial_entries = bool(table.entries)
        if table.implementation is not None:
            profile = self.rules.profile_of(table.implementation)
            if profile is not None:
                out.implementation_id = self._id(ids.ACTION_PROFILE, profile.name)
        for instance in table.direct:
            if instance.extern not in self.kinds:
                continue
            kind = self.kinds[instance.extern]
            out.direct_resource_ids.append(self._id(kind, instance.name))
            self._direct(instance, kind, out.preamble.id)
        if table.support_timeout or table.properties.get("idle_timeout"):
            out.idle_timeout_behavior = p4info.Table.NOTIFY_CONTROL

    def _match_field(self, out: Any, key: ir.Key, number: int) -> None:
        out.id = number
        out.name = key.name
        annotate(out, key.annotations)
        document(out, key.annotations)
        out.bitwidth = control_width(key.expr.type)
        if key.match_kind in _MATCH:
            out.match_type = _MATCH[key.match_kind]
        else:
            out.other_match_type = key.match_kind
        self._type_name(out, key.expr.type)

    def _type_name(self, out: Any, type_: Type) -> None:
        self.types.spec(type_)
        if isinstance(type_, NewType):
            out.type_name.name = type_.name

    def _action_ref(self, out: Any, ref: ir.ActionRef) -> None:
        out.id = self._id(ids.ACTION, ref.action.name)
        annotate(out, ref.annotations)
        if ref.table_only:
            out.scope = p4info.ActionRef.TABLE_ONLY
        elif ref.default_only:
            out.scope = p4info.ActionRef.DEFAULT_ONLY

    def _action(self, action: ir.Function) -> None:
        out = self.info.actions.add()
        self._preamble(out.preamble, ids.ACTION, action.name, action.annotations)
        data = action.data if action in self.listed else ()
        for param, number in zip(data, ids.member_ids(p.annotations for p in data), strict=True):
            message = out.params.add()
            message.id = number
            message.name = external_name(param.variable.name, param.annotations)
            annotate(message, param.annotations)
            document(message, param.annotations)
            message.bitwidth = control_width(param.variable.type)
            self._type_name(message, param.variable.type)
            if isinstance(param.variable.type, Enum):
                message.type_name.name = param.variable.type.name

    # --- externs ---

    def _extern(self, instance: ir.ExternInstance) -> None:
        match instance.extern if instance.extern in self.kinds else None:
            case "counter" | "Counter":
                self._indexed(self.info.counters.add(), ids.COUNTER, instance, 0)
            case "meter" | "Meter":
                self._indexed(self.info.meters.add(), ids.METER, instance, 0)
            case "register" | "Register":
                self._register(instance)
            case "action_profile" | "action_selector" | "ActionProfile" | "ActionSelector":
                self._profile(instance)

    def _indexed(self, out: Any, kind: int, instance: ir.ExternInstance, index: int) -> None:
        self._preamble(out.preamble, kind, instance.name, instance.annotations)
        out.spec.unit = _unit(instance.args[1], kind)
        out.size = int(instance.args[0])
        self._index_type(out, instance, index)

    def _index_type(self, out: Any, instance: ir.ExternInstance, index: int) -> None:
        if len(instance.type_args) > index:
            type_ = instance.type_args[index]
            self.types.spec(type_)
            if isinstance(type_, NewType):
                out.index_type_name.name = type_.name

    def _register(self, instance: ir.ExternInstance) -> None:
        out = self.info.registers.add()
        self._preamble(out.preamble, ids.REGISTER, instance.name, instance.annotations)
        out.type_spec.CopyFrom(self.types.spec(instance.type_args[0]))
        out.size = int(instance.args[0])
        self._index_type(out, instance, 1)

    def _direct(self, instance: ir.ExternInstance, kind: int, table: int) -> None:
        out = (self.info.direct_counters if kind == ids.DIRECT_COUNTER else self.info.direct_meters).add()
        self._preamble(out.preamble, kind, instance.name, instance.annotations)
        out.spec.unit = _unit(instance.args[0], kind)
        out.direct_table_id = table

    def _profile(self, instance: ir.ExternInstance) -> None:
        out = self.info.action_profiles.add()
        self._preamble(out.preamble, ids.ACTION_PROFILE, instance.name, instance.annotations, OF_PROFILES)
        self.rules.profile(out, instance, self.program)
        used = ((t.name, t.implementation) for t in self.tables)
        users = sorted(
            name for name, chosen in used if chosen is not None and self.rules.profile_of(chosen) is instance
        )
        out.table_ids.extend(self._id(ids.TABLE, name) for name in users)

    # --- the rest ---

    def _controller_header(self, header: Header, name: str) -> None:
        if _hidden(header.annotations):
            return
        out = self.info.controller_packet_metadata.add()
        self._preamble(
            out.preamble, ids.CONTROLLER_HEADER, external_name(header.name, header.annotations), header.annotations
        )
        out.preamble.name = out.preamble.alias = name
        fields = flattened(header)
        for (field, type_, own), number in zip(fields, ids.member_ids(a for _, _, a in fields), strict=True):
            if _hidden(own):
                continue
            message = out.metadata.add()
            message.id = number
            message.name = field
            annotate(message, own)
            message.bitwidth = control_width(type_)
            self._type_name(message, type_)

    def _value_set(self, value_set: ir.ValueSet) -> None:
        out = self.info.value_sets.add()
        self._preamble(out.preamble, ids.VALUE_SET, value_set.name, value_set.annotations)
        out.size = value_set.size
        match value_set.type:
            case Bits(width=width):
                self._value_match(out.match.add(), 1, "", width, ())
            case Struct(fields=fields):
                plain = [f for f in fields if isinstance(f.type, Bits)]
                for f, number in zip(plain, ids.member_ids(f.annotations for f in plain), strict=True):
                    name = external_name(f.name, f.annotations)
                    self._value_match(out.match.add(), number, name, control_width(f.type), f.annotations)
            case SerEnum(base=base, members=members):
                for number, (name, _) in enumerate(members, 1):
                    self._value_match(out.match.add(), number, name, base.width, ())

    def _value_match(self, out: Any, number: int, name: str, width: int, annotations: tuple[Annotation, ...]) -> None:
        out.id = number
        out.name = name
        out.bitwidth = width
        kind = next((a.body for a in annotations if a.name == "match"), "exact")
        if kind in _MATCH:
            out.match_type = _MATCH[kind]
        else:
            out.other_match_type = kind
        annotate(out, annotations, frozenset({"match"}))
        document(out, annotations)


def _hidden(annotations: tuple[Annotation, ...]) -> bool:
    return any(a.name == "hidden" for a in annotations)


def _unit(name: ir.ConstValue, kind: int) -> int:
    spec = p4info.CounterSpec if kind in (ids.COUNTER, ids.DIRECT_COUNTER) else p4info.MeterSpec
    units = {"packets": spec.PACKETS, "bytes": spec.BYTES}
    if spec is p4info.CounterSpec:
        units["packets_and_bytes"] = spec.BOTH
    return int(units[str(name).lower()])
