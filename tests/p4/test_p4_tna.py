"""TNA and T2NA: what their programs are made of, and how the IR has it."""

from __future__ import annotations

import pytest
from tna_programs import ACTION, PARAMS, REGISTER, TAIL, compiled, errors, ingress, program

from p4gen.arch import architecture, of_package
from p4gen.chips.tna import Tofino
from p4gen.p4 import ir
from p4gen.p4.parse import ast
from p4gen.p4.parse.parser import parse
from p4gen.p4.parse.preprocess import preprocess
from p4gen.p4.parse.source import Reporter
from p4gen.p4.types import width_of
from p4gen.p4.walk import used_by, walk


def instance(text: str, name: str) -> ir.ExternInstance:
    return compiled(text).program.extern(name)


# --- registers -----------------------------------------------------------------------------------


def test_a_register_action_knows_its_register_and_its_body() -> None:
    program = compiled(ingress("meta.y = add.execute(meta.x);", ACTION)).program
    action = program.extern("add")
    register = action.arguments["reg"]
    assert isinstance(register, ir.ExternInstance)
    assert register is program.extern("reg")
    assert dict(register.arguments) == {"size": 1024, "initial_value": 7}
    assert register.args == (1024, 7)
    apply = action.methods["apply"]
    assert apply.name == "Ig.add.apply"
    assert [(p.direction, str(p.variable.type)) for p in apply.params] == [("inout", "bit<32>"), ("out", "bit<32>")]
    block = program.blocks["pipe0.ingress"]
    assert isinstance(block, ir.Control)
    calls = [n for n in walk(block.body) if isinstance(n, ir.ExternCall)]
    assert [(c.instance, c.method, str(c.type)) for c in calls] == [(action, "execute", "bit<32>")]
    assert apply in used_by(block).functions
    # The body reads the control's own headers.
    (headers,) = (p.variable for p in block.params[:1])
    assert any(isinstance(n, ir.Var) and n.variable is headers for n in walk(apply.body))


def test_optional_parameters_of_an_implementation_may_be_left_out() -> None:
    local = f"""{REGISTER}
    RegisterAction<_, bit<16>, bit<32>>(reg) set = {{ void apply(inout bit<32> value) {{ value = 0; }} }};"""
    found = instance(ingress("set.execute(1);", local), "set")
    assert len(found.methods["apply"].params) == 1


def test_this_is_the_instance_itself() -> None:
    local = f"""{REGISTER}
    RegisterAction<bit<32>, bit<16>, bit<4>>(reg) ask = {{
        void apply(inout bit<32> value, out bit<4> rv) {{ rv = this.predicate(value == 0, value > 5); }}
    }};"""
    found = instance(ingress("hdr.h.a = (bit<8>)ask.execute(0);", local), "ask")
    (call,) = (n for n in walk(found.methods["apply"].body) if isinstance(n, ir.ExternCall))
    assert call.instance is found
    assert call.method == "predicate"
    assert len(call.args) == 2


def test_parameters_and_math_units_are_used_in_bodies() -> None:
    local = f"""{REGISTER} RegisterParam<bit<32>>(5) limit; MathUnit<bit<32>>(MathOp_t.MUL, 1, 8) eighth;
    MathUnit<bit<32>>(true, 0, 9, {{15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0}}) table_;
    RegisterAction<bit<32>, bit<16>, bit<32>>(reg) use = {{
        void apply(inout bit<32> value, out bit<32> rv) {{ value = eighth.execute(hdr.h.d); rv = limit.read(); }}
    }};"""
    text = ingress("meta.y = use.execute(1);", local)
    assert dict(instance(text, "eighth").arguments) == {"op": "MUL", "A": 1, "B": 8}
    assert instance(text, "eighth").args == ("MUL", 1, 8)
    assert instance(text, "table_").arguments["data"] == tuple(range(15, -1, -1))


