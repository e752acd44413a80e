/* A router of one table for TNA, with a counter and a register of pairs: what the harness is tested with. */
#include <core.p4>
#include <tna.p4>

header ethernet_t { bit<48> dst; bit<48> src; bit<16> type; }
struct headers_t { ethernet_t ethernet; }
struct metadata_t {}
struct pair_t { bit<32> first; bit<32> second; }

parser IngressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out ingress_intrinsic_metadata_t ig_intr_md) {
    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig_intr_md,
                in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Counter<bit<64>, bit<9>>(4, CounterType_t.PACKETS_AND_BYTES) seen;
    Register<pair_t, bit<2>>(4) last;
    RegisterAction<pair_t, bit<2>, bit<32>>(last) remember = {
        void apply(inout pair_t word, out bit<32> before) {
            before = word.first;
            word.first = hdr.ethernet.dst[31:0];
            word.second = word.second + 1;
        }
    };
    action send(bit<9> port) { ig_tm_md.ucast_egress_port = port; }
    action flood(bit<16> group) { ig_tm_md.mcast_grp_a = group; }
    action drop() { ig_dprsr_md.drop_ctl = 1; }
    table route {
        key = { hdr.ethernet.dst: exact; }
        actions = { send; flood; @defaultonly drop; }
        default_action = drop();
        size = 64;
    }
    table screen {
        key = { hdr.ethernet.src: ternary; hdr.ethernet.type: range; }
        actions = { drop; @defaultonly NoAction; }
        const default_action = NoAction();
        size = 16;
    }
    apply {
        seen.count(ig_intr_md.ingress_port);
        remember.execute(0);
        if (!screen.apply().hit) { route.apply(); }
    }
}

control IngressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                        in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply { packet.emit(hdr); }
}

parser EgressParser(packet_in packet, out headers_t hdr, out metadata_t meta, out egress_intrinsic_metadata_t eg_intr_md) {
    state start { packet.extract(eg_intr_md); transition accept; }
}

control Egress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg_intr_md,
               in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
               inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
               inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    apply {}
}

control EgressDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                       in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    apply { packet.emit(hdr); }
}

Pipeline(IngressParser(), Ingress(), IngressDeparser(), EgressParser(), Egress(), EgressDeparser()) pipe;
Switch(pipe) main;
