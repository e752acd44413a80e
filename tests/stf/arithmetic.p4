// Operations on two operands of each signedness; the result comes back in a byte, or two.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<8>  a;
    bit<8>  b;
    bit<16> result;
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
        bit<8> a = hdr.request.a;
        bit<8> b = hdr.request.b;
        int<8> sa = (int<8>) a;
        int<8> sb = (int<8>) b;
        bit<16> result = 0;
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 0) {
            result = (bit<16>) (a |+| b);
        } else if (hdr.request.op == 1) {
            result = (bit<16>) (a |-| b);
        } else if (hdr.request.op == 2) {
            result = (bit<16>) (bit<8>) (sa |+| sb);
        } else if (hdr.request.op == 3) {
            result = (bit<16>) (bit<8>) (sa |-| sb);
        } else if (hdr.request.op == 4) {
            result = (bit<16>) (a + b);
        } else if (hdr.request.op == 5) {
            result = (bit<16>) (a - b);
        } else if (hdr.request.op == 6) {
            result = (bit<16>) (a * b);
        } else if (hdr.request.op == 7) {
            result = (bit<16>) (int<16>) sa;
        } else if (hdr.request.op == 8) {
            result = a ++ b;
        } else if (hdr.request.op == 9) {
            result = (bit<16>) (bit<8>) (sa >> b);
        } else if (hdr.request.op == 10) {
            result = (bit<16>) (a >> b);
        } else if (hdr.request.op == 11) {
            result = (bit<16>) (a << b);
        } else if (hdr.request.op == 12) {
            result = sa < sb ? 16w1 : 16w0;
        } else if (hdr.request.op == 13) {
            result = a < b ? 16w1 : 16w0;
        } else if (hdr.request.op == 14) {
            result = (bit<16>) (bit<8>) (-sa);
        } else if (hdr.request.op == 15) {
            result[11:4] = a;
            result[3:0] = b[7:4];
        } else if (hdr.request.op == 16) {
            result = (bit<16>) (~a ^ (b & 0x0f) | 0x80);
        } else if (hdr.request.op == 17) {
            result = (bit<16>) (-a);
        } else if (hdr.request.op == 18) {
            result = (bit<16>) (bit<8>) (sa * sb);
        }
        hdr.request.result = result;
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
