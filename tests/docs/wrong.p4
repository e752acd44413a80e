// A program with four errors, for docs/p4.md.
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

struct headers_t { ethernet_t ethernet; }
struct meta_t { bit<16> vlan; bit<8> hops; }

#define METADATA inout meta_t meta, inout standard_metadata_t std_meta
#include "around.p4"

control I(inout headers_t hdr, METADATA) {
    table forward {
        key = { hdr.ethernet.type : exact; }
        actions = { NoAction; }
        default_action = NoAction();
        entries = { 1 : NoAction(); 2 : NoAction(); 1 : NoAction(); }
    }
    apply {
        meta.vlan = hdr.ethernet.type + meta.hops;
        switch (hdr.ethernet.type) {
            0x800: { forward.aply(); }
            default: {}
            0x86dd: {}
        }
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
