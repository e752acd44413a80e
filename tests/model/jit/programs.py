"""Random programs and packets: text that uses as much of the language and of v1model as fits on a page."""

from __future__ import annotations

from random import Random

WIDTHS = (1, 2, 3, 4, 7, 8, 9, 12, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 72, 96, 127, 128, 129, 200)


class Program:
    """One program, drawn from ``rng``. Everything that can be observed is: fields leave in the packet."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.fields = [(f"f{i}", rng.choice(WIDTHS), rng.random() < 0.25) for i in range(rng.randint(3, 7))]
        self.fields = [(n, w, s and w > 1) for n, w, s in self.fields]
        self.meta = [(f"m{i}", rng.choice(WIDTHS), False) for i in range(3)]
        self.locals: list[tuple[str, int, bool]] = []
        self.readable = [(f"hdr.h.{n}", w, s) for n, w, s in self.fields]
        self.readable += [(f"meta.{n}", w, s) for n, w, s in self.meta]
        self.readable += [("hdr.o.kind", 8, False), ("hdr.s[1].v", 8, False), ("hdr.s[0].v", 8, False)]
        self.writable = list(self.readable)
        self.names = 0
        self.depth = 0
        self.loops = 0
        self.in_action = False

    # --- expressions ---

    def literal(self, width: int, signed: bool) -> str:
        value = self.rng.choice((0, 1, (1 << width) - 1, 1 << (width - 1), self.rng.getrandbits(width)))
        if not signed:
            return f"{width}w{value}"
        value -= (1 << width) if value >> (width - 1) else 0
        if value < 0:
            return f"(-{width}s{-value})" if -value < 1 << (width - 1) else f"{width}s0"
        return f"{width}s{value}"

    def cast(self, text: str, width: int, signed: bool, to: int, to_signed: bool) -> str:
        if signed != to_signed:
            text = f"({'int' if to_signed else 'bit'}<{width}>)({text})"
        return text if width == to else f"({'int' if to_signed else 'bit'}<{to}>)({text})"

    def leaf(self, width: int, signed: bool) -> str:
        if self.rng.random() < 0.25:
            return self.literal(width, signed)
        name, w, s = self.rng.choice(self.readable + self.locals)
        if w > width > 0 and not s and not signed and self.rng.random() < 0.5:
            low = self.rng.randint(0, w - width)
            return f"{name}[{low + width - 1}:{low}]"
        return self.cast(name, w, s, width, signed)

    def expr(self, width: int, signed: bool, depth: int = 3) -> str:
        rng = self.rng
        if depth == 0 or rng.random() < 0.2:
            return self.leaf(width, signed)

        def sub() -> str:
            return self.expr(width, signed, depth - 1)

        kind = rng.randrange(14)
        if kind < 5:
            op = rng.choice(["+", "-", "*", "&", "|", "^"])
            return f"({sub()} {op} {sub()})"
        if kind == 5:
            return f"({sub()} {rng.choice(['|+|', '|-|'])} {sub()})"
        if kind == 6:
            by = rng.choice((3, 8, 16))
            return f"({sub()} {rng.choice(['<<', '>>'])} {self.expr(by, False, depth - 1)})"
        if kind == 7:
            return f"({sub()} {rng.choice(['<<', '>>'])} {rng.randint(0, width + 2)})"
        if kind == 8 and not signed:
            return f"({sub()} {rng.choice(['/', '%'])} {width}w{1 << rng.randrange(width)})"
        if kind == 9:
            return f"({self.condition(depth - 1)} ? {sub()} : {sub()})"
        if kind == 10:
            return f"({'int' if signed else 'bit'}<{width}>)" + f"({self.expr(rng.choice(WIDTHS), signed, depth - 1)})"
        if kind == 11 and not signed and width > 1:
            left = rng.randint(1, width - 1)
            return f"({self.expr(left, False, depth - 1)} ++ {self.expr(width - left, False, depth - 1)})"
        if kind == 12:
            return f"({rng.choice('~-')}{sub()})"
        if kind == 13 and not signed and width == 16 and not self.in_action:
            return f"twist({sub()}, {self.expr(8, False, depth - 1)})"
        return self.leaf(width, signed)

    def condition(self, depth: int = 2) -> str:
        rng = self.rng
        kind = rng.randrange(8)
        if depth > 0 and kind < 2:
            return f"({self.condition(depth - 1)} {rng.choice(['&&', '||', '==', '!='])} {self.condition(depth - 1)})"
        if depth > 0 and kind == 2:
            return f"(!{self.condition(depth - 1)})"
        if kind == 3:
            return f"hdr.{rng.choice(['h', 'o', 's[0]', 's[1]', 's[2]'])}.isValid()"
        if kind == 4:
            return rng.choice(
                [
                    "(hdr.s[0] == hdr.s[1])",
                    "(hdr.o != hdr.o2)",
                    "(meta.inner == meta.other)",
                    "hdr.u.isValid()",
                    "hdr.us[1].b.isValid()",
                    "(hdr.u == hdr.us[0])",
                ]
            )
        width, signed = rng.choice(WIDTHS), rng.random() < 0.3
        signed = signed and width > 1
        op = rng.choice(["==", "!=", "<", "<=", ">", ">="])
        return f"({self.expr(width, signed, depth)} {op} {self.expr(width, signed, depth)})"

    # --- statements ---

    def assign(self) -> str:
        name, width, signed = self.rng.choice(self.writable + self.locals)
        if not signed and width > 2 and self.rng.random() < 0.2:
            low = self.rng.randint(0, width - 2)
            high = self.rng.randint(low, width - 1)
            return f"{name}[{high}:{low}] = {self.expr(high - low + 1, False)};"
        return f"{name} = {self.expr(width, signed)};"

    def statement(self) -> str:
        rng = self.rng
        kind = rng.randrange(20)
        self.depth += 1
        try:
            if self.depth > 4 or kind < 6:
                return self.assign()
            if kind < 8:
                otherwise = f" else {{ {self.block()} }}" if rng.random() < 0.5 else ""
                return f"if ({self.condition()}) {{ {self.block()} }}{otherwise}"
            if kind == 8:
                self.names += 1
                name, width, signed = f"v{self.names}", rng.choice(WIDTHS), False
                text = f"bit<{width}> {name} = {self.expr(width, signed)};"
                if self.depth == 1:
                    self.locals.append((name, width, signed))
                    return text
                return self.assign()
            if kind == 9:
                labels = rng.sample(range(8), 3)
                cases = " ".join(f"{v}: {{ {self.block()} }}" for v in labels)
                return f"switch ({self.expr(3, False)}) {{ {cases} default: {{ {self.block()} }} }}"
            if kind == 10:
                return self.register()
            if kind == 11:
                return rng.choice([
                    "hdr.s.push_front(1);", "hdr.s.pop_front(1);", "hdr.s[2].setValid();", "hdr.s[0].setInvalid();",
                    "hdr.o.setInvalid();", "hdr.o2 = hdr.o;", "hdr.s[1] = hdr.s[0];", "hdr.s[0] = {3, 4};",
                    "hdr.o2.setValid();", "meta.other = meta.inner;", "hdr.h.setValid();", "hdr.u.a.setValid();",
                    "hdr.u.b = hdr.o;", "hdr.u.a = {8w1, 8w2};", "hdr.us[1] = hdr.u;", "hdr.us.push_front(1);",
                    "hdr.u.b.setInvalid();", "hdr.us.pop_front(1);", "hdr.us[0].a = hdr.s[2];",
                ])  # fmt: skip
            if kind == 12:
                return self.extern()
            if kind == 13 and not self.in_action:
                return f"nudge({self.expr(16, False)}, {rng.choice(['meta.inner.x', 'hdr.o.sum'])});"
            if kind == 14 and not self.in_action and self.depth == 1:
                return rng.choice([
                    "exact_table.apply();", "lpm_table.apply();", "ternary_table.apply();",
                    "if (range_table.apply().hit) { meta.inner.x = meta.inner.x + 1; }",
                    "switch (ternary_table.apply().action_run) { act1: { meta.inner.y = 7; } default: {} }",
                ])  # fmt: skip
            if kind == 15 and not self.in_action and self.depth == 1:
                return f"helper.apply(hdr.o, meta.inner.x, {self.expr(16, False)});"
            if kind == 16:
                return f"hdr.s[{self.expr(2, False, 1)}].v = {self.expr(8, False)};"
            if kind == 17:
                return f"meta.inner.y = (bit<8>)hdr.s[{self.expr(2, False, 1)}].v;"
            if kind == 18 and rng.random() < 0.2:
                return rng.choice(["return;", "exit;"])
            if kind == 19 and self.loops < 2 and not self.in_action:
                self.loops += 1
                self.names += 1
                name = f"i{self.names}"
                rounds = rng.randint(0, 5)
                if rng.random() < 0.4:
                    self.loops -= 1
                    return f"for (bit<8> {name} in {rng.randint(0, 3)} .. {rounds}) {{ {self.block()} }}"
                text = f"for (bit<8> {name} = 0; {name} < {rounds}; {name} = {name} + 1) {{ {self.block()} }}"
                self.loops -= 1
                return text
            return self.assign()
        finally:
            self.depth -= 1

    def block(self) -> str:
        kept = list(self.locals)
        text = " ".join(self.statement() for _ in range(self.rng.randint(1, 3)))
        self.locals = kept
        return text

    def register(self) -> str:
        index = f"(bit<32>){self.expr(self.rng.choice((2, 3, 4)), False, 1)}"
        which = self.rng.choice("abc")
        target = {"a": "meta.inner.x", "b": "meta.wide", "c": "meta.small"}[which]
        width = {"a": 16, "b": 72, "c": 3}[which]
        if self.rng.random() < 0.5:
            return f"reg_{which}.read({target}, {index});"
        return f"reg_{which}.write({index}, {self.expr(width, False)});"

    def extern(self) -> str:
        rng = self.rng
        data = ", ".join(["hdr.h." + n for n, _, _ in rng.sample(self.fields, 2)] + ["hdr.o", "8w255"])
        algorithm = rng.choice(["crc32", "crc16", "csum16", "xor16", "identity"])
        base, most = rng.getrandbits(8), rng.getrandbits(16)
        calls = [
            f"hash(meta.inner.x, HashAlgorithm.{algorithm}, 16w{base}, {{ {data} }}, 32w{most});",
            f"cnt.count((bit<32>){self.expr(3, False, 1)});",
            f"mtr.execute_meter((bit<32>){self.expr(2, False, 1)}, meta.small8);",
            f"random(meta.inner.x, 16w{rng.getrandbits(8)}, 16w{rng.getrandbits(10)});",
            "digest<inner_t>(1, meta.inner);",
            'log_msg("x is {} and {}", { meta.inner.x, hdr.o.kind });',
            f"assert({self.condition(1)});",
        ]
        if rng.random() < 0.4:
            calls = [
                f"clone_preserving_field_list(CloneType.I2E, 32w{rng.randint(0, 3)}, 1);",
                "if (std.instance_type == 0) { resubmit_preserving_field_list(2); }",
                "recirculate_preserving_field_list(1);",
                f"truncate(32w{rng.randint(0, 30)});",
                "mark_to_drop(std);",
                f"std.mcast_grp = {rng.randint(0, 3)};",
            ]
        return rng.choice(calls)

    # --- the whole ---

    def text(self) -> str:
        rng = self.rng
        total = sum(w for _, w, _ in self.fields)
        declared = " ".join(f"{'int' if s else 'bit'}<{w}> {n};" for n, w, s in self.fields)
        pad = f" bit<{-total % 8}> pad;" if total % 8 and rng.random() < 0.9 else ""
        meta = " ".join(f"@field_list({rng.randint(1, 2)}) bit<{w}> {n};" for n, w, _ in self.meta)
        first, width, _ = self.fields[0]
        low = min(width, 3)
        self.in_action = True
        actions = [self.block(), self.block()]
        self.in_action = False
        function = self.function()
        leave = rng.choice(["return;", "exit;", "a.setInvalid();"])
        helper = f"a.kind = a.kind + (bit<8>)c; b = b ^ c; if (c > 100) {{ {leave} }} b = b + 1;"
        self.depth = 0
        body = "\n        ".join(self.statement() for _ in range(rng.randint(3, 9)))
        self.locals = []
        egress = "\n        ".join(self.assign() for _ in range(rng.randint(0, 3)))
        keys = rng.sample([r for r in self.readable if not r[2] and r[0] != "hdr.o.kind"], 4)
        return f"""
