// A program that a generator might have written, for docs/p4.md.
#include <core.p4>
#include <v1model.p4>
#include "headers.p4"

struct headers_t { ethernet_t ethernet; }
struct meta_t { bit<16> vlan; bit<8> hops; }

#define METADATA inout meta_t meta, inout standard_metadata_t std_meta
#include "around.p4"

#line 5 "lookup.p4.j2"
control I(inout headers_t hdr, METADATA) {
    apply {
        meta.vlam = hdr.ethernet.type;
    }
}

V1Switch(P(), V(), I(), E(), C(), D()) main;
