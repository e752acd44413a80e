// A packet meter, a byte meter and a direct meter; the colours go into the packet.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> index;
    bit<8> packets;
    bit<8> bytes;
    bit<8> direct;
}

struct headers_t {
    request_t request;
}

struct meta_t {
    bit<2> colour;
}

#include "bench.p4h"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.request);
        transition accept;
    }
}

control Pipe(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    meter(16, MeterType.packets) in_packets;
    meter(16, MeterType.bytes) in_bytes;
    direct_meter<bit<2>>(MeterType.packets) per_entry;

    action measured() {
        per_entry.read(meta.colour);
    }

    table metered {
        key = { hdr.request.index : exact; }
        actions = { measured; @defaultonly NoAction; }
        default_action = NoAction;
        meters = per_entry;
    }

    apply {
        bit<2> colour = 3;
        standard_metadata.egress_spec = 1;
        in_packets.execute_meter((bit<32>) hdr.request.index, colour);
        hdr.request.packets = (bit<8>) colour;
        colour = 3;
        in_bytes.execute_meter((bit<32>) hdr.request.index, colour);
        hdr.request.bytes = (bit<8>) colour;
        meta.colour = 3;
        metered.apply();
        hdr.request.direct = (bit<8>) meta.colour;
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
