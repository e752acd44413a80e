// Ways to drop a packet, or to think that one does; and truncation.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<32> length;
}

struct headers_t {
    request_t request;
}

struct meta_t { }

#define EGRESS Out
#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.request.op == 1) {
            mark_to_drop(standard_metadata);
        } else if (hdr.request.op == 2) {
            mark_to_drop(standard_metadata);
            standard_metadata.egress_spec = 2;
        } else if (hdr.request.op == 3) {
            standard_metadata.egress_spec = 511;
        } else if (hdr.request.op == 4) {
            truncate(hdr.request.length);
            standard_metadata.egress_spec = 1;
        } else if (hdr.request.op != 0) {
            standard_metadata.egress_spec = 1;
        }
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (hdr.request.op == 5) {
            standard_metadata.egress_spec = 4;
        } else if (hdr.request.op == 6) {
            standard_metadata.egress_spec = 511;
        } else if (hdr.request.op == 7) {
            truncate(hdr.request.length);
        } else if (hdr.request.op == 8) {
            hdr.request.length = standard_metadata.packet_length;
        } else if (hdr.request.op == 9) {
            standard_metadata.egress_port = 3;
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), Out(), COMPUTE(), EmitAll()) main;
