// Internet checksums over a header, with and without the payload, verified before ingress and updated after egress.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<8>  a;
    bit<16> b;
    bit<16> sum;
}

header report_t {
    bit<8> wrong;
}

struct headers_t {
    report_t  report;
    request_t request;
}

struct meta_t { }

#define VERIFY Verify
#define COMPUTE Compute
#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

#define DATA { hdr.request.op, hdr.request.a, hdr.request.b }

control Verify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.request.op == 1, DATA, hdr.request.sum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.request.op == 2, DATA, hdr.request.sum, HashAlgorithm.csum16);
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        standard_metadata.egress_spec = 1;
        hdr.report = { (bit<8>) standard_metadata.checksum_error };
    }
}

control Compute(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.request.op == 3, DATA, hdr.request.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.request.op == 4, DATA, hdr.request.sum, HashAlgorithm.csum16);
        update_checksum(hdr.request.op == 5, DATA, hdr.request.sum, HashAlgorithm.crc16);
    }
}

V1Switch(Parse(), Verify(), Pipe(), EGRESS(), Compute(), EmitAll()) main;
