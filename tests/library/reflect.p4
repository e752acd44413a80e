// The smallest program for v1model that sends anything: each frame goes back to where it has come from.
#include <core.p4>
#include <v1model.p4>

struct headers_t { }
struct metadata_t { }

parser Accept(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
    state start { transition accept; }
}
control Nothing(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Reflect(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) {
    apply { std_meta.egress_spec = std_meta.ingress_port; }
}
control Leave(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t std_meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { } }

V1Switch(Accept(), Nothing(), Reflect(), Leave(), Nothing(), Deparse()) main;
