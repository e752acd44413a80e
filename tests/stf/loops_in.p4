// A loop over a range, with break and continue.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> limit;
    bit<8> sum;
    bit<8> count;
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
        bit<8> sum = 0;
        bit<8> count = 0;
        standard_metadata.egress_spec = 1;
        for (bit<8> i in 8w2 .. 8w6) {
            if (i == 3) {
                continue;
            }
            if (i == hdr.request.limit) {
                break;
            }
            sum = sum + i;
            count = count + 1;
        }
        hdr.request.sum = sum;
        hdr.request.count = count;
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
