// Externs without state: random, log_msg, assert and assume.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
    bit<8> low;
    bit<8> high;
    bit<8> result;
}

struct headers_t {
    request_t request;
}

struct meta_t { }

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        bit<8> drawn;
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 0) {
            random(drawn, hdr.request.low, hdr.request.high);
            hdr.request.result = drawn;
        } else if (hdr.request.op == 1) {
            random(drawn, hdr.request.low, hdr.request.high);
            hdr.request.result = hdr.request.low <= drawn && drawn <= hdr.request.high ? 8w1 : 8w0;
        } else {
            log_msg("low is {}, high is {}", { hdr.request.low, hdr.request.high });
            assert(hdr.request.op != 0);
            assume(hdr.request.op != 1);
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
