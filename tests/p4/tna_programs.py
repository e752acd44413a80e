"""Small TNA and T2NA programs for the front end's tests."""

from __future__ import annotations

from p4gen.errors import Diagnostic
from p4gen.p4.compile import Compiled, compile_text
from p4gen.p4.parse.source import P4Error

HEAD = """#include <core.p4>
#include <{arch}.p4>
header h_t {{ bit<8> a; bit<8> b; bit<16> c; bit<32> d; }}
struct headers {{ h_t h; }}
struct metadata {{ bit<16> x; bit<32> y; bit<32> y2; bool flag; }}
struct pair {{ bit<32> first; bit<32> second; }}
struct mixed {{ int<32> first; bit<32> second; }}
parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t ig_intr_md) {{
    state start {{
        pkt.extract(ig_intr_md);
        pkt.advance(PORT_METADATA_SIZE);
        pkt.extract(hdr.h);
        transition accept;
    }}
}}
control IgD(packet_out pkt, inout headers hdr, in metadata meta,
            in ingress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ pkt.emit(hdr); }} }}
parser EgP(packet_in pkt, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t eg_intr_md) {{
    state start {{ pkt.extract(eg_intr_md); pkt.extract(hdr.h); transition accept; }}
}}
control Eg(inout headers hdr, inout metadata meta, in egress_intrinsic_metadata_t eg_intr_md,
           in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
           inout egress_intrinsic_metadata_for_output_port_t oport) {{ apply {{}} }}
control EgD(packet_out pkt, inout headers hdr, in metadata meta,
            in egress_intrinsic_metadata_for_deparser_t dprsr) {{ apply {{ pkt.emit(hdr); }} }}
"""
TAIL = "\nPipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) pipe;\nSwitch(pipe) main;\n"
FIRST = HEAD.count("\n") + 1
"""The line on which the text given to ``program`` starts."""
PARAMS = """inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intr,
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
    inout ingress_intrinsic_metadata_for_tm_t tm"""

REGISTER = "Register<bit<32>, bit<16>>(1024, 7) reg;"
ACTION = f"""{REGISTER}
RegisterAction<bit<32>, bit<16>, bit<32>>(reg) add = {{
    void apply(inout bit<32> value, out bit<32> rv) {{ value = value |+| hdr.h.d; rv = value; }}
}};"""
"""A register and an action on it, for the declarations of an ingress."""


def program(text: str, arch: str = "tna", tail: str = TAIL) -> str:
    """A whole program; ``text`` declares control ``Ig``, the ingress."""
    return HEAD.format(arch=arch) + text + tail


def ingress(body: str = "", local: str = "", arch: str = "tna") -> str:
    """A whole program whose ingress has these declarations (on line ``LOCAL``) and this body (after their last)."""
    return program(f"control Ig({PARAMS}) {{\n{local}\napply {{ {body} }}\n}}", arch)


LOCAL = FIRST + PARAMS.count("\n") + 1


def compiled(text: str, *defines: str) -> Compiled:
    """``text``, compiled."""
    return compile_text(text, "t.p4", defines)


def errors(text: str, *defines: str) -> list[Diagnostic]:
    """The errors that ``text`` has; none where it compiles."""
    try:
        compiled(text, *defines)
    except P4Error as problem:
        return [d for d in problem.diagnostics if d.severity == "error"]
    return []
