// A program with a warning, for docs/p4.md.
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

struct headers_t { ethernet_t ethernet; }
struct meta_t { bit<16> vlan; bit<8> hops; }

#define METADATA inout meta_t meta, inout standard_metadata_t std_meta
#include "around.p4"

control I(inout headers_t hdr, METADATA) {
    action next(bit<9> port) { std_meta.egress_spec = port; }
    action drop() { mark_to_drop(std_meta); }
    table forward {
        key = { hdr.ethernet.dst : exact; }
        actions = { next; drop; }
        default_action = drop();
    }
    apply {
        bit<8> hops;
        forward.apply();
        if (hops == 0) {
            meta.hops = 1;
        }
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
