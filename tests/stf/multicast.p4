// Multicast by the group that the packet names; each copy says which it is. Copies to the port that the packet came
// from can be pruned in egress.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8>  op;
    bit<8>  group;
    bit<8>  instance;
    bit<8>  port;
    bit<16> rid;
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
        standard_metadata.egress_spec = 9;
        if (hdr.request.op == 2) {
            standard_metadata.mcast_grp = (bit<16>) hdr.request.group;
            mark_to_drop(standard_metadata);
        } else {
            if (hdr.request.op == 3) {
                mark_to_drop(standard_metadata);
            }
            standard_metadata.mcast_grp = (bit<16>) hdr.request.group;
        }
    }
}

control Out(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        hdr.request.instance = (bit<8>) standard_metadata.instance_type;
        hdr.request.port = (bit<8>) standard_metadata.egress_port;
        hdr.request.rid = standard_metadata.egress_rid;
        if (hdr.request.op == 1 && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata);
        }
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), Out(), COMPUTE(), EmitAll()) main;