#include <core.p4>
#include <v1model.p4>
header h_t {{ {declared}{pad} }}
header s_t {{ bit<8> kind; bit<8> v; }}
header o_t {{ bit<8> kind; bit<8> length; varbit<64> rest; bit<16> sum; }}
struct inner_t {{ bit<16> x; bit<8> y; }}
header_union u_t {{ s_t a; o_t b; }}
struct headers_t {{ h_t h; s_t[3] s; o_t o; o_t o2; u_t u; u_t[2] us; }}
struct meta_t {{ {meta} @field_list(1) inner_t inner; inner_t other; bit<72> wide; bit<3> small; bit<8> small8; }}
{function}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    value_set<bit<8>>(4) kinds;
    state start {{
        packet.extract(hdr.h);
        transition select(hdr.h.{first}) {{ {self.keyset(width, self.fields[0][2])}: options; default: stack; }}
    }}
    state stack {{
        packet.extract(hdr.s.next);
        verify(hdr.s.last.v != 13, error.NoMatch);
        transition select(hdr.s.last.kind, hdr.s.lastIndex) {{
            (kinds, _): accept; (0x80 &&& 0x80, 0 .. 3): stack; (1 .. 20, _): options; (_, 2): reject; default: look; }}
    }}
    state look {{ transition select(packet.lookahead<bit<8>>()) {{ 0: reject; 1 .. 99: options; default: accept; }} }}
    state options {{
        packet.extract(hdr.o, (bit<32>)(packet.lookahead<bit<16>>()[2:0]) << 3);
        transition accept;
    }}
}}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{
    verify_checksum(hdr.o.isValid(), {{ hdr.h, hdr.o.kind, hdr.o.rest }}, hdr.o.sum, HashAlgorithm.csum16); }} }}
