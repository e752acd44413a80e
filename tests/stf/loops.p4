// Loops with a counter: several variables, break, continue, one in another.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> op;
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
        if (hdr.request.op == 0) {
            for (bit<8> i = 0, bit<8> j = 10; i < 4; i = i + 1, j = j - 1) {
                sum = sum + i * j;
                count = count + 1;
            }
        } else {
            for (bit<8> i = 0; i < 3; i = i + 1) {
                for (bit<8> j = 0; j < 3; j = j + 1) {
                    if (j > i) {
                        break;
                    }
                    if (j == 1) {
                        continue;
                    }
                    sum = sum + j;
                    count = count + 1;
                }
            }
        }
        hdr.request.sum = sum;
        hdr.request.count = count;
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
