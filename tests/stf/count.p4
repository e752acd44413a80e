// Counters: indexed, of entries, and how long an entry has been idle.
#include <core.p4>
#include <v1model.p4>

header request_t {
    bit<8> index;
    bit<8> key;
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
    counter(4, CounterType.packets_and_bytes) both;
    direct_counter(CounterType.packets_and_bytes) per_entry;

    action counted() {
        per_entry.count();
    }

    action not_counted() { }

    action twice() {
        per_entry.count();
        per_entry.count();
    }

    table of_entries {
        key = { hdr.request.key : exact; }
        actions = { counted; not_counted; twice; }
        default_action = counted;
        counters = per_entry;
        support_timeout = true;
    }

    apply {
        standard_metadata.egress_spec = 1;
        both.count((bit<32>) hdr.request.index);
        of_entries.apply();
    }
}

V1Switch(Parse(), VERIFY(), Pipe(), EGRESS(), COMPUTE(), EmitAll()) main;