def test_pairs_and_direct_registers() -> None:
    local = """Register<pair, bit<16>>(16, {1, 2}) pairs;
    RegisterAction<pair, bit<16>, bit<32>>(pairs) swap = {
        void apply(inout pair value, out bit<32> rv) { rv = value.first; value.first = value.second; }
    };
    DirectRegister<bit<8>>() own; DirectCounter<bit<32>>(CounterType_t.PACKETS_AND_BYTES) hits;
    DirectMeter(MeterType_t.BYTES) rate; DirectLpf<bit<8>>() low;
    DirectRegisterAction<bit<8>, bit<8>>(own) next = { void apply(inout bit<8> value, out bit<8> rv) { rv = value; } };
    action act() { hdr.h.a = next.execute(); hits.count(); hdr.h.b = rate.execute(color = MeterColor_t.GREEN); }
    action skim() { hdr.h.a = low.execute(hdr.h.b); }
    table t { key = { hdr.h.a : exact; } actions = { act; } counters = hits; meters = rate; registers = own; }
    table u { key = { hdr.h.a : range; } actions = { skim; } filters = low; idle_timeout = true; size = 5; }"""
    program = compiled(ingress("meta.y = swap.execute(0); t.apply(); u.apply();", local)).program
    assert program.extern("pairs").arguments["initial_value"] == (1, 2)
    assert [d.extern for d in program.table("t").direct] == ["DirectCounter", "DirectMeter", "DirectRegister"]
    assert [d.extern for d in program.table("u").direct] == ["DirectLpf"]
    assert program.table("u").properties["idle_timeout"] is True
    assert isinstance(program.extern("next").arguments["reg"], ir.ExternInstance)


OVERFLOW = "'overflow' has 5 parameters, not 4"


def test_t2na_actions_have_up_to_four_results() -> None:
    local = f"""{REGISTER}
    RegisterAction4<bit<32>, bit<16>, bit<32>, bit<8>, bit<16>, bit<1>>(reg) four = {{
        void apply(inout bit<32> value, out bit<32> rv1, out bit<8> rv2, out bit<16> rv3, out bit<1> rv4) {{
            rv1 = value; rv2 = this.min8(value, 0xf, hdr.h.a[3:0]);
            rv3 = this.predicate<bit<16>>(value == 1); rv4 = 0; }}
        void overflow(out bit<32> rv1, out bit<8> rv2, out bit<16> rv3, out bit<1> rv4) {{ }}
    }};"""
    assert [d.message for d in errors(ingress("", local, "t2na"))] == [OVERFLOW]
    local = local.replace("void overflow(out", "void overflow(inout bit<32> value, out")
    text = ingress("bit<1> one; meta.y = four.execute(0, hdr.h.b, hdr.h.c, one);", local, "t2na")
    found = instance(text, "four")
    assert list(found.methods) == ["apply", "overflow"]


# --- hashes, profiles, selectors -----------------------------------------------------------------


def test_instances_are_arguments_of_constructors() -> None:
    local = """CRCPolynomial<bit<32>>(32w0x04C11DB7, true, false, false, 32w0, 32w0xFFFFFFFF) poly;
    Hash<bit<32>>(HashAlgorithm_t.CUSTOM, poly) sum; Hash<bit<14>>(HashAlgorithm_t.CRC16) choice;
    ActionProfile(64) members;
    ActionSelector(members, choice, SelectorMode_t.FAIR, 8, 16) groups;
    ActionSelector(action_profile = members, hash = Hash<bit<8>>(HashAlgorithm_t.RANDOM),
                   mode = SelectorMode_t.RESILIENT, max_group_size = 1, num_groups = 2) others;
    action act(PortId_t port) { tm.ucast_egress_port = port; }
    table t { key = { hdr.h.a : exact; hdr.h.b : selector; } actions = { act; } implementation = groups; }"""
    program = compiled(ingress("meta.y = sum.get({hdr.h.a, hdr.h.c}); t.apply();", local)).program
    poly, groups = program.extern("poly"), program.extern("groups")
    assert program.extern("sum").arguments == {"algo": "CUSTOM", "poly": poly}
    assert poly.arguments["reversed"] is True
    assert groups.arguments["action_profile"] is program.extern("members")
    assert groups.arguments["hash"] is program.extern("choice")
    assert groups.args == ("FAIR", 8, 16)
    assert program.table("t").implementation is groups
    made = program.extern("others").arguments["hash"]
    assert isinstance(made, ir.ExternInstance)
    assert (made.name, made.args) == ("Ig.others.hash", ("RANDOM",))