control Helper(inout o_t a, inout bit<16> b, in bit<16> c) {{ apply {{ {helper} }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    register<bit<16>>(4) reg_a; register<bit<72>>(8) reg_b; register<bit<3>>(3) reg_c;
    counter(6, CounterType.packets_and_bytes) cnt; meter(3, MeterType.bytes) mtr;
    direct_counter(CounterType.packets) hits;
    Helper() helper;
    action nudge(in bit<16> by, inout bit<16> what) {{ what = what + by; meta.small = meta.small + 1; }}
    action act1(bit<{low}> a, bit<16> b) {{ meta.inner.x = b + (bit<16>)a; {actions[0]} }}
    action act2() {{ {actions[1]} }}
    action act3(bit<9> port) {{ std.egress_spec = port; }}
    table exact_table {{ key = {{ {keys[0][0]}: exact; hdr.h.isValid(): exact; }}
        actions = {{ act1; act2; act3; NoAction; }} default_action = act2(); counters = hits; size = 8;
        support_timeout = true; }}
    table lpm_table {{ key = {{ {keys[1][0]}: lpm; std.ingress_port: exact; }}
        actions = {{ act1; act3; NoAction; }} size = 8; }}
    table ternary_table {{ key = {{ {keys[2][0]}: ternary; hdr.o.kind: optional; }}
        actions = {{ act1; act2; act3; NoAction; }} default_action = NoAction(); size = 8; }}
    table range_table {{ key = {{ meta.inner.y: range; {keys[3][0]}: ternary; std.parser_error: exact; }}
        actions = {{ act2; act3; NoAction; }} size = 8; const entries = {{
            (1 .. 9, _, error.NoError): act2(); (_, _, error.PacketTooShort): act3(5); (_, _, _): act3(7); }} }}
    apply {{
        std.egress_spec = 1;
        {body}
    }}
}}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    apply {{
        {egress}
        hdr.s[0].v = hdr.s[0].v + (bit<8>)std.egress_rid;
        if (std.instance_type == 0 && std.egress_port == 3) {{ clone_preserving_field_list(CloneType.E2E, 2, 1); }}
        if (std.egress_port == 4) {{ mark_to_drop(std); }}
    }}
}}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{
    update_checksum(hdr.o.isValid(), {{ hdr.h, hdr.o.kind, hdr.s[0] }}, hdr.o.sum, HashAlgorithm.csum16);
    update_checksum_with_payload(hdr.s[1].isValid(), {{ hdr.s[1].v }}, hdr.s[1].kind, HashAlgorithm.xor16); }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

    def function(self) -> str:
        kept = self.readable, self.writable, self.locals
        self.readable = self.writable = [("a", 16, False), ("b", 8, False)]
        self.in_action = True
        first, second = self.assign_simple("r"), self.expr(16, False)
        self.in_action = False
        self.readable, self.writable, self.locals = kept
        return (
            f"bit<16> twist(in bit<16> a, in bit<8> b) {{ bit<16> r = a; {first} "
            f"if (a > 1000) {{ return r; }} return {second}; }}"
        )

    def assign_simple(self, name: str) -> str:
        kept = self.locals
        self.locals = [(name, 16, False)]
        text = f"{name} = {self.expr(16, False, 2)};"
        self.locals = kept
        return text

    def keyset(self, width: int, signed: bool) -> str:
        if signed:
            return self.literal(width, True)
        low, high = sorted((self.rng.getrandbits(width), self.rng.getrandbits(width)))
        a, b = f"{width}w{low}", f"{width}w{high}"
        return self.rng.choice((a, f"{a} &&& {b}", f"{a} .. {b}"))

    def packet(self) -> bytes:
        """A packet for it: of any length, its bytes often such that the parser goes on."""
        rng = self.rng
        head = rng.randbytes(-(-sum(w for _, w, _ in self.fields) // 8))
        kinds = (rng.choice((0x80, 0x81, 5, 0, 200)) for _ in range(rng.randint(0, 4)))
        body = b"".join(bytes((kind, rng.getrandbits(8))) for kind in kinds)
        packet = head + body + rng.randbytes(rng.choice((0, 1, 2, 5, 12, 40)))
        return packet[: rng.randint(0, len(packet))] if rng.random() < 0.15 else packet


class LaneProgram:
    """A row of equal sub-controls over neighbouring fields, as an aggregator has it, with a random body."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.width = rng.choice((8, 16, 32, 64))
        self.count = rng.randint(3, 21)
        self.size = rng.choice((4, 5, 16))
        self.names = ["element", "held", "other", f"(bit<{self.width}>)slot_use"]
        self.functions = ""

    def function(self) -> None:
        """A function of two values: nothing else can be read in it."""
        names, self.names = self.names, ["a", "b"]
        kind = f"bit<{self.width}>"
        start = self.value()
        self.names.append("c")
        branch = f"if ({self.comparison()}) {{ c = {self.value()}; }} else {{ c = {self.value()}; }}"
        body = f"{kind} c = {start}; {branch} return {self.value()};"
        self.functions += f"{kind} f{self.functions.count('return')}(in {kind} a, in {kind} b) {{ {body} }}\n"
        self.names = names

    def value(self, depth: int = 3) -> str:
        rng, width = self.rng, self.width
        if depth == 0 or rng.random() < 0.25:
            return rng.choice([*self.names, f"{width}w{rng.getrandbits(width)}"])
        kind = rng.randrange(12)
        a, b = self.value(depth - 1), self.value(depth - 1)
        if kind == 8:
            by = rng.choice([f"(bit<8>)({b})", b, str(rng.randint(0, width + 2))])
            return f"(({a}) {rng.choice(['<<', '>>'])} {by})"
        if kind == 9:
            signed = f"((int<{width}>)({a}) >> (bit<8>)({b}))"
            return f"(bit<{width}>)({signed})"
        if kind == 10:
            low = rng.randint(0, width - 1)
            high = rng.randint(low, width - 1)
            return f"(bit<{width}>)(({a})[{high}:{low}] ++ ({b})[{width - 1}:{rng.randint(1, width - 1)}])"
        if kind == 11 and self.functions:
            return f"f{rng.randrange(self.functions.count('return'))}({a}, {b})"
        if kind < 3:
            return f"({a} {rng.choice(['+', '-', '*', '&', '|', '^'])} {b})"
        if kind == 3:
            op = rng.choice(["|+|", "|-|"])
            return f"({a} {op} {b})"
        if kind == 4:
            op = rng.choice(["|+|", "|-|"])
            return f"(bit<{width}>)((int<{width}>)({a}) {op} (int<{width}>)({b}))"
        if kind == 5:
            asked = self.condition if "slot_use" in self.names[-1] else self.comparison
            return f"({asked(depth - 1)} ? {a} : {b})"
        if kind == 6:
            return f"(~{a})"
        other = rng.choice([w for w in (8, 16, 32, 64) if w != width])
        return f"(bit<{width}>)((bit<{other}>)({a}))"

    def condition(self, depth: int = 1) -> str:
        rng = self.rng
        if rng.random() < 0.3:
            return f"slot_use {rng.choice(['==', '!=', '<'])} {rng.randint(0, 3)}"
        return self.comparison(depth)

    def comparison(self, depth: int = 1) -> str:
        rng = self.rng
        op = rng.choice(["==", "!=", "<", "<=", ">", ">="])
        if rng.random() < 0.4:
            return f"((int<{self.width}>){self.value(depth)} {op} (int<{self.width}>){self.value(depth)})"
        return f"({self.value(depth)} {op} {self.value(depth)})"

    def statement(self, depth: int = 0) -> str:
        rng = self.rng
        kind = rng.randrange(6)
        if kind < 2 or depth > 2:
            return f"{rng.choice(['element', 'held', 'other'])} = {self.value()};"
        if kind == 2:
            return "flag = 1;"
        text = f"if ({self.condition()}) {{ {self.statement(depth + 1)} }}"
        return text + (f" else {{ {self.statement(depth + 1)} }}" if rng.random() < 0.5 else "")

    def text(self) -> str:
        rng, w, n = self.rng, self.width, self.count
        for _ in range(rng.randrange(3)):
            self.function()
        body = " ".join(self.statement() for _ in range(rng.randint(1, 4)))
        second = rng.choice(
            [
                "",
                "aux.write(slot, other);",
                "aux.read(other, slot);",
                # Under conditions that are the same for all lanes.
                "if (slot_use == 1) { aux.write(slot, other); }",
                "if (slot_use[0:0] == 0 && slot_use != 2) { aux.read(other, slot); }"
                " else { aux.write(slot, element); }",
            ]
        )
        inner = " ".join(self.statement() for _ in range(rng.randrange(3)))
        applied = rng.choice(["", "inner.apply(other + 1, slot_use, element, flag);"])
        lanes = " ".join(f"bit<{w}> lane_{i};" for i in range(n))
        instances = " ".join(f"Lane() lane_{i};" for i in range(n))
        calls = " ".join(f"lane_{i}.apply(hdr.p.lane_{i}, hdr.h.slot, hdr.h.slot_use, flag);" for i in range(n))
        return f"""
#include <core.p4>
#include <v1model.p4>
header h_t {{ bit<32> slot; bit<8> slot_use; bit<8> flag; }}
header p_t {{ {lanes} }}
struct headers_t {{ h_t h; p_t p; }}
struct meta_t {{ }}
parser P(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    state start {{ packet.extract(hdr.h); packet.extract(hdr.p); transition accept; }} }}
control V(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
{self.functions}control Inner(in bit<{w}> held, in bit<8> slot_use, inout bit<{w}> element, inout bit<1> flag) {{
    bit<{w}> other = 3;
    apply {{ {inner.replace("held = ", "other = ")} }} }}
control Lane(inout bit<{w}> element, in bit<32> slot, in bit<8> slot_use, inout bit<1> flag) {{
    register<bit<{w}>>({self.size}) partial; register<bit<{w}>>({self.size}) aux;
    bit<{w}> other = {rng.randint(0, 9)};
    Inner() inner;
    apply {{ bit<{w}> held = 0; partial.read(held, slot); {second} {body} {applied} partial.write(slot, element); }} }}
control I(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{
    {instances}
    apply {{ bit<1> flag = 0; {calls} hdr.h.flag = (bit<8>)flag; std.egress_spec = 1; }} }}
control E(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t std) {{ apply {{ }} }}
control C(inout headers_t hdr, inout meta_t meta) {{ apply {{ }} }}
control D(packet_out packet, in headers_t hdr) {{ apply {{ packet.emit(hdr); }} }}
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""

    def packet(self) -> bytes:
        """Slots are mostly in range, lanes often at the ends of their range."""
        rng = self.rng
        head = bytes((0, 0, 0, rng.randrange(self.size + 1), rng.randrange(4), 9))
        ends = (0, 1, (1 << self.width) - 1, 1 << (self.width - 1), (1 << (self.width - 1)) - 1)
        lanes = (rng.choice((*ends, rng.getrandbits(self.width))) for _ in range(self.count))
        return head + b"".join(lane.to_bytes(self.width // 8) for lane in lanes)
