#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<48> d; bit<48> s; bit<16> t; }
struct headers_t { ethernet_t e; }
struct metadata_t { }

parser P(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    state start { packet.extract(hdr.e); transition accept; }
}

control I(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) {
    action_selector(HashAlgorithm.crc16, 32w4, 32w14) spread;
    action_profile(32w8) plain;
    action forward(bit<9> port) { std.egress_spec = port; }
    table t {
        key = { hdr.e.d: exact; hdr.e.s: selector; }
        actions = { forward; NoAction; }
        implementation = spread;
    }
    table u {
        key = { hdr.e.t: exact; }
        actions = { forward; NoAction; }
        implementation = plain;
    }
    table v {
        key = { hdr.e.t: exact; }
        actions = { forward; NoAction; }
    }
    apply { t.apply(); u.apply(); v.apply(); }
}

control V(inout headers_t hdr, inout metadata_t meta) { apply { } }
control E(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std) { apply { } }
control C(inout headers_t hdr, inout metadata_t meta) { apply { } }
control D(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr.e); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