def test_algorithmic_tables() -> None:
    local = """Alpm(number_partitions = 1024, subtrees_per_partition = 2) algo; Atcam(8) parts;
    Hash<bit<10>>(HashAlgorithm_t.CRC32) digest; action act() { }
    table t { key = { hdr.h.d : lpm; } actions = { act; } alpm = algo; requires_versioning = false; }
    table u { key = { hdr.h.c : atcam_partition_index; hdr.h.d : ternary; } actions = { act; } implementation = parts; }
    table v { key = { hdr.h.d : exact; } actions = { act; } proxy_hash = digest; }"""
    program = compiled(ingress("t.apply(); u.apply(); v.apply();", local)).program
    alpm = program.table("t").properties["alpm"]
    assert isinstance(alpm, ir.ExternInstance)
    assert dict(alpm.arguments) == {"number_partitions": 1024, "subtrees_per_partition": 2}
    assert program.table("t").properties["requires_versioning"] is False
    assert program.table("u").implementation is program.extern("parts")
    assert program.table("v").properties["proxy_hash"] is program.extern("digest")


# --- parsers, deparsers, packages ----------------------------------------------------------------

PARSER = """parser Counted(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
    Checksum() sum; ParserCounter() left; ParserPriority() urgent; value_set<bit<8>>(4) known;
    state start {
        pkt.extract(intr);
        meta = port_metadata_unpack<metadata>(pkt);
        transition more;
    }
    state more {
        pkt.extract(hdr.h); sum.add(hdr.h); sum.subtract({ hdr.h.a, hdr.h.b }); left.set(hdr.h.a);
        left.set(hdr.h.a, 15, 6, 3, -5); left.decrement(1); urgent.set(3);
        meta.flag = sum.verify();
        transition select(hdr.h.a, left.is_zero()) {
            (known, true) : accept; (_, false) : reject; (1 .. 5, _) : accept;
        }
    }
}
"""


def test_parsers_have_checksums_counters_and_value_sets() -> None:
    text = program(
        PARSER + f"control Ig({PARAMS}) {{ apply {{ }} }}",
        tail=TAIL.replace("IgP()", "Counted()"),
    )
    found = compiled(text).program
    assert [v.name for v in found.value_sets] == ["Counted.known"]
    calls = {c.method for c in used_by(found.blocks["pipe0.ingress_parser"]).calls}
    assert {"port_metadata_unpack", "add", "subtract", "set", "decrement", "is_zero", "verify"} <= calls


def test_deparsers_mirror_resubmit_and_digest() -> None:
    deparser = """control Out(packet_out pkt, inout headers hdr, in metadata meta,
        in ingress_intrinsic_metadata_for_deparser_t dprsr) {
        Mirror(1) mirror; Resubmit(2) again; Digest<pair>(3) news; Checksum() sum;
        apply {
            if (dprsr.mirror_type == 1) { mirror.emit<h_t>(5, hdr.h); }
            if (dprsr.resubmit_type == 2) { again.emit(hdr.h); }
            if (dprsr.digest_type == 3) { news.pack({ hdr.h.d, meta.y }); }
            hdr.h.c = sum.update({ hdr.h.a, hdr.h.b, hdr.h.d }, true);
            pkt.emit(hdr);
        }
    }
    """
    text = program(deparser + f"control Ig({PARAMS}) {{ apply {{ }} }}", tail=TAIL.replace("IgD()", "Out()"))
    found = compiled(text)
    assert not found.warnings
    assert [e.args for e in found.program.externs if e.extern in ("Mirror", "Resubmit", "Digest")] == [(1,), (2,), (3,)]


def test_blocks_take_as_many_parameters_as_they_need() -> None:
    text = program("control Ig(inout headers hdr, inout metadata meta) { apply { } }")
    found = compiled(text).program
    assert [len(b.params) for b in found.blocks.values()] == [4, 2, 4, 4, 6, 4]
    assert set(found.blocks) == {f"pipe0.{name}" for name in (
        "ingress_parser", "ingress", "ingress_deparser", "egress_parser", "egress", "egress_deparser")}  # fmt: skip


def test_t2na_needs_most_of_them() -> None:
    (problem,) = errors(program("control Ig(inout headers hdr, inout metadata meta) { apply { } }", "t2na"))
    assert problem.message == "control Ig has 2 parameters, control IngressT<IH, IM> has 7"


