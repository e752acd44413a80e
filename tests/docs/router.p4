// A program of one's own, with headers in a folder of their own, for docs/p4.md.
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

struct headers_t { ethernet_t ethernet; }
struct meta_t { }

#define METADATA inout meta_t meta, inout standard_metadata_t std_meta
#include "around.p4"

control I(inout headers_t hdr, METADATA) {
    action forward(bit<9> port) {
        std_meta.egress_spec = port;
    }
    action drop() {
        mark_to_drop(std_meta);
    }
    table switching {
        key = { hdr.ethernet.dst : exact; }
        actions = { forward; drop; }
        default_action = drop();
    }
    apply {
        if (hdr.ethernet.isValid()) {
            switching.apply();
        }
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
