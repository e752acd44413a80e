// Digests of a struct, from ingress.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<48> address;
    bit<16> port;
}

struct headers_t {
    request_t request;
}

struct meta_t { }

struct learn_t {
    bit<48> address;
    bit<9>  port;
    bit<3>  kind;
}

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 1) {
            digest<learn_t>(1, { hdr.request.address, standard_metadata.ingress_port, 5 });
        } else if (hdr.request.op == 2) {
            digest<learn_t>(1, { hdr.request.address, standard_metadata.ingress_port, 6 });
            mark_to_drop(standard_metadata);
        }
        hdr.request.address = 0;
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