def test_pipes_have_names_and_blocks_of_their_own() -> None:
    local = "Counter<bit<32>, bit<8>>(16, CounterType_t.PACKETS) c;"
    tail = (
        "\nPipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) a;\nPipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) b;\n"
        "Switch(a, b, Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD())) main;\n"
    )
    text = program(f"control Ig({PARAMS}) {{ {local} apply {{ c.count(1); }} }}", tail=tail)
    found = compiled(text).program
    assert dict(found.pipes) == {"pipe0": "a", "pipe1": "b", "pipe2": "pipe2"}
    assert [e.name for e in found.externs] == ["a.Ig.c", "b.Ig.c", "pipe2.Ig.c"]
    assert len(found.blocks) == 18
    arch = of_package(found.package, found.arch)
    assert arch is not None
    assert arch.has_blocks(found.blocks)
    assert not arch.has_blocks([b for b in found.blocks if b != "pipe1.egress"])


def test_a_gress_may_have_several_parsers() -> None:
    tail = """
IngressParsers(IgP(), Counted()) ins;
EgressParsers(EgP()) outs;
MultiParserPipeline(ins, Ig(), IgD(), outs, Eg(), EgD()) pipe;
MultiParserSwitch(pipe) main;
"""
    found = compiled(program(PARSER + f"control Ig({PARAMS}) {{ apply {{ }} }}", tail=tail)).program
    assert [b.name for b in found.blocks.values()] == [
        "ins.prsr0", "ins.prsr1", "Ig", "IgD", "outs.prsr0", "Eg", "EgD"]  # fmt: skip
    assert "pipe0.ig_prsr.prsr1" in found.blocks
    assert [v.name for v in found.value_sets] == ["ins.prsr1.known"]
    arch = of_package(found.package, found.arch)
    assert arch is not None
    assert arch.name == "tna"
    assert arch.has_blocks(found.blocks)


def test_the_ghost_thread_of_t2na() -> None:
    ghost = "control Idle(in ghost_intrinsic_metadata_t gh) { apply { } }\n"
    tail = TAIL.replace("EgD())", "EgD(), Idle())")
    found = compiled(program(f"{ghost}control Ig({PARAMS}) {{ apply {{ }} }}", "t2na", tail)).program
    assert "pipe0.ghost" in found.blocks
    arch = of_package(found.package, found.arch)
    assert arch is not None
    assert arch.name == "t2na"
    assert arch.has_blocks(found.blocks)


def test_names_of_tables_that_are_never_applied_are_free() -> None:
    text = """control Sub(inout headers hdr)(bool wide) {
        action act() { }
        @name("t") table one { key = { hdr.h.a : exact; } actions = { act; } }
        @name("t") table two { key = { hdr.h.d : exact; } actions = { act; } }
        apply { if (wide) { two.apply(); } else { one.apply(); } }
    }
    """
    both = f"{text}control Ig({PARAMS}) {{ Sub(true) s; Sub(false) q; apply {{ s.apply(hdr); q.apply(hdr); }} }}"
    tables = compiled(program(both)).program.tables
    assert [(t.name, str(t.keys[0].expr.type)) for t in tables] == [
        ("Ig.s.t", "bit<32>"), ("Ig.q.t", "bit<8>")]  # fmt: skip
    twice = both.replace("two.apply(); } else", "two.apply(); } if (!hdr.h.isValid())")
    assert any("already the control-plane name of another table" in d.message for d in errors(program(twice)))


# --- targets -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "define", "queue", "mirror", "port_metadata"),
    [
        ("tna", "1", 5, 10, 64),
        ("tna", "2", 7, 8, 192),
        ("t2na", "2", 7, 8, 192),
        ("tna", "", 5, 10, 64),
        ("t2na", "", 7, 8, 192),
    ],
)
def test_the_chip_gives_the_widths(arch: str, define: str, queue: int, mirror: int, port_metadata: int) -> None:
    local = f"QueueId_t q; MirrorId_t m; bit<{port_metadata}> p;"
    body = f"q = 0; m = 0; p = 0; static_assert(PORT_METADATA_SIZE == {port_metadata}); tm.qid = q;"
    found = compiled(ingress(body, local, arch), *([f"__TARGET_TOFINO__={define}"] if define else [])).program
    block = found.blocks["pipe0.ingress"]
    assert isinstance(block, ir.Control)
    widths = [width_of(s.variable.type) for s in block.locals if isinstance(s, ir.Declare)]
    assert widths == [queue, mirror, port_metadata]
    assert found.arch == arch


