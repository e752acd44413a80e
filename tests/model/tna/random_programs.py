"""Random programs for Tofino: parts of the externs' pools, put together."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from .programs import TAIL, text

FIELDS = {"hdr.h.a": 8, "hdr.h.b": 8, "hdr.h.c": 16, "hdr.h.d": 32, "meta.x": 16, "meta.y": 32}
WORDS = ("bit<1>", "bit<8>", "bit<16>", "bit<32>", "int<8>", "int<16>", "int<32>", "bit<64>")
NAMED = ("IDENTITY", "RANDOM", "XOR8", "XOR16", "XOR32", "CRC8", "CRC16", "CRC32", "CRC64")


def _cast(of: str, field: str) -> str:
    """A field as a number of a type."""
    width = of.partition("<")[2][:-1]
    return f"(bit<{width}>){field}" if of.startswith("bit") else f"(int<{width}>)(bit<{width}>){field}"


class TofinoProgram:
    """A program with a few of all externs, and packets for it."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.arch = rng.choice(("tna", "t2na"))
        self.count = 0
        self.locals: list[str] = []
        self.body: list[str] = []
        self.deparser: list[str] = []
        self.deparser_locals: list[str] = []

    # --- pieces ---

    def _name(self, kind: str) -> str:
        self.count += 1
        return f"{kind}{self.count}"

    def _field(self) -> str:
        return self.rng.choice(list(FIELDS))

    def _mix(self, value: str) -> str:
        """A statement by which a number of 32 bits changes a field."""
        field = self._field()
        return f"{field} = {field} {self.rng.choice('^+')} (bit<{FIELDS[field]}>)({value});"

    def _condition(self) -> str:
        return self.rng.choice(
            ("hdr.h.a[0:0] == 1", "hdr.h.b > 100", "hdr.h.c[3:0] < 4", "meta.x == 0", "hdr.h.d[7:0] != hdr.h.a", "true")
        )

    def _words(self, of: str, value: str, depth: int = 2) -> str:
        """Statements of an ``apply``."""
        other, rng = _cast(of, self._field()), self.rng
        if depth and rng.random() < 0.5:
            compared = rng.choice(("==", "!=", "<", "<=", ">", ">="))
            condition = f"{value} {compared} {other}" if of != "bit<1>" else f"{value} == {other}"
            otherwise = f" else {{ {self._words(of, value, depth - 1)} }}" if rng.random() < 0.5 else ""
            return f"if ({condition}) {{ {self._words(of, value, depth - 1)} }}{otherwise}"
        operator = rng.choice(("+", "-", "&", "|", "^", "|+|", "|-|"))
        return rng.choice((f"{value} = {value} {operator} {other};", f"{value} = {other};", f"rv = (bit<32>)({value}"
                           f"{' == ' + other + ' ? 32w1 : 32w0' if rng.random() < 0.3 else ''});"
                           if of.startswith("bit") else f"rv = (bit<32>)(int<32>){value};"))  # fmt: skip

    def _register(self, *, direct: bool = False) -> tuple[str, str]:
        """A register with an action: the action's name, and the declarations."""
        rng, of = self.rng, self.rng.choice((*WORDS, "pair"))
        register, action = self._name("reg"), self._name("act")
        parts = ("value.first", "value.second") if of == "pair" else ("value",)
        statements = " ".join(self._words("bit<32>" if of == "pair" else of, rng.choice(parts)) for _ in range(3))
        initial = rng.choice((None, "{1, 0xFFFFFFFF}" if of == "pair" else "1"))
        if direct:
            made = f"DirectRegister<{of}>({initial or ''}) {register}; DirectRegisterAction<{of}, bit<32>>({register})"
        else:
            sizes = f"{rng.choice((1, 3, 16))}" + (f", {initial}" if initial else "")
            made = f"Register<{of}, bit<16>>({sizes}) {register}; RegisterAction<{of}, bit<16>, bit<32>>({register})"
        if rng.random() < 0.3:
            statements += f" rv = this.predicate({parts[0]} == {_cast('bit<32>' if of == 'pair' else of, 'hdr.h.d')},"
            statements += " hdr.h.a > hdr.h.b);"
        if rng.random() < 0.3:
            parameter = self._name("par")
            self.locals.append(f"RegisterParam<bit<32>>({rng.getrandbits(32)}) {parameter};")
            statements += f" rv = rv ^ {parameter}.read();"
        declared = f"{made} {action} = {{ void apply(inout {of} value, out bit<32> rv) {{ rv = 7; {statements} }} }};"
        return action, declared

    # --- pools ---

    def registers(self) -> None:
        """Registers and their actions, with indices that may be out of range."""
        action, declared = self._register()
        self.locals.append(declared)
        index = self.rng.choice(("0", "hdr.h.c", "(bit<16>)hdr.h.a[1:0]", "meta.x & 15"))
        call = f"{action}.execute({index})" if self.rng.random() < 0.8 else f"{action}.execute_log()"
        self.body.append(f"if ({self._condition()}) {{ {self._mix(call)} }}")

    def plain_registers(self) -> None:
        """Reads and writes."""
        register, of = self._name("reg"), self.rng.choice(("bit<32>", "bit<8>"))
        self.locals.append(f"Register<{of}, bit<16>>(4) {register};")
        self.body.append(self._mix(f"(bit<32>){register}.read(hdr.h.c & 7)"))
        self.body.append(f"{register}.write((bit<16>)hdr.h.b[1:0], {_cast(of, self._field())});")

    def several_results(self) -> None:
        """Actions with up to four results, and extremes of parts, on Tofino 2."""
        if self.arch != "t2na":
            return
        register, action, rng = self._name("reg"), self._name("act"), self.rng
        number = rng.choice((2, 3, 4))
        types = ", ".join(["bit<32>"] * number)
        outs = ", ".join(f"out bit<32> r{i}" for i in range(1, number + 1))
        least = rng.choice(("min8", "max8", "min16", "max16"))
        mask = rng.choice(("0b1011", "0b0110", "0"))
        self.locals.append(
            f"Register<pair, bit<16>>(4, {{7, 9}}) {register};"
            f" RegisterAction{number}<pair, bit<16>, {types}>({register}) {action} = {{"
            f" void apply(inout pair value, {outs}) {{ r1 = value.first; r{number} = value.second ^ 5;"
            f" value.first = value.second + hdr.h.d; value.second = (bit<32>)this.{least}(hdr.h.d, {mask}); }} }};"
        )
        results = [self._name("res") for _ in range(number - 1)]
        self.body += [f"bit<32> {name};" for name in results]
        self.body.append(self._mix(f"{action}.execute((bit<16>)hdr.h.a[2:0], {', '.join(results)})"))
        self.body += [self._mix(name) for name in results]

    def hashes(self) -> None:
        """All algorithms, over whole and partial bytes."""
        rng, name, width = self.rng, self._name("hash"), self.rng.choice((1, 7, 8, 16, 20, 32, 52, 64))
        if rng.random() < 0.5:
            made = f"Hash<bit<{width}>>(HashAlgorithm_t.{rng.choice(NAMED)}) {name};"
        else:
            polynomial, size = self._name("poly"), rng.choice((5, 8, 10, 16, 24, 32, 64))
            flags = ", ".join(rng.choice(("true", "false")) for _ in range(3))
            numbers = [rng.getrandbits(size) | 1, rng.getrandbits(size), rng.getrandbits(size)]
            made = f"CRCPolynomial<bit<{size}>>({size}w{numbers[0]}, {flags}, {numbers[1]}, {numbers[2]}) {polynomial};"
            made += f" Hash<bit<{width}>>(HashAlgorithm_t.CUSTOM, {polynomial}) {name};"
        self.locals.append(made)
        pool = [*FIELDS, "hdr.h.d[16:0]", "hdr.h.c[10:3]", "hdr.tag", "hdr.h", "5w9"]
        data = ", ".join(rng.sample(pool, rng.randint(1, 4)))
        self.body.append(self._mix(f"(bit<32>)((bit<64>){name}.get({{ {data} }}) >> {rng.choice((0, 3))})"))

    def counters(self) -> None:
        """Counters and meters."""
        name, rng = self._name("cnt"), self.rng
        less = rng.choice(("", ", 3", ", (bit<32>)hdr.h.a"))
        self.locals.append(f"Counter<bit<32>, bit<8>>(4, CounterType_t.PACKETS_AND_BYTES) {name};")
        self.body.append(f"if ({self._condition()}) {{ {name}.count(hdr.h.a & 7{less}); }}")
        meter, kind = self._name("meter"), rng.choice(("PACKETS", "BYTES"))
        colour = rng.choice(("", ", MeterColor_t.YELLOW, (bit<32>)hdr.h.b"))
        self.locals.append(f"Meter<bit<8>>(2, MeterType_t.{kind}) {meter};")
        self.body.append(self._mix(f"(bit<32>){meter}.execute(hdr.h.b & 3{colour})"))

    def arithmetic(self) -> None:
        """Random numbers and functions of values."""
        name, rng = self._name("rand"), self.rng
        self.locals.append(f"Random<bit<{(width := rng.choice((3, 32, 40)))}>>() {name};")
        self.body.append(self._mix(f"(bit<32>)(bit<64>)(bit<{width}>){name}.get()"))
        self.body.append(self._mix(f"{rng.choice(('min', 'max'))}(hdr.h.d, (bit<32>)meta.x)"))
        self.body.append("funnel_shift_right(hdr.h.d, hdr.h.d, meta.y, 5);")
        self.body.append(self._mix("sizeInBytes(hdr.h)"))

    def direct(self) -> None:
        """A table with everything direct."""
        rng, table = self.rng, self._name("tab")
        action, declared = self._register(direct=True)
        register = declared.split(";")[0].split()[-1]
        counter, meter = self._name("dcnt"), self._name("dmet")
        kind = rng.choice(("exact", "ternary", "lpm"))
        self.locals.append(
            f"{declared} DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) {counter};"
            f" DirectMeter(MeterType_t.{rng.choice(('PACKETS', 'BYTES'))}) {meter};"
            f" action {table}_go(bit<32> n) {{ {self._mix(f'{action}.execute() ^ n')} {counter}.count(); }}"
            f" action {table}_mark() {{ {self._mix(f'(bit<32>){meter}.execute()')} {counter}.count(2); }}"
            f" table {table} {{ key = {{ hdr.h.a : {kind}; }} actions = {{ {table}_go; {table}_mark; }}"
            f" registers = {register}; counters = {counter}; meters = {meter}; size = 8;"
            f" default_action = {table}_go(3); }}"
        )
        self.body.append(f"{table}.apply();")

    def tables(self) -> None:
        """Tables whose entries are part of the program, and others."""
        rng, table = self.rng, self._name("tab")
        self.locals.append(f"action {table}_set(bit<16> n) {{ meta.x = n; }} action {table}_b() {{ hdr.h.b = 1; }}")
        kinds, number = ("ternary", "range", "exact"), rng.randint(1, 9)
        first, second = (rng.choice(kinds), "ternary") if rng.random() < 0.6 else ("exact", "exact")

        def key(kind: str, width: int) -> str:
            low, high = sorted(rng.getrandbits(width) for _ in range(2))
            if kind == "exact":
                return f"{rng.choice((low, rng.randrange(4)))}"
            return rng.choice(("_", f"{low}", f"{low} &&& {high}" if kind == "ternary" else f"{low}..{high}"))

        entries, seen = [], set()
        for i in range(number):
            made = f"({key(first, 8)}, {key(second, 8)})"
            if made not in seen:
                entries.append(f"{made} : {rng.choice((f'{table}_set({i})', f'{table}_b()'))};")
            seen.add(made)
        self.locals.append(
            f"table {table} {{ key = {{ hdr.h.a : {first}; hdr.h.b : {second}; }}"
            f" actions = {{ {table}_set; {table}_b; }} default_action = {table}_set(9);"
            f" const entries = {{ {' '.join(entries)} }} size = 16; }}"
        )
        self.body.append(f"if ({table}.apply().hit) {{ meta.y = meta.y + 1; }}")

    def traffic(self) -> None:
        """Where packets go."""
        rng = self.rng
        self.body.append(f"if ({self._condition()}) {{ tm.ucast_egress_port = (bit<9>)hdr.h.b[2:0]; }}")
        for statement in (
            "tm.mcast_grp_a = (bit<16>)hdr.h.a[1:0];", "tm.mcast_grp_b = 2;", "tm.copy_to_cpu = hdr.h.c[0:0];",
            "tm.bypass_egress = hdr.h.c[1:1];", "tm.level1_exclusion_id = (bit<16>)hdr.h.b[1:0];",
            "tm.rid = (bit<16>)hdr.h.c[1:0]; tm.level2_exclusion_id = (bit<9>)hdr.h.a[0:0];",
            "dprsr.drop_ctl = hdr.h.a[4:2];", "invalidate(tm.ucast_egress_port);",
            "if (is_validated(tm.mcast_grp_a)) { hdr.h.a = 3; }",
            "if (intr.ingress_port < 6) { tm.ucast_egress_port = 68; }", "tm.qid = 3; tm.ingress_cos = 2;",
        ):  # fmt: skip
            if rng.random() < 0.3:
                self.body.append(f"if ({self._condition()}) {{ {statement} }}")

    def requests(self) -> None:
        """Mirrors, resubmission and digests."""
        mirror, again, digest = self._name("mir"), self._name("sub"), self._name("dig")
        self.deparser_locals.append(f"Mirror(1) {mirror}; Resubmit(1) {again};")
        self.deparser_locals.append(f"Digest<tuple<bit<8>, bit<16>>>(2) {digest};")
        self.body.append(
            "meta.session = 1; dprsr.mirror_type = (MirrorType_t)hdr.h.c[2:0]; dprsr.resubmit_type = hdr.h.b[2:0];"
        )
        self.body.append("dprsr.digest_type = hdr.h.a[2:0]; if (intr.resubmit_flag == 1) { hdr.h.d = meta.y; }")
        self.deparser.append(f"{mirror}.emit<tag_t>(meta.session, {{0xEE, hdr.h.a, hdr.h.c, 3}});")
        self.deparser.append(f"{again}.emit<tag_t>({{1, hdr.h.b, 3, hdr.h.d}});")
        self.deparser.append(f"{digest}.pack({{hdr.h.a, meta.x}});")

    # --- the whole ---

    def _parsers(self) -> tuple[str, str]:
        """Checksums, parser counters, value sets, port metadata, and an egress that sees what there is."""
        rng = self.rng
        states = rng.choice((
            "pkt.extract(hdr.h); sum.add(hdr.h); sum.subtract({hdr.h.c}); meta.x = sum.get(); meta.flag = sum.verify();"
            " transition accept;",
            "pkt.extract(hdr.h); sum.add({hdr.h.d, hdr.h.a, hdr.h.b}); sum.subtract_all_and_deposit(meta.x);"
            " transition select(hdr.h.a[0:0]) { 1: more; default: accept; }",
            "pkt.extract(hdr.h); cnt.set(hdr.h.b[1:0] ++ 6w2); transition loop;",
            "pkt.extract(hdr.h); transition select(hdr.h.a) { known: more; 0..9: accept; 250: reject;"
            " 3 &&& 3: accept; default: more; }",
            "pkt.extract(hdr.h); verify(hdr.h.a != 7, error.CounterRange); transition accept;",
        ))  # fmt: skip
        beside = rng.choice(("pkt.advance(PORT_METADATA_SIZE);",
                             "pair p = port_metadata_unpack<pair>(pkt); meta.y = p.second;"))  # fmt: skip
        declared = "Checksum() sum; ParserCounter() cnt; value_set<bit<8>>(4) known;"
        first = f"""parser IgP(packet_in pkt, out headers hdr, out metadata meta,
    out ingress_intrinsic_metadata_t intr) {{
    {declared}
    state start {{ pkt.extract(intr); {beside} {states} }}
    state more {{ pkt.extract(hdr.tag); transition accept; }}
    state loop {{ cnt.decrement(1); meta.y = meta.y + 1;
        transition select(cnt.is_zero(), cnt.is_negative()) {{ (false, false): loop; default: accept; }} }}
}}"""
        second = """parser EgP(packet_in pkt, out headers hdr, out metadata meta,
    out egress_intrinsic_metadata_t eg_intr) {
    state start { pkt.extract(eg_intr); transition select(pkt.lookahead<bit<8>>()) { 0xEE: tagged; default: plain; } }
    state tagged { pkt.extract(hdr.tag); transition plain; }
    state plain { pkt.extract(hdr.h); transition accept; }
}"""
        return first, second

    def source(self) -> str:
        """The program."""
        pools: tuple[Callable[[], None], ...] = (
            self.registers, self.registers, self.plain_registers, self.several_results, self.hashes, self.hashes,
            self.counters, self.arithmetic, self.direct, self.tables, self.tables,
        )  # fmt: skip
        for pool in self.rng.sample(pools, 6):
            pool()
        self.traffic()
        if self.rng.random() < 0.6:
            self.requests()
        first, second = self._parsers()
        emit = "hdr.h.c = up.update({hdr.h.a, hdr.h.b, hdr.h.d, meta.x}, hdr.h.a == 0); " * (self.rng.random() < 0.5)
        return text(
            " ".join(self.body), " ".join(self.locals), arch=self.arch, ig_parser=first, eg_parser=second,
            deparser=f"{' '.join(self.deparser)} {emit} pkt.emit(hdr);",
            deparser_local=f"Checksum() up; {' '.join(self.deparser_locals)}",
            egress="hdr.h.b = hdr.h.b + (bit<8>)intr.egress_rid + (bit<8>)intr.egress_rid_first;"
                   " hdr.h.c = hdr.h.c ^ intr.pkt_length; if (hdr.h.a == 5) { dprsr.drop_ctl = 1; }"
                   " total.count(0); hdr.h.d = hdr.h.d + seen.execute(0);",
            egress_local="Counter<bit<32>, bit<8>>(1, CounterType_t.BYTES) total; Register<bit<32>, bit<8>>(1) numbers;"
                         " RegisterAction<bit<32>, bit<8>, bit<32>>(numbers) seen = {"
                         " void apply(inout bit<32> value, out bit<32> rv) { value = value + 1; rv = value; } };",
            tail=TAIL,
        )  # fmt: skip

    def packet(self) -> tuple[int, bytes]:
        """A port in any of the pipes, and a packet that may be too short."""
        rng = self.rng
        front = bytes(rng.choice((0, 1, 2, 3, 5, 7, 130, rng.randrange(256))) for _ in range(4))
        data = front + rng.randbytes(4) + rng.choice((b"", rng.randbytes(rng.randrange(40)), b"\xee" + bytes(7)))
        return rng.choice((0, 1, 4, 129, 260, 385)), data[: rng.choice((5, 99, 99, 99, 99))]
