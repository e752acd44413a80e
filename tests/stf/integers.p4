// Numbers of unlimited size that are computed at run time, which a cast to a bit string makes possible.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> a;
    bit<8> b;
    bit<8> c;
    bit<8> d;
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
        standard_metadata.egress_spec = 1;
        hdr.request.c = (bit<8>)((int)hdr.request.a * 3 - (int)hdr.request.b);
        hdr.request.d = (bit<8>)(int<8>)((int)(int<4>)hdr.request.b[3:0] + 1);
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