def test_another_target_takes_the_place_of_bmv2() -> None:
    text = "#ifdef __TARGET_BMV2__\n#error BMv2\n#endif\n" + ingress()
    assert errors(text)[0].message == "#error BMv2"
    assert not errors(text, "__TARGET_TOFINO__=1")


def test_t2na_does_not_exist_on_tofino_1() -> None:
    (problem,) = errors(ingress(arch="t2na"), "__TARGET_TOFINO__=1")
    assert "T2NA needs __TARGET_TOFINO__ to be 2" in problem.message


# --- annotations ---------------------------------------------------------------------------------


def test_annotations_for_the_compiler_are_taken() -> None:
    text = (
        """@pa_container_size("ingress", "hdr.h.d", 32)
@pa_no_overlay("ingress", "meta.x") @pa_solitary("ingress", "hdr.h.a")
@pragma pa_atomic ingress meta.y
@flexible header bridge_t { @padding bit<7> pad; @flexible bit<9> port; }
"""
        + f"""control Ig({PARAMS}) {{
    @pragma stage 3
    @ways(4) @pack(2) @use_hash_action(1) @dynamic_table_key_masks(1)
    table t {{ key = {{ hdr.h.a : exact @name("a"); }} actions = {{ @defaultonly NoAction; }} }}
    @atomic @hidden action act() {{ }}
    apply {{ @in_hash {{ meta.x = hdr.h.c ^ 3; }} t.apply(); act(); }} }}"""
    )
    assert not compiled(program(text)).warnings


# --- the architecture's description --------------------------------------------------------------


@pytest.mark.parametrize("arch", ["tna", "t2na"])
def test_roles_are_the_parameters_of_the_header(arch: str) -> None:
    source = preprocess("t.p4", f"#include <{arch}.p4>\n")
    tree = parse(source, Reporter(source))
    declared = {
        decl.name.removesuffix("T").lower(): tuple(p.name for p in decl.params)
        for decl in tree.decls
        if isinstance(decl, ast.BlockType)
    }
    assert len(declared) == (6 if arch == "tna" else 7)
    for block, roles in Tofino.ROLES.items():
        if arch == "tna" and block == "ghost":
            continue
        assert declared[block.replace("_", "")] == tuple(r for r in roles if arch == "t2na" or r != "gh_intr_md")


@pytest.mark.parametrize("name", ["tna", "t2na"])
def test_statements_of_the_architecture_compile(name: str) -> None:
    """What templates will ask for, in a program for it."""
    arch = architecture(name)
    local = f"{arch.register('bit<32>', '16', 'words')} {arch.counter('4', 'packets')} bit<32> word;"
    body = " ".join((
        arch.read("words", "0", "word"), arch.write("words", "1", "word"), arch.count("packets", "2"),
        arch.send(arch.ingress_port), arch.send_back(), arch.multicast("5"),
        f"if ({arch.parser_failed}) {{ {arch.drop()} }}",
    ))  # fmt: skip
    ingress_ = f"control Ig(inout headers hdr, inout metadata meta, {arch.parameters('inout')}) {{ {local}"
    egress = f"control Out(inout headers hdr, inout metadata meta, {arch.parameters('inout', 'egress')}) {{"
    sub = f"control Sub(inout headers hdr, {arch.parameters('in', 'egress')})"
    rid = f"{{ apply {{ hdr.h.c = {arch.replication_id}; }} }}"
    send = f"Sub() s; apply {{ s.apply(hdr, {arch.arguments('in', 'egress')});"
    text = program(
        f"{sub} {rid}\n{ingress_} apply {{ {body} }} }}\n"
        f"{egress} {send} if ({arch.egress_port} == 3) {{ {arch.drop('egress')} }} }} }}",
        name,
        TAIL.replace("Eg()", "Out()"),
    )
    assert not compiled(text).warnings
