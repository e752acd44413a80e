"""Small programs for Tofino, whose ports, headers and blocks a test completes."""

from __future__ import annotations

from p4gen.chips.tna.jit.engine import TofinoEngine
from p4gen.chips.tna.machine import TofinoModel
from p4gen.choices import EngineName
from p4gen.model import Model
from p4gen.model.state import Clock
from p4gen.p4.compile import compile_text

ENGINE: EngineName = "interp"
"""What ``switch`` runs programs on; ``conftest`` sets it."""

HEAD = """#include <core.p4>
#include <{arch}.p4>
header h_t {{ bit<8> a; bit<8> b; bit<16> c; bit<32> d; }}
header tag_t {{ bit<8> kind; bit<8> e; bit<16> f; bit<32> g; }}
struct headers {{ tag_t tag; h_t h; }}
struct metadata {{ bit<16> x; bit<32> y; bool flag; tag_t tag; MirrorId_t session; }}
struct pair {{ bit<32> first; bit<32> second; }}
"""
IG_PARSER = """parser IgP(packet_in pkt, out headers hdr, out metadata meta, out ingress_intrinsic_metadata_t intr) {
    state start {
        pkt.extract(intr); pkt.advance(PORT_METADATA_SIZE); pkt.extract(hdr.h); transition accept;
    }
}"""
IG_DEPARSER = "pkt.emit(hdr);"
EG_PARSER = """parser EgP(packet_in pkt, out headers hdr, out metadata meta, out egress_intrinsic_metadata_t eg_intr) {
    state start { pkt.extract(eg_intr); pkt.extract(hdr.h); transition accept; }
}"""
IG = """control Ig(inout headers hdr, inout metadata meta, in ingress_intrinsic_metadata_t intr,
    in ingress_intrinsic_metadata_from_parser_t prsr, inout ingress_intrinsic_metadata_for_deparser_t dprsr,
    inout ingress_intrinsic_metadata_for_tm_t tm) {{ {local} apply {{ {body} }} }}
control IgD(packet_out pkt, inout headers hdr, in metadata meta,
    in ingress_intrinsic_metadata_for_deparser_t dprsr) {{ {deparser_local} apply {{ {deparser} }} }}
"""
EG = """control Eg(inout headers hdr, inout metadata meta, in egress_intrinsic_metadata_t intr,
    in egress_intrinsic_metadata_from_parser_t prsr, inout egress_intrinsic_metadata_for_deparser_t dprsr,
    inout egress_intrinsic_metadata_for_output_port_t oport) {{ {local} apply {{ {body} }} }}
control EgD(packet_out pkt, inout headers hdr, in metadata meta,
    in egress_intrinsic_metadata_for_deparser_t dprsr) {{ {deparser_local} apply {{ {deparser} }} }}
"""
TAIL = "Pipeline(IgP(), Ig(), IgD(), EgP(), Eg(), EgD()) pipe;\nSwitch(pipe) main;\n"


def text(
    body: str,
    local: str = "",
    *,
    arch: str = "tna",
    ig_parser: str = IG_PARSER,
    eg_parser: str = EG_PARSER,
    deparser: str = IG_DEPARSER,
    deparser_local: str = "",
    egress: str = "",
    egress_local: str = "",
    egress_deparser: str = "pkt.emit(hdr);",
    egress_deparser_local: str = "",
    tail: str = TAIL,
) -> str:
    """A whole program with these parts of ingress and egress."""
    ingress = IG.format(local=local, body=body, deparser_local=deparser_local, deparser=deparser)
    out = EG.format(local=egress_local, body=egress, deparser_local=egress_deparser_local, deparser=egress_deparser)
    return "\n".join((HEAD.format(arch=arch), ig_parser, eg_parser, ingress, out, tail))


def switch(source: str, *defines: str, clock: Clock | None = None, seed: int = 0) -> Model:
    """A switch that runs a program."""
    program = compile_text(source, "t.p4", defines).program
    return Model(program, clock=clock, seed=seed, engine=ENGINE, cache="")


def machine(model: Model) -> TofinoModel | TofinoEngine:
    """The part of it that only Tofino has."""
    assert isinstance(model.machine, TofinoModel | TofinoEngine)
    return model.machine


def frame(a: int = 0, b: int = 0, c: int = 0, d: int = 0, rest: bytes = b"rest") -> bytes:
    """A packet with the header ``h_t``."""
    return bytes((a, b)) + c.to_bytes(2) + d.to_bytes(4) + rest
