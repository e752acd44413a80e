// Registers of one bit, of a signed number, and wider than a machine word.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<8>  small;
    bit<80> wide;
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
    register<bit<1>>(2) flags;
    register<int<8>>(1) lowest;
    register<bit<80>>(1) widest;

    apply {
        standard_metadata.egress_spec = 1;
        if (hdr.request.op == 1) {
            bit<1> before;
            flags.read(before, 1);
            flags.write(1, ~before);
            hdr.request.small = (bit<8>) before;
        } else if (hdr.request.op == 2) {
            int<8> least;
            int<8> candidate = (int<8>) hdr.request.small;
            lowest.read(least, 0);
            if (candidate < least) {
                least = candidate;
                lowest.write(0, least);
            }
            hdr.request.small = (bit<8>) least;
        } else {
            bit<80> held;
            widest.read(held, 0);
            held = held + hdr.request.wide;
            widest.write(0, held);
            hdr.request.wide = held;
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
