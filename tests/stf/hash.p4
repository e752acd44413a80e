// Every algorithm of HashAlgorithm over the payload fields, chosen by op; result = base + hash mod max.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<32> base;
    bit<32> max;
    bit<32> result;
    bit<16> a;
    bit<8>  b;
    bit<4>  c;
    bit<4>  d;
    bit<32> e;
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

#define DATA { hdr.request.a, hdr.request.b, hdr.request.c, hdr.request.d, hdr.request.e }

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    bit<32> result = 0;

    apply {
        standard_metadata.egress_spec = 1;
        bit<32> base = hdr.request.base;
        bit<32> max = hdr.request.max;
        if (hdr.request.op == 0) {
            hash(result, HashAlgorithm.crc32, base, DATA, max);
        } else if (hdr.request.op == 1) {
            hash(result, HashAlgorithm.crc32_custom, base, DATA, max);
        } else if (hdr.request.op == 2) {
            hash(result, HashAlgorithm.crc16, base, DATA, max);
        } else if (hdr.request.op == 3) {
            hash(result, HashAlgorithm.crc16_custom, base, DATA, max);
        } else if (hdr.request.op == 4) {
            hash(result, HashAlgorithm.identity, base, DATA, max);
        } else if (hdr.request.op == 5) {
            hash(result, HashAlgorithm.csum16, base, DATA, max);
        } else if (hdr.request.op == 6) {
            hash(result, HashAlgorithm.xor16, base, DATA, max);
        } else if (hdr.request.op == 7) {
            // Not a whole number of bytes, and not in the order of the header.
            hash(result, HashAlgorithm.crc32, base, { hdr.request.c, hdr.request.a }, max);
        } else if (hdr.request.op == 8) {
            hash(result, HashAlgorithm.xor16, base, { hdr.request.b }, max);
        } else {
            hash(result, HashAlgorithm.csum16, base, { hdr.request.b }, max);
        }
        hdr.request.result = result;
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
